//! The state machine of one target.
//!
//! RUNNING is left once, by whichever of timeout, unreachability, a stuck loop and cancelling comes first; the other states
//! absorb everything. That is what makes a verdict come at most once. A suspicion is no state of it: it comes and goes while
//! the monitor is RUNNING.

use crate::outcome::RpcOutcome;
use runtime_core::EpochMillis;
use std::fmt;
use std::time::Duration;

/// Where a monitor stands (Flink: `HeartbeatMonitor` and its states).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MonitorState {
    /// The target counts as alive.
    Running,
    /// It was silent for the whole timeout.
    Timeout,
    /// Too many calls in a row were refused.
    Unreachable,
    /// Its process answers, but its main loop has not turned for too long.
    Stuck,
    /// Nobody wants to know any more.
    Canceled,
}

impl fmt::Display for MonitorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "RUNNING",
            Self::Timeout => "TIMEOUT",
            Self::Unreachable => "UNREACHABLE",
            Self::Stuck => "STUCK",
            Self::Canceled => "CANCELED",
        })
    }
}

/// When a target was last heard, by the wall clock: for people, not for judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastHeartbeat {
    /// The target is not monitored.
    NotMonitored,
    /// It is, but has not been heard yet.
    NotYet,
    /// It was last heard then.
    At(EpochMillis),
}

impl LastHeartbeat {
    /// The number that the original returns: -1 if not monitored, 0 before the first, else milliseconds since 1970.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        match self {
            Self::NotMonitored => -1,
            Self::NotYet => 0,
            Self::At(EpochMillis(millis)) => millis,
        }
    }
}

/// What looking at a target's silence gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Alive; look again after this long.
    AliveFor(Duration),
    /// Timed out, just now. Said once.
    TimedOut,
    /// The monitor had left RUNNING before.
    Settled,
}

/// The monitor of one target. How long the target has been silent is its caller's to say.
///
/// ```
/// use heartbeat::{HeartbeatMonitor, Judgement, RpcOutcome};
/// use std::time::Duration;
///
/// let (s, timeout) = (Duration::from_secs, Duration::from_secs(50));
/// let mut monitor = HeartbeatMonitor::new();
/// assert!(!monitor.rpc_outcome(RpcOutcome::Unreachable, Some(2)));
/// assert_eq!(monitor.judge(s(20), timeout), Judgement::AliveFor(s(30)));
/// assert_eq!(monitor.judge(s(50), timeout), Judgement::TimedOut);
/// assert_eq!(monitor.judge(s(51), timeout), Judgement::Settled);
/// assert!(!monitor.rpc_outcome(RpcOutcome::Unreachable, Some(2)), "judged before");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatMonitor {
    consecutive_failures: u32,
    state: MonitorState,
    suspect: bool,
    /// Whether its first request has gone out. This and the next are here because their bytes would be empty.
    pub(crate) asked: bool,
    /// Whether its deadline had passed when it was looked at last.
    pub(crate) overdue: bool,
}

impl Default for HeartbeatMonitor {
    fn default() -> Self {
        Self::new()
    }
}

impl HeartbeatMonitor {
    /// A monitor in RUNNING.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            consecutive_failures: 0,
            state: MonitorState::Running,
            suspect: false,
            asked: false,
            overdue: false,
        }
    }

    /// Notes what became of a call to the target; a sign of life does not change the count, because it tells of the other
    /// direction. `true` if that just made it unreachable.
    #[must_use]
    pub fn rpc_outcome(&mut self, outcome: RpcOutcome, threshold: Option<u32>) -> bool {
        self.count(outcome);
        self.refused(threshold) && self.leave(MonitorState::Unreachable)
    }

    /// Notes what became of a call without judging it.
    pub fn count(&mut self, outcome: RpcOutcome) {
        match outcome {
            RpcOutcome::Delivered => self.consecutive_failures = 0,
            RpcOutcome::Unreachable => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            }
            RpcOutcome::Other => {}
        }
    }

    /// Whether as many calls in a row were refused as are enough for a verdict.
    #[must_use]
    pub fn refused(&self, threshold: Option<u32>) -> bool {
        threshold.is_some_and(|threshold| self.consecutive_failures >= threshold)
    }

    /// Looks at how long the target has been silent.
    #[must_use]
    pub fn judge(&mut self, silence: Duration, timeout: Duration) -> Judgement {
        if self.state != MonitorState::Running {
            return Judgement::Settled;
        }
        if silence < timeout {
            return Judgement::AliveFor(timeout - silence);
        }
        self.leave(MonitorState::Timeout);
        Judgement::TimedOut
    }

    /// Ends monitoring without a verdict.
    pub fn cancel(&mut self) {
        self.leave(MonitorState::Canceled);
    }

    /// Where the monitor stands.
    #[must_use]
    pub const fn state(&self) -> MonitorState {
        self.state
    }

    /// Whether the target counts as alive.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, MonitorState::Running)
    }

    /// Whether it is alive with a doubt.
    #[must_use]
    pub const fn is_suspect(&self) -> bool {
        self.suspect && self.is_running()
    }

    /// Raises or drops the suspicion. Whether that changed anything.
    pub fn suspect(&mut self, suspect: bool) -> bool {
        self.is_running() && std::mem::replace(&mut self.suspect, suspect) != suspect
    }

    /// Refused calls since the last delivered one.
    #[must_use]
    pub const fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    /// Leaves RUNNING for another state; only the first that asks does.
    pub(crate) fn leave(&mut self, to: MonitorState) -> bool {
        let running = self.is_running();
        if running {
            self.state = to;
        }
        running
    }
}
