//! What can go wrong with a call to a role.

use std::fmt;

/// A call that brought no answer, or whose answer is a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct RpcError {
    /// What kind of failure: callers decide by this.
    pub kind: RpcErrorKind,
    /// What happened, at which peer, in which call: for people.
    pub message: String,
}

/// The kinds of failure that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RpcErrorKind {
    /// Nobody is there: the connection was refused, reset or broken. The call may or may not have been carried out.
    Unreachable,
    /// No answer in time. The peer may be slow, stopped or cut off; the call may have been carried out.
    Deadline,
    /// The caller's epoch or incarnation is not the one that the receiver knows. Nothing was changed.
    Fencing,
    /// The receiver is there but does not serve yet. Nothing was changed.
    NotStarted,
    /// The peer speaks another version of the protocol. Nothing was changed.
    Version,
    /// The process is there, what was asked for is not: no such service, job, task executor or task.
    UnknownTarget,
    /// The request or the answer is larger than the limit.
    TooLarge,
    /// The receiver has too much to do and did not take the call. Nothing was changed.
    Overloaded,
    /// The receiver tried and failed, or the message makes no sense to it.
    Application,
}

impl RpcErrorKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Unreachable,
        Self::Deadline,
        Self::Fencing,
        Self::NotStarted,
        Self::Version,
        Self::UnknownTarget,
        Self::TooLarge,
        Self::Overloaded,
        Self::Application,
    ];

    /// The kind's name, as it travels and as logs and metrics show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Deadline => "deadline",
            Self::Fencing => "fencing",
            Self::NotStarted => "not-started",
            Self::Version => "version",
            Self::UnknownTarget => "unknown-target",
            Self::TooLarge => "too-large",
            Self::Overloaded => "overloaded",
            Self::Application => "application",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for RpcErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(message: impl Into<String>) -> Self {
                Self { kind: RpcErrorKind::$kind, message: message.into() }
            }
        )*
    };
}

impl RpcError {
    constructors! {
        /// Nobody is there.
        unreachable => Unreachable;
        /// No answer in time.
        deadline => Deadline;
        /// Another epoch or incarnation.
        fencing => Fencing;
        /// Does not serve yet.
        not_started => NotStarted;
        /// Another version of the protocol.
        version => Version;
        /// No such service, job, task executor or task.
        unknown_target => UnknownTarget;
        /// Larger than the limit.
        too_large => TooLarge;
        /// Too much to do.
        overloaded => Overloaded;
        /// Tried and failed, or made no sense of the message.
        application => Application;
    }

    /// The same failure with a word before it that says where it happened.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in RpcErrorKind::ALL {
            assert_eq!(RpcErrorKind::of_name(kind.name()), Some(kind));
        }
        assert_eq!(RpcErrorKind::of_name("other"), None);
    }
}
