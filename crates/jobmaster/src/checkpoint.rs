//! Checkpoints of one job: when they are taken, what they consist of, and which of them can be restored.

pub mod coordinator;
pub mod fits;
mod log;
pub mod mapping;
mod metadata;
mod stats;

pub use coordinator::CheckpointCoordinator;
pub use log::{CheckpointLog, CheckpointPointer, LogError};
pub use mapping::Mapping;
pub use metadata::CompletedCheckpoint;
pub use stats::{CheckpointEntry, CheckpointStats, CheckpointStatus, RestoredCheckpoint};
