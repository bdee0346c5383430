//! What is shown of a job's checkpoints.

use std::collections::VecDeque;
use std::time::Duration;

use runtime_core::EpochMillis;

/// How many checkpoints are shown one by one (Flink: `web.checkpoints.history`).
const HISTORY: usize = 10;

/// A job's checkpoints, counted and the last of them one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// How often the job was begun again from a checkpoint.
    pub restored: u64,
    /// Completed checkpoints, those of earlier terms of the job master included.
    pub completed: u64,
    /// Checkpoints of this term that were given up.
    pub failed: u64,
    /// Whether one is being made: 0 or 1.
    pub in_progress: u64,
    /// The newest that was completed in this term.
    pub latest_completed: Option<CheckpointEntry>,
    /// The newest savepoint that was completed in this term.
    pub latest_savepoint: Option<CheckpointEntry>,
    /// The newest that was given up.
    pub latest_failed: Option<CheckpointEntry>,
    /// From which one the job went on last.
    pub latest_restored: Option<RestoredCheckpoint>,
    /// The last ones, oldest first.
    pub(super) history: VecDeque<CheckpointEntry>,
}

/// A checkpoint as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Its number.
    pub id: u64,
    /// How far it is.
    pub status: CheckpointStatus,
    /// When it was begun.
    pub triggered_at: EpochMillis,
    /// When the last acknowledgement came.
    pub latest_ack_at: Option<EpochMillis>,
    /// From its beginning until it was completed or given up; so far, for one that is being made.
    pub duration: Duration,
    /// The bytes of the state in it.
    pub state_size: u64,
    /// How many subtasks take part.
    pub subtasks: u32,
    /// How many of them have acknowledged.
    pub acknowledged: u32,
    /// Whether somebody has asked for it and owns it.
    pub savepoint: bool,
}

/// How far a checkpoint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointStatus {
    /// It is being made.
    InProgress,
    /// It can be restored.
    Completed {
        /// The URL of its metadata.
        path: String,
    },
    /// It was given up.
    Failed {
        /// When.
        at: EpochMillis,
        /// Why, in one sentence.
        cause: String,
    },
}

impl CheckpointStatus {
    /// As REST and command line show it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::InProgress => "IN_PROGRESS",
            Self::Completed { .. } => "COMPLETED",
            Self::Failed { .. } => "FAILED",
        }
    }
}

/// A checkpoint from which the job went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredCheckpoint {
    /// Its number.
    pub id: u64,
    /// When.
    pub at: EpochMillis,
    /// Whether it is a savepoint.
    pub savepoint: bool,
    /// The URL of its metadata.
    pub path: String,
}

impl CheckpointStats {
    /// The last checkpoints, newest first.
    pub fn history(&self) -> impl Iterator<Item = &CheckpointEntry> {
        self.history.iter().rev()
    }

    /// How many were begun.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.completed + self.failed + self.in_progress
    }

    pub(super) fn begun(&mut self, entry: CheckpointEntry) {
        self.in_progress = 1;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(entry);
    }

    /// Changes the one that is being made.
    pub(super) fn change(&mut self, id: u64, change: impl FnOnce(&mut CheckpointEntry)) {
        if let Some(entry) = self.history.iter_mut().rev().find(|entry| entry.id == id) {
            change(entry);
        }
    }

    /// The one that was being made has come to its end.
    pub(super) fn ended(&mut self, id: u64, duration: Duration, status: CheckpointStatus) {
        self.in_progress = 0;
        let Some(entry) = self.history.iter_mut().rev().find(|entry| entry.id == id) else { return };
        entry.duration = duration;
        entry.status = status;
        match entry.status {
            CheckpointStatus::Completed { .. } => {
                self.completed += 1;
                if entry.savepoint {
                    self.latest_savepoint = Some(entry.clone());
                } else {
                    self.latest_completed = Some(entry.clone());
                }
            }
            CheckpointStatus::Failed { .. } => {
                self.failed += 1;
                self.latest_failed = Some(entry.clone());
            }
            CheckpointStatus::InProgress => {}
        }
    }
}
