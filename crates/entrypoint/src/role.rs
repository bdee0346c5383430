//! The roles a process can have.

use std::fmt;

/// What a server process is in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Knows the task executors and hands their slots out (Flink: `ResourceManager`).
    ResourceManager,
    /// Accepts and runs jobs (Flink: `Dispatcher` and `JobMaster`).
    JobMaster,
    /// Runs tasks in slots (Flink: `TaskExecutor`).
    TaskExecutor,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = &[Self::ResourceManager, Self::JobMaster, Self::TaskExecutor];

    /// The name of the role, of its program and of its folder below `state.dir`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResourceManager => "resourcemanager",
            Self::JobMaster => "jobmaster",
            Self::TaskExecutor => "taskexecutor",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
