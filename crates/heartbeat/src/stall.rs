//! Judge yourself before you judge others: notices that the owner itself stood still.
//!
//! When a process is paused longer than the timeout (garbage, swapping, SIGSTOP, a laptop's lid), every deadline has passed when
//! it goes on, and heartbeats lie unread in its queue. To judge then is to declare everybody dead. The guard compares when
//! the owner's loop was to turn with when it did. Where the difference is above [`OwnStallGuard::bar`], nobody was watched
//! since the turn before: that time does not count as anybody's silence, and for a while afterwards nobody is judged, so
//! that what lies in the queue is read first (Cassandra: the local pause of its failure detector; Lifeguard).
//!
//! Time that the guard has set aside is never given back: a dead target is found later by the length of the stall, and found.

use runtime_core::Tick;
use std::collections::VecDeque;
use std::time::Duration;

/// Below this, a loop that is merely busy would be taken for one that stood.
const LEAST_BAR: Duration = Duration::from_millis(500);
/// More stalls than this within one timeout are joined; each is a few words.
const KEPT: usize = 32;

/// What a loop that is late tells about itself.
///
/// ```
/// use heartbeat::OwnStallGuard;
/// use runtime_core::Tick;
/// use std::time::Duration;
///
/// let mut guard = OwnStallGuard::new(Duration::from_secs(1), Duration::from_secs(5));
/// assert_eq!(guard.turn(Tick::ZERO), None);
/// let due = guard.next_turn().unwrap();
/// // It was to turn after 100 ms and turns after 12 s.
/// let stall = guard.turn(Tick::from_millis(12_100));
/// assert_eq!((due, stall), (Tick::from_millis(100), Some(Duration::from_secs(12))));
/// // Nothing of the 12.1 s since the turn before is anybody's silence; and nobody is judged for a second.
/// assert_eq!(guard.set_aside(Tick::ZERO, Tick::from_millis(12_100)), Duration::from_millis(12_100));
/// assert_eq!(guard.held_until(), Tick::from_millis(13_100));
/// ```
#[derive(Debug, Clone)]
pub struct OwnStallGuard {
    interval: Duration,
    window: Duration,
    last_turn: Tick,
    expected: Option<Tick>,
    /// From when to when, oldest first.
    stalls: VecDeque<(Tick, Tick)>,
    held_until: Tick,
    total: Duration,
    count: u64,
}

impl OwnStallGuard {
    /// A guard for targets that are asked every `interval` and may be silent for `timeout`.
    #[must_use]
    pub const fn new(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            window: timeout,
            last_turn: Tick::ZERO,
            expected: None,
            stalls: VecDeque::new(),
            held_until: Tick::ZERO,
            total: Duration::ZERO,
            count: 0,
        }
    }

    /// How late a turn must be to be a stall: half a second or a tenth of the interval, whichever is more.
    #[must_use]
    pub fn bar(&self) -> Duration {
        LEAST_BAR.max(self.interval / 10)
    }

    /// When the loop is to turn again at the latest, so that a stall is noticed whether or not anything was due in it.
    #[must_use]
    pub const fn next_turn(&self) -> Option<Tick> {
        self.expected
    }

    /// Begins anew, without a stall: while nobody was monitored, nobody expected a turn.
    pub fn begin(&mut self, now: Tick) {
        self.last_turn = now;
        self.expected = Some(now + self.between_turns());
    }

    /// Nobody is monitored any more: no turn is expected.
    pub fn rest(&mut self) {
        self.expected = None;
    }

    /// A tenth of the interval, and no more often than ten times a second.
    fn between_turns(&self) -> Duration {
        (self.interval / 10).max(Duration::from_millis(100))
    }

    /// The loop turns, because something is due or because of [`next_turn`](Self::next_turn). How long it stood still, if it did.
    pub fn turn(&mut self, now: Tick) -> Option<Duration> {
        let last_turn = std::mem::replace(&mut self.last_turn, now);
        let expected = self.expected.replace(now + self.between_turns())?;
        let late = now.since(expected);
        if late <= self.bar() {
            return None;
        }
        // It stopped at some moment since the turn before: in favour of those who would be judged, right after that.
        self.stood_still(last_turn, now);
        Some(late)
    }

    /// Notes a stall that was seen by other means, such as a suspended machine whose monotonic clock stood still as well.
    pub fn stood_still(&mut self, from: Tick, to: Tick) {
        let length = to.since(from);
        let oldest_that_matters = from - self.window.saturating_mul(2);
        while self.stalls.front().is_some_and(|(_, end)| *end < oldest_that_matters) {
            self.stalls.pop_front();
        }
        if self.stalls.len() == KEPT
            && let Some((_, end)) = self.stalls.back_mut()
        {
            *end = to;
        } else {
            self.stalls.push_back((from, to));
        }
        self.held_until = self.held_until.max(to + length.min(self.interval));
        self.total = self.total.saturating_add(length);
        self.count += 1;
    }

    /// How much of the time between the two is nobody's silence.
    #[must_use]
    pub fn set_aside(&self, from: Tick, to: Tick) -> Duration {
        self.stalls.iter().map(|(begin, end)| to.min(*end).since(from.max(*begin))).sum()
    }

    /// Until when nobody is judged.
    #[must_use]
    pub const fn held_until(&self) -> Tick {
        self.held_until
    }

    /// The length of all stalls so far.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }

    /// How many stalls there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> OwnStallGuard {
        OwnStallGuard::new(Duration::from_secs(1), Duration::from_secs(5))
    }

    #[test]
    fn a_turn_that_is_half_a_second_late_is_no_stall_and_one_that_is_later_is() {
        for (late, stall) in [(0, None), (500, None), (501, Some(Duration::from_millis(501)))] {
            let mut guard = guard();
            assert_eq!(guard.turn(Tick::ZERO), None);
            assert_eq!(guard.turn(Tick::from_millis(100 + late)), stall, "{late}");
        }
    }

    #[test]
    fn only_the_overlap_is_set_aside() {
        let mut guard = guard();
        guard.stood_still(Tick::from_millis(1_000), Tick::from_millis(3_000));
        guard.stood_still(Tick::from_millis(4_000), Tick::from_millis(4_700));
        for (from, to, aside) in
            [(0, 10_000, 2_700), (2_000, 10_000, 1_700), (3_500, 4_200, 200), (5_000, 9_000, 0)]
        {
            let found = guard.set_aside(Tick::from_millis(from), Tick::from_millis(to));
            assert_eq!(found, Duration::from_millis(aside), "{from} {to}");
        }
        assert_eq!((guard.count(), guard.total()), (2, Duration::from_millis(2_700)));
    }

    #[test]
    fn a_hold_is_never_longer_than_an_interval() {
        let mut guard = guard();
        guard.stood_still(Tick::ZERO, Tick::from_millis(60_000));
        assert_eq!(guard.held_until(), Tick::from_millis(61_000));
    }

    #[test]
    fn many_stalls_do_not_pile_up() {
        let mut guard = guard();
        for n in 0..10_000_u64 {
            guard.stood_still(Tick::from_millis(n * 1_000), Tick::from_millis(n * 1_000 + 600));
        }
        assert!(guard.stalls.len() <= KEPT);
    }
}
