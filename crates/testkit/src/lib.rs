//! For tests only: scenarios, a simulated cluster and a cluster of processes.
//!
//! What tests, the demo and the benchmarks share. [`processes`] starts the programs and ends them, [`http`] asks them,
//! [`join`] says what the flights job has to write, [`chaos`] does to a cluster whatever may happen to one. These need no
//! other crate of the project: what is observed from outside must not be explained by the code that is under test. `simulation` (a feature, on by default) runs the real
//! roles in this process, under a paused clock; `fleet` (another) is thousands of task executors for a real resource
//! manager.

pub mod chaos;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod flights;
pub mod http;
pub mod join;
pub mod patience;
pub mod processes;
#[cfg(feature = "simulation")]
pub mod simulation;
