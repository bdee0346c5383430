//! A verdict: a target counts as dead, and why.

use crate::monitor::MonitorState;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Why a target counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing was heard for the whole timeout.
    Timeout,
    /// Too many calls in a row were refused.
    Unreachable,
    /// The process answers, but its main loop has not turned for too long.
    Stuck,
}

impl Reason {
    /// The word for it in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Stuck => "stuck",
        }
    }

    pub(crate) const fn state(self) -> MonitorState {
        match self {
            Self::Timeout => MonitorState::Timeout,
            Self::Unreachable => MonitorState::Unreachable,
            Self::Stuck => MonitorState::Stuck,
        }
    }
}

/// How many other targets of the same manager are suspects at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OthersInTrouble {
    /// The suspects.
    pub suspects: usize,
    /// All others.
    pub of: usize,
}

/// A target counts as dead, with the evidence. Said once for each time it is monitored; the owner reacts, and stops
/// monitoring it.
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
    /// How long it has been silent: since it was last heard, or since it is monitored.
    pub silent_for: Duration,
    /// Calls refused in a row.
    pub consecutive_failures: u32,
    /// What the last call that failed said.
    pub last_error: Option<Box<str>>,
    /// How much of the silence was a stall of the watcher itself, and did not count.
    pub own_stall: Duration,
    /// How many others are in trouble; `None` where suspicion is switched off.
    pub others_in_trouble: Option<OthersInTrouble>,
    /// How long the verdict was held because many fell silent together, if it was.
    pub held_for: Option<Duration>,
    /// How old the last turn of its main loop was when it last said so; `None` if it never did.
    pub main_loop_age: Option<Duration>,
}

impl<K, N> Verdict<K, N> {
    /// The verdict in words, for an owner whose ids do not print themselves.
    ///
    /// ```
    /// # use heartbeat::{OthersInTrouble, Reason, Verdict};
    /// # use std::time::Duration;
    /// let verdict = Verdict {
    ///     peer: "job master",
    ///     id: ("job-1", "host-2"),
    ///     incarnation: 1,
    ///     reason: Reason::Unreachable,
    ///     last_seen_age: None,
    ///     silent_for: Duration::from_millis(1_240),
    ///     consecutive_failures: 2,
    ///     last_error: Some("connection refused".into()),
    ///     own_stall: Duration::ZERO,
    ///     others_in_trouble: Some(OthersInTrouble { suspects: 1, of: 4 }),
    ///     held_for: None,
    ///     main_loop_age: None,
    /// };
    /// assert_eq!(
    ///     verdict.explain(format_args!("{} of {}", verdict.id.1, verdict.id.0)),
    ///     "job master host-2 of job-1 is no longer reachable: 2 failed calls, not heard in the 1.2 s of being monitored, \
    ///      last error: connection refused, 1 of 4 others in trouble",
    /// );
    /// ```
    #[must_use]
    pub fn explain(&self, name: impl fmt::Display) -> String {
        let Self { peer, consecutive_failures: failures, .. } = self;
        let calls = if *failures == 1 { "call" } else { "calls" };
        let heard = match self.last_seen_age {
            Some(age) => format!("last heard {} ago", Seconds(age)),
            None => format!("not heard in the {} of being monitored", Seconds(self.silent_for)),
        };
        let mut text = match self.reason {
            Reason::Timeout => {
                format!("heartbeat of {peer} {name} timed out: {heard}, {failures} failed {calls}")
            }
            Reason::Unreachable => {
                format!("{peer} {name} is no longer reachable: {failures} failed {calls}, {heard}")
            }
            Reason::Stuck => {
                let age = Seconds(self.main_loop_age.unwrap_or_default());
                format!(
                    "{peer} {name} is stuck: its main loop has not turned for {age}, {heard}, {failures} failed {calls}"
                )
            }
        };
        self.evidence(&mut text);
        text
    }

    fn evidence(&self, text: &mut String) {
        // To write to a string cannot fail.
        if let Some(error) = &self.last_error {
            let _ = write!(text, ", last error: {error}");
        }
        if let Some(age) = self.main_loop_age.filter(|age| self.reason != Reason::Stuck && !age.is_zero()) {
            let _ = write!(text, ", its main loop had not turned for {}", Seconds(age));
        }
        if !self.own_stall.is_zero() {
            let _ = write!(text, ", {} of own stall not counted", Seconds(self.own_stall));
        }
        if let Some(OthersInTrouble { suspects, of }) =
            self.others_in_trouble.filter(|others| others.suspects > 0)
        {
            let _ = write!(text, ", {suspects} of {of} others in trouble");
        }
        if let Some(held) = self.held_for {
            let _ = write!(text, ", held for {} as a correlated loss", Seconds(held));
        }
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.as_secs_f64())
    }
}

impl<K: fmt::Display, N> fmt::Display for Verdict<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain(&self.id))
    }
}

impl<K: fmt::Debug + fmt::Display, N: fmt::Debug> std::error::Error for Verdict<K, N> {}
