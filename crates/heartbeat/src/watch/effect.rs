//! What a manager wants of its owner.

use crate::verdict::Verdict;
use runtime_core::Tick;
use std::fmt;
use std::time::Duration;

/// What the owner has to do or to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<K, N> {
    /// Ask this target for a heartbeat, and report the outcome of the call.
    Request {
        /// The target.
        id: K,
        /// Which of its lives; the outcome is reported with it.
        incarnation: N,
    },
    /// React to the loss of a target, and stop monitoring it.
    Verdict(Verdict<K, N>),
    /// Give this target nothing new: it missed an answer or refused a call. It may come back.
    Suspect {
        /// The target.
        id: K,
        /// Which of its lives.
        incarnation: N,
        /// How long it has been silent.
        silent_for: Duration,
        /// Calls refused in a row.
        consecutive_failures: u32,
    },
    /// The suspect was heard again.
    Alive {
        /// The target.
        id: K,
        /// Which of its lives.
        incarnation: N,
    },
    /// The owner itself stood still, for this long: to be logged. It counts as nobody's silence.
    OwnStall(Duration),
    /// Verdicts are held until then, because many targets fell silent together: to be logged. An owner that can reach
    /// something neutral may say whether it does ([`HeartbeatManager::probed`](crate::HeartbeatManager::probed)).
    CorrelatedLoss {
        /// Targets that would be declared dead within an interval.
        dying: usize,
        /// All targets that count as alive.
        of: usize,
        /// When the verdicts fall for those that are still silent.
        until: Tick,
    },
}

impl<K, N> Effect<K, N> {
    /// The verdict, if it is one.
    #[must_use]
    pub fn verdict(self) -> Option<Verdict<K, N>> {
        match self {
            Self::Verdict(verdict) => Some(verdict),
            _ => None,
        }
    }
}

/// As a log line.
impl<K: fmt::Display, N> fmt::Display for Effect<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { id, .. } => write!(f, "{id} is asked for a heartbeat"),
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Suspect { id, silent_for, consecutive_failures: failures, .. } => {
                let silent = silent_for.as_secs_f64();
                write!(f, "{id} is a suspect: not heard for {silent:.1} s, {failures} refused in a row")
            }
            Self::Alive { id, .. } => write!(f, "{id} was heard again and is no suspect any more"),
            Self::OwnStall(length) => {
                let length = length.as_secs_f64();
                write!(f, "this process stood still for {length:.1} s, which counts as nobody's silence")
            }
            Self::CorrelatedLoss { dying, of, .. } => write!(
                f,
                "{dying} of {of} fell silent together, which may be this side's network: their verdicts wait once"
            ),
        }
    }
}
