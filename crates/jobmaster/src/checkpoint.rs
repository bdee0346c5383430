//! Checkpoints of one job: when they are taken, what they consist of, and which of them can be restored.

mod log;

pub use log::{CheckpointLog, CheckpointPointer, LogError};
