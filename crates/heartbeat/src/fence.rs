//! The passive side's lease: it stops before the active side may have given it up.
//!
//! With one timeout on both sides, after a cut the old work may go on for seconds beside its replacement. So who is watched
//! holds a lease. It is reckoned from a moment of which the watcher has proof that it heard us: it gives back, with each
//! request, when we sent what it last heard. Then its own timeout cannot have begun before that moment, and a lease of
//! 0.8 of the timeout ends before any verdict, as long as the two clocks run at rates within a quarter of each other.
//! Neither the delay of a request nor the difference of the clocks matters: both moments are ours.

use runtime_core::Tick;
use std::time::Duration;

/// How much of the timeout a lease lasts: clocks may drift apart by 1 / 0.8.
const SHARE: (u32, u32) = (4, 5);

/// Below this, the clocks were only read a little apart.
const LEAST_SLEEP: Duration = Duration::from_millis(500);

/// A lease on the right to have effects.
///
/// ```
/// use heartbeat::SelfFence;
/// use runtime_core::Tick;
/// use std::time::Duration;
///
/// // Registered at 0 with a watcher that gives up after 50 s.
/// let mut fence = SelfFence::new(Tick::ZERO, Duration::from_secs(50));
/// assert_eq!(fence.deadline(), Tick::from_millis(40_000));
/// // A request shows that what we sent at 10 s was heard.
/// fence.renew(Tick::from_millis(10_000));
/// assert!(!fence.is_due(Tick::from_millis(49_999)));
/// assert!(fence.is_due(Tick::from_millis(50_000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfFence {
    lease: Duration,
    proven: Tick,
}

impl SelfFence {
    /// A lease that begins with what was sent at `sent` and has been answered, such as a registration. `timeout` is the
    /// watcher's.
    #[must_use]
    pub fn new(sent: Tick, timeout: Duration) -> Self {
        Self { lease: timeout / SHARE.1 * SHARE.0, proven: sent }
    }

    /// The watcher has shown that it heard what was sent at `sent`.
    pub fn renew(&mut self, sent: Tick) {
        self.proven = self.proven.max(sent);
    }

    /// The machine slept this long, and the clock that this lease is reckoned by stood still meanwhile. The watcher's did
    /// not.
    pub fn slept(&mut self, length: Duration) {
        self.proven = self.proven - length;
    }

    /// When effects have to stop.
    #[must_use]
    pub fn deadline(&self) -> Tick {
        self.proven + self.lease
    }

    /// Whether effects have to stop now.
    #[must_use]
    pub fn is_due(&self, now: Tick) -> bool {
        now >= self.deadline()
    }
}

/// Notices that the machine slept: by a clock that went on meanwhile.
///
/// ```
/// use heartbeat::Suspends;
/// use runtime_core::Tick;
/// use std::time::Duration;
///
/// let at = Tick::from_millis;
/// let mut suspends = Suspends::default();
/// assert_eq!(suspends.turn(at(1_000), at(501_000)), None, "the clocks have begun at different times");
/// assert_eq!(suspends.turn(at(2_000), at(502_010)), None);
/// assert_eq!(suspends.turn(at(3_000), at(803_010)), Some(Duration::from_secs(300)));
/// assert_eq!(suspends.turn(at(4_000), at(804_010)), None);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Suspends {
    /// By how much the one clock is ahead of the other.
    ahead: Option<Duration>,
}

impl Suspends {
    /// Looks at both clocks: the monotonic one, and one that counts the time of a suspended machine too. How long it was
    /// suspended since the look before, if it was.
    pub fn turn(&mut self, now: Tick, with_sleep: Tick) -> Option<Duration> {
        let ahead = with_sleep.since(now);
        let slept = ahead.saturating_sub(self.ahead.replace(ahead)?);
        // The two are not read at one moment.
        (slept > LEAST_SLEEP).then_some(slept)
    }
}
