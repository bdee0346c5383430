//! Workers on demand: task executors that the resource manager starts when jobs need slots, and stops when none does.
//!
//! [`WorkerPool`] decides, a pure state machine: what is missing and what has become of its workers goes in, starts and
//! stops come out. A [`WorkerDriver`] carries them out; [`ProcessDriver`] starts child processes, and others (containers)
//! can stand in its place. Without a driver the resource manager takes whoever registers, and starts nobody.
//!
//! What survives a restart of the resource manager is the driver's list of workers alone. Which of them is needed is
//! learnt anew, from what they and the job masters say when they register.

mod driver;
mod metrics;
mod pace;
mod pool;
mod process;

pub use driver::{DriverEvent, DriverEvents, Ending, WorkerDriver};
pub(crate) use metrics::WorkerMetrics;
pub use pace::StartPace;
pub(crate) use pool::End;
pub use pool::{Demand, PoolEffect, PoolOptions, StopReason, WorkerPool};
pub use process::{ProcessDriver, WorkerCommand};
