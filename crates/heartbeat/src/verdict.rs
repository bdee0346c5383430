//! A verdict: a target counts as dead, and why.

use std::fmt;
use std::time::Duration;

/// Why a target counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing was heard for the whole timeout.
    Timeout,
    /// Too many calls in a row were refused.
    Unreachable,
}

impl Reason {
    /// The word for it in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }
}

/// A target counts as dead. Said once for each time it is monitored; the owner reacts, and stops monitoring it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<K, N> {
    /// What kind of peer it is: "task executor".
    pub peer: &'static str,
    /// The target.
    pub id: K,
    /// Which of its lives.
    pub incarnation: N,
    /// Why.
    pub reason: Reason,
    /// How long ago it was last heard; `None` if never.
    pub last_seen_age: Option<Duration>,
    /// How long it has been monitored.
    pub monitored_for: Duration,
    /// Calls refused in a row.
    pub consecutive_failures: u32,
}

impl<K, N> Verdict<K, N> {
    /// The verdict in words, for an owner whose ids do not print themselves.
    ///
    /// ```
    /// # use heartbeat::{Reason, Verdict};
    /// # use std::time::Duration;
    /// let verdict = Verdict {
    ///     peer: "job master",
    ///     id: ("job-1", "host-2"),
    ///     incarnation: 1,
    ///     reason: Reason::Unreachable,
    ///     last_seen_age: None,
    ///     monitored_for: Duration::from_millis(1_240),
    ///     consecutive_failures: 2,
    /// };
    /// assert_eq!(
    ///     verdict.explain(format_args!("{} of {}", verdict.id.1, verdict.id.0)),
    ///     "job master host-2 of job-1 is no longer reachable: 2 failed calls, not heard in the 1.2 s of being monitored",
    /// );
    /// ```
    #[must_use]
    pub fn explain(&self, name: impl fmt::Display) -> String {
        let Self { peer, consecutive_failures: failures, .. } = self;
        let calls = if *failures == 1 { "call" } else { "calls" };
        let heard = match self.last_seen_age {
            Some(age) => format!("last heard {:.1} s ago", age.as_secs_f64()),
            None => format!("not heard in the {:.1} s of being monitored", self.monitored_for.as_secs_f64()),
        };
        match self.reason {
            Reason::Timeout => {
                format!("heartbeat of {peer} {name} timed out: {heard}, {failures} failed {calls}")
            }
            Reason::Unreachable => {
                format!("{peer} {name} is no longer reachable: {failures} failed {calls}, {heard}")
            }
        }
    }
}

impl<K: fmt::Display, N> fmt::Display for Verdict<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain(&self.id))
    }
}

impl<K: fmt::Debug + fmt::Display, N: fmt::Debug> std::error::Error for Verdict<K, N> {}
