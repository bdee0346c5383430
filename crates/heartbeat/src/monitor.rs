//! The state machine of one target.
//!
//! RUNNING is left once, by whichever of timeout, unreachability and cancelling comes first; the other three states
//! absorb everything. That is what makes a verdict come at most once.

use crate::outcome::RpcOutcome;
use runtime_core::{EpochMillis, Tick};
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
    /// Nobody wants to know any more.
    Canceled,
}

impl fmt::Display for MonitorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "RUNNING",
            Self::Timeout => "TIMEOUT",
            Self::Unreachable => "UNREACHABLE",
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

/// What can be shown of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    /// Where its monitor stands.
    pub state: MonitorState,
    /// When it was last heard, by the wall clock.
    pub last_heartbeat: LastHeartbeat,
    /// How long ago that was, by the monotonic clock; before the first, since it is monitored.
    pub silent_for: Duration,
    /// Refused calls since the last delivered one.
    pub consecutive_failures: u32,
}

/// What looking at a target's deadline gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Alive; look again then.
    AliveUntil(Tick),
    /// Timed out, just now. Said once.
    TimedOut,
    /// The monitor had left RUNNING before.
    Settled,
}

/// The monitor of one target, with the time passed in.
///
/// ```
/// use heartbeat::{HeartbeatMonitor, Judgement, MonitorState};
/// use runtime_core::{EpochMillis, Tick};
/// use std::time::Duration;
///
/// let timeout = Duration::from_secs(50);
/// let mut monitor = HeartbeatMonitor::new(Tick::ZERO);
/// monitor.receive_heartbeat(Tick::from_millis(30_000), EpochMillis(1_700_000_030_000));
/// assert_eq!(monitor.judge(Tick::from_millis(50_000), timeout), Judgement::AliveUntil(Tick::from_millis(80_000)));
/// assert_eq!(monitor.judge(Tick::from_millis(80_000), timeout), Judgement::TimedOut);
/// assert_eq!(monitor.judge(Tick::from_millis(80_001), timeout), Judgement::Settled);
/// ```
#[derive(Debug, Clone)]
pub struct HeartbeatMonitor {
    state: MonitorState,
    monitored_since: Tick,
    last_seen: Option<(Tick, EpochMillis)>,
    consecutive_failures: u32,
}

impl HeartbeatMonitor {
    /// A monitor whose timeout runs from `now`, though nothing has been heard yet.
    #[must_use]
    pub const fn new(now: Tick) -> Self {
        Self { state: MonitorState::Running, monitored_since: now, last_seen: None, consecutive_failures: 0 }
    }

    /// Notes a sign of life. In a final state too, but it revives nothing; and the count of refused calls stays,
    /// because it tells of the other direction.
    pub fn receive_heartbeat(&mut self, now: Tick, wall: EpochMillis) {
        // What waited in a queue may come with an older time than what overtook it.
        let latest = self.last_seen.map_or(now, |(seen, _)| seen.max(now));
        self.last_seen = Some((latest, wall));
    }

    /// Notes what became of a call to the target. `true` if that just made it unreachable.
    #[must_use]
    pub fn rpc_outcome(&mut self, outcome: RpcOutcome, threshold: Option<u32>) -> bool {
        match outcome {
            RpcOutcome::Delivered => self.consecutive_failures = 0,
            RpcOutcome::Unreachable => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1)
            }
            RpcOutcome::Other => {}
        }
        let reached = threshold.is_some_and(|threshold| self.consecutive_failures >= threshold);
        reached && self.leave(MonitorState::Unreachable)
    }

    /// Looks at the deadline: `timeout` after the last sign of life, or after the start of monitoring.
    #[must_use]
    pub fn judge(&mut self, now: Tick, timeout: Duration) -> Judgement {
        if self.state != MonitorState::Running {
            return Judgement::Settled;
        }
        let deadline = self.heard_or_monitored_since() + timeout;
        if deadline > now {
            return Judgement::AliveUntil(deadline);
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

    /// Since when the target has been monitored.
    #[must_use]
    pub const fn monitored_since(&self) -> Tick {
        self.monitored_since
    }

    /// When the target was last heard, by the monotonic clock.
    #[must_use]
    pub fn last_seen(&self) -> Option<Tick> {
        self.last_seen.map(|(seen, _)| seen)
    }

    /// When the target was last heard, by the wall clock.
    #[must_use]
    pub fn last_heartbeat(&self) -> LastHeartbeat {
        self.last_seen.map_or(LastHeartbeat::NotYet, |(_, wall)| LastHeartbeat::At(wall))
    }

    /// Refused calls since the last delivered one.
    #[must_use]
    pub const fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    /// What can be shown of the target at `now`.
    #[must_use]
    pub fn liveness(&self, now: Tick) -> Liveness {
        Liveness {
            state: self.state,
            last_heartbeat: self.last_heartbeat(),
            silent_for: now.since(self.heard_or_monitored_since()),
            consecutive_failures: self.consecutive_failures,
        }
    }

    fn heard_or_monitored_since(&self) -> Tick {
        self.last_seen().unwrap_or(self.monitored_since)
    }

    fn leave(&mut self, to: MonitorState) -> bool {
        let running = self.state == MonitorState::Running;
        if running {
            self.state = to;
        }
        running
    }
}
