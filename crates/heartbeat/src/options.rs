//! The options of heartbeating, and what makes no sense in them.

use crate::detector::Detector;
use std::time::Duration;

const INTERVAL: &str = "heartbeat.interval";
const TIMEOUT: &str = "heartbeat.timeout";
const THRESHOLD: &str = "heartbeat.rpc-failure-threshold";
const STUCK: &str = "heartbeat.stuck-timeout";
const FENCE: &str = "heartbeat.self-fence";

/// Below this, heartbeats cost more than they tell: at 1,000 targets it is 10,000 calls a second.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// How often, how long and how many (Flink: `HeartbeatManagerOptions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatOptions {
    /// Between two requests to one target. Positive, at least 100 ms. `heartbeat.interval`, 10 s.
    pub interval: Duration,
    /// How long a target may be silent. More than the interval, better at least three of it. `heartbeat.timeout`, 50 s.
    pub timeout: Duration,
    /// How many refused calls in a row make a target unreachable; -1 counts but never judges.
    /// `heartbeat.rpc-failure-threshold`, 2.
    pub rpc_failure_threshold: i32,
    /// How silence is judged. `heartbeat.detector`, fixed.
    pub detector: Detector,
    /// Whether a target that missed one answer, or refused one call, is a *suspect* until it is heard again: nothing is
    /// killed, and the owner gives it nothing new. Off, as Flink has none.
    pub suspicion: bool,
    /// Whether the owner's own stalls are no silence of its targets ([`OwnStallGuard`](crate::OwnStallGuard)). Off, as in
    /// Flink; a server should have it on. The owner is then woken ten times an interval.
    pub own_stall_guard: bool,
    /// Whether verdicts wait once when most targets fall silent together ([`CorrelatedLoss`](crate::CorrelatedLoss)).
    /// `heartbeat.hold`, off.
    pub hold: bool,
    /// How long the main loop of a target that sends liveness frames may not turn. `None`: as long as `timeout`.
    /// `heartbeat.stuck-timeout`.
    pub stuck_timeout: Option<Duration>,
    /// Whether the passive side stops its effects before the active side may give it up
    /// ([`SelfFence`](crate::SelfFence)). `heartbeat.self-fence`, off.
    pub self_fence: bool,
    /// Accepts an interval below 100 ms: for tests.
    pub allow_short_interval: bool,
    /// Accepts a timeout equal to the interval, as Flink does, though it declares healthy targets dead.
    pub allow_timeout_of_one_interval: bool,
}

impl Default for HeartbeatOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(50),
            rpc_failure_threshold: 2,
            detector: Detector::Fixed,
            suspicion: false,
            own_stall_guard: false,
            hold: false,
            stuck_timeout: None,
            self_fence: false,
            allow_short_interval: false,
            allow_timeout_of_one_interval: false,
        }
    }
}

/// Why heartbeating cannot work with these options. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The interval is zero.
    #[error("{INTERVAL} is 0: set it to a positive duration such as 10s")]
    NoInterval,
    /// The interval is too short to be meant.
    #[error("{INTERVAL} is {0:?}: set it to at least {SHORTEST_INTERVAL:?}")]
    IntervalTooShort(Duration),
    /// The timeout is shorter than the interval.
    #[error("{TIMEOUT} is {timeout:?}, shorter than {INTERVAL}, {interval:?}: set it to several intervals")]
    TimeoutBelowInterval {
        /// As configured.
        timeout: Duration,
        /// As configured.
        interval: Duration,
    },
    /// The timeout is the interval.
    #[error(
        "{TIMEOUT} and {INTERVAL} are both {0:?}: an answer on time would come too late; set {TIMEOUT} to several intervals"
    )]
    TimeoutOfOneInterval(Duration),
    /// The threshold is 0 or below -1.
    #[error("{THRESHOLD} is {0}: set it to a positive number, or to -1 to judge by silence alone")]
    Threshold(i32),
    /// The loop's timeout is zero.
    #[error("{STUCK} is 0: every loop would count as stuck; set it to several intervals, or leave it out")]
    NoStuckTimeout,
    /// The transport notices a dead connection later than the verdict falls, and reuses it until then.
    #[error(
        "keep-alive pings after {time:?} that wait {timeout:?} notice a dead connection no sooner than {TIMEOUT}, \
         {heartbeat_timeout:?}: shorten them or lengthen {TIMEOUT}"
    )]
    KeepAliveTooLong {
        /// Until a ping is sent.
        time: Duration,
        /// How long its answer is waited for.
        timeout: Duration,
        /// As configured.
        heartbeat_timeout: Duration,
    },
}

