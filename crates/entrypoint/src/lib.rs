//! What Tidegate's programs share at start: configuration, ready line, signals, logs, metrics, locks.
//!
//! A server's `main` is one call: [`run_server`] reads the command line and the layers of the configuration, starts
//! logging, the runtime, the signal handlers and the `/metrics` and `/healthz` endpoint, and then hands a
//! [`Server`] to the role. What can be wrong before anything runs is found before anything runs, and is said in one
//! line with exit status 2; what fails later is one line with exit status 1.
//!
//! - [`config`]: keys with type, default and check; file, environment and `--set`; where each value came from.
//! - [`Server`], [`run_server`]: the frame of a process, its exit status and the bound on its stop.
//! - [`ReadyLine`], [`listen`], [`entropy`]: what a server says and takes at its start.
//! - [`telemetry`]: the endpoint for machines that watch, and the small client behind `tidegate health`.
//! - [`StateDir`]: the folder that survives a restart, its lock and the epochs drawn from it.
//!
//! It knows nothing of jobs, of gRPC or of what the roles do.

pub mod args;
mod cluster;
pub mod config;
pub mod entropy;
mod epoch;
pub mod listen;
pub mod logging;
pub mod placement;
mod ready;
mod role;
mod server;
mod signals;
pub mod sleep;
mod state_dir;
pub mod telemetry;

pub use args::ServerArgs;
pub use config::{Config, ConfigError, keys};
pub use placement::{MOST_REQUESTS, Placement, Running};
pub use ready::ReadyLine;
pub use role::Role;
pub use server::{Server, run_server, run_server_with};
pub use state_dir::{StateDir, StateDirError};
pub use telemetry::{Health, MetricSources};
