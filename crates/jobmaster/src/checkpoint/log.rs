//! What a job master remembers of its job's checkpoints beyond its own life.

use runtime_core::EpochMillis;

/// A completed checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CheckpointPointer {
    /// Its number.
    pub id: u64,
    /// The name of its metadata in the checkpoint store.
    pub metadata: String,
    /// When it was complete, in milliseconds since 1970.
    pub completed_at: i64,
    /// Of a savepoint of another job, with which this one began: its folder, a URL, in which the metadata has that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl CheckpointPointer {
    /// When it was complete.
    #[must_use]
    pub fn completed_at(&self) -> EpochMillis {
        EpochMillis(self.completed_at)
    }
}

/// Nothing was remembered; what was remembered before still is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LogError(pub String);

/// Remembers numbers and pointers, so that a later job master goes on where this one was. Calls block, and have survived a
/// loss of power when they return.
pub trait CheckpointLog: Send + Sync {
    /// No checkpoint up to this number will be begun by another life: called before any of them is begun. A new life begins
    /// behind the last reservation.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    fn reserve(&self, up_to: u64) -> Result<(), LogError>;

    /// These are the checkpoints that can be restored, oldest first.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    fn completed(&self, pointers: &[CheckpointPointer]) -> Result<(), LogError>;
}
