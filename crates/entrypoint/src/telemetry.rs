//! The endpoint for machines that watch: `/metrics` in OpenMetrics text, `/healthz` in JSON.
//!
//! Metrics are read when they are asked for, from [`Observe`](runtime_core::metrics::Observe) sources that count
//! whether anybody asks or not; there is no global registry. Health is what the parts of a process last said about
//! themselves.

mod encode;
mod endpoint;
mod health;
mod probe;
mod process;

pub use encode::MetricSources;
pub use endpoint::serve;
pub use health::Health;
pub use probe::{ProbeError, check};
