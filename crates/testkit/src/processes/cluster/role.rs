//! Which process, and what its addresses are called.

use std::fmt;

/// A process of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// `resourcemanager`.
    ResourceManager,
    /// `jobmaster`.
    JobMaster,
    /// `taskexecutor`, from 0.
    TaskExecutor(usize),
}

impl Role {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::ResourceManager => "resourcemanager",
            Self::JobMaster => "jobmaster",
            Self::TaskExecutor(_) => "taskexecutor",
        }
    }

    /// The keys of its addresses, and what the ready line calls them.
    pub(super) const fn addresses(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ResourceManager => &[("rpc.bind", "rpc")],
            Self::JobMaster => &[("rpc.bind", "rpc"), ("rest.bind", "rest")],
            Self::TaskExecutor(_) => &[("rpc.bind", "rpc"), ("data.bind", "data")],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TaskExecutor(n) => write!(f, "{}-{n}", self.program()),
            _ => f.write_str(self.program()),
        }
    }
}
