//! The states of a job and of an attempt.
//!
//! Flink: `JobStatus` and `ExecutionState`; the names are those that its REST interface shows.

use runtime_core::EpochMillis;

/// The state of a job (Flink: `JobStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobStatus {
    /// Outputs are prepared, inputs are listed.
    Initializing,
    /// It waits for slots.
    Created,
    /// Its tasks run.
    Running,
    /// A task has failed; the others are stopped, then all run again.
    Restarting,
    /// A task has failed for good; the others are stopped.
    Failing,
    /// Over, with a failure.
    Failed,
    /// Somebody has asked for its end.
    Cancelling,
    /// Over, as asked.
    Canceled,
    /// Over, with its whole output.
    Finished,
}

impl JobStatus {
    /// As REST and command line show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Restarting => "RESTARTING",
            Self::Failing => "FAILING",
            Self::Failed => "FAILED",
            Self::Cancelling => "CANCELLING",
            Self::Canceled => "CANCELED",
            Self::Finished => "FINISHED",
        }
    }

    /// Whether nothing will follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Canceled | Self::Finished)
    }
}

/// The state of an attempt (Flink: `ExecutionState`), in the order in which a good one passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecutionState {
    /// Not thought of yet.
    Created,
    /// It waits for its slot.
    Scheduled,
    /// It has been sent to a task executor.
    Deploying,
    /// The task executor builds it.
    Initializing,
    /// It works.
    Running,
    /// It has been told to stop.
    Canceling,
    /// Over, with all of its work done.
    Finished,
    /// Over, as asked.
    Canceled,
    /// Over, with a failure.
    Failed,
}

impl ExecutionState {
    /// Every state, as REST counts them.
    pub const ALL: [Self; 9] = [
        Self::Created,
        Self::Scheduled,
        Self::Deploying,
        Self::Initializing,
        Self::Running,
        Self::Canceling,
        Self::Finished,
        Self::Canceled,
        Self::Failed,
    ];

    /// As REST and command line show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Scheduled => "SCHEDULED",
            Self::Deploying => "DEPLOYING",
            Self::Initializing => "INITIALIZING",
            Self::Running => "RUNNING",
            Self::Canceling => "CANCELING",
            Self::Finished => "FINISHED",
            Self::Canceled => "CANCELED",
            Self::Failed => "FAILED",
        }
    }

    /// Whether the attempt is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Canceled | Self::Failed)
    }
}

/// When a job entered each of its states, last time.
#[derive(Debug, Clone, Default)]
pub struct Timestamps(std::collections::BTreeMap<JobStatus, EpochMillis>);

impl Timestamps {
    /// Notes that the job enters `status`.
    pub fn enter(&mut self, status: JobStatus, at: EpochMillis) {
        self.0.insert(status, at);
    }

    /// When it last entered `status`.
    #[must_use]
    pub fn of(&self, status: JobStatus) -> Option<EpochMillis> {
        self.0.get(&status).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (JobStatus, EpochMillis)> + '_ {
        self.0.iter().map(|(status, at)| (*status, *at))
    }
}