/// What works but is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionWarning {
    /// Few lost answers are enough for a verdict.
    #[error(
        "{TIMEOUT} is {timeout:?}, less than three times {INTERVAL}, {interval:?}: one or two late answers end in a verdict"
    )]
    FewIntervals {
        /// As configured.
        timeout: Duration,
        /// As configured.
        interval: Duration,
    },
    /// The timeout always falls before so many calls can be refused.
    #[error(
        "{THRESHOLD} {threshold} times {INTERVAL} {interval:?} is longer than {TIMEOUT}, {timeout:?}: the threshold never decides"
    )]
    ThresholdNeverReached {
        /// As configured.
        threshold: u32,
        /// As configured.
        interval: Duration,
        /// As configured.
        timeout: Duration,
    },
    /// The lease of the passive side hardly outlasts the requests that renew it.
    #[error(
        "{FENCE} stops work after 0.8 times {TIMEOUT}, {timeout:?}, and is renewed by what came back within two times \
         {INTERVAL}, {interval:?}: one lost request stops work; set {TIMEOUT} to four intervals or more"
    )]
    TightSelfFence {
        /// As configured.
        timeout: Duration,
        /// As configured.
        interval: Duration,
    },
}

impl HeartbeatOptions {
    /// Checks the options against each other.
    ///
    /// ```
    /// # use heartbeat::{HeartbeatOptions, OptionWarning};
    /// # use std::time::Duration;
    /// let hasty = HeartbeatOptions { timeout: Duration::from_secs(25), ..HeartbeatOptions::default() };
    /// let warnings = hasty.validate()?;
    /// assert!(matches!(warnings[..], [OptionWarning::FewIntervals { .. }]));
    /// # Ok::<(), heartbeat::OptionError>(())
    /// ```
    ///
    /// # Errors
    /// The first contradiction found, with the key to change.
    pub fn validate(&self) -> Result<Vec<OptionWarning>, OptionError> {
        let Self { interval, timeout, .. } = *self;
        if interval.is_zero() {
            return Err(OptionError::NoInterval);
        }
        if interval < SHORTEST_INTERVAL && !self.allow_short_interval {
            return Err(OptionError::IntervalTooShort(interval));
        }
        if timeout < interval {
            return Err(OptionError::TimeoutBelowInterval { timeout, interval });
        }
        if timeout == interval && !self.allow_timeout_of_one_interval {
            return Err(OptionError::TimeoutOfOneInterval(timeout));
        }
        if self.stuck_timeout.is_some_and(|stuck| stuck.is_zero()) {
            return Err(OptionError::NoStuckTimeout);
        }
        let threshold = self.threshold()?;
        let mut warnings = Vec::new();
        if timeout < interval.saturating_mul(3) {
            warnings.push(OptionWarning::FewIntervals { timeout, interval });
        }
        if let Some(threshold) = threshold.filter(|threshold| interval.saturating_mul(*threshold) > timeout) {
            warnings.push(OptionWarning::ThresholdNeverReached { threshold, interval, timeout });
        }
        // A lease of 0.8 timeouts is three intervals long at 3.75.
        if self.self_fence && timeout.saturating_mul(4) < interval.saturating_mul(15) {
            warnings.push(OptionWarning::TightSelfFence { timeout, interval });
        }
        Ok(warnings)
    }

    /// The threshold, `None` if it is switched off.
    pub(crate) fn threshold(&self) -> Result<Option<u32>, OptionError> {
        match u32::try_from(self.rpc_failure_threshold) {
            Ok(0) => Err(OptionError::Threshold(0)),
            Ok(threshold) => Ok(Some(threshold)),
            Err(_) if self.rpc_failure_threshold == -1 => Ok(None),
            Err(_) => Err(OptionError::Threshold(self.rpc_failure_threshold)),
        }
    }
}
