//! What becomes of a task.

use std::sync::Arc;

use runtime_core::AttemptId;
use wire::v1;

use super::snapshot::{CheckpointAnswer, TaskSnapshot};

/// Where a task stands (Flink: `ExecutionState`, as far as a task executor sees it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It opens its operators and channels.
    Initializing,
    /// It deals with records.
    Running,
    /// All input was dealt with, and what its sink wrote is staged.
    Finished,
    /// It was told to stop, and has.
    Canceled,
    /// It could not go on.
    Failed,
}

impl TaskState {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Canceled | Self::Failed)
    }
}

/// A change of a task's state.
#[derive(Debug, Clone)]
pub struct TaskEvent {
    /// Whose.
    pub attempt: AttemptId,
    /// The new state.
    pub state: TaskState,
    /// With [`TaskState::Failed`]: one sentence naming task, place and cause.
    pub error: Option<String>,
    /// With [`TaskState::Failed`]: whether it would fail again.
    pub unrecoverable: bool,
    /// What was counted so far; with a terminal state the last word.
    pub figures: v1::Figures,
    /// With [`TaskState::Finished`]: what it adds to every later checkpoint. What its sink has staged is made visible with
    /// the next one, or when the job ends.
    pub last: Option<Box<TaskSnapshot>>,
}

/// Who is told. Called on the task's thread; must not wait.
pub type TaskEvents = Arc<dyn Fn(TaskEvent) + Send + Sync>;

/// Who is told what came of a checkpoint in a task: once for each that it took part in, before its last event. Must not
/// wait.
pub type CheckpointAnswers = Arc<dyn Fn(CheckpointAnswer) + Send + Sync>;
