//! When most targets fall silent at once, the likelier cause is one's own network.
//!
//! Before the first of them is judged, the verdicts are held, once, for at most half the timeout or two intervals. Meanwhile
//! the owner may probe something neutral. If they are still silent at the end they are dead: the bound is hard, so that a
//! true mass failure is reported.

use runtime_core::Tick;
use std::time::Duration;

/// Fewer than this are no mass.
const LEAST: usize = 3;

/// Whether verdicts wait, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Holding {
        since: Tick,
        until: Tick,
    },
    /// The hold has passed; until then there is no other.
    Spent {
        since: Tick,
        quiet_until: Tick,
    },
}

/// What becomes of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It falls; this long it was held, if it was.
    No(Option<Duration>),
    /// It waits until then. `began`: this verdict is the first that does.
    Until {
        /// When it is to be looked at again.
        until: Tick,
        /// Whether the hold began with it.
        began: bool,
    },
}

/// Holds verdicts once when many would fall together.
///
/// ```
/// use heartbeat::{CorrelatedLoss, Held};
/// use runtime_core::Tick;
/// use std::time::Duration;
///
/// let mut loss = CorrelatedLoss::new(Duration::from_secs(1), Duration::from_secs(5));
/// assert_eq!(loss.ask(Tick::from_millis(5_000), 2, 100), Held::No(None), "two are no mass");
/// let until = Tick::from_millis(7_500);
/// assert_eq!(loss.ask(Tick::from_millis(5_500), 60, 100), Held::Until { until: Tick::from_millis(7_500), began: true });
/// assert_eq!(loss.ask(until, 60, 100), Held::No(Some(Duration::from_secs(2))));
/// ```
#[derive(Debug, Clone)]
pub struct CorrelatedLoss {
    longest: Duration,
    timeout: Duration,
    state: State,
    count: u64,
}

impl CorrelatedLoss {
    /// For targets that are asked every `interval` and may be silent for `timeout`.
    #[must_use]
    pub fn new(interval: Duration, timeout: Duration) -> Self {
        let longest = (timeout / 2).min(interval.saturating_mul(2));
        Self { longest, timeout, state: State::Idle, count: 0 }
    }

    /// Whether the next answer of [`ask`](Self::ask) depends on how many would die: to count them costs a walk.
    #[must_use]
    pub fn wants_count(&self, now: Tick) -> bool {
        match self.state {
            State::Idle => true,
            State::Holding { .. } => false,
            State::Spent { quiet_until, .. } => now >= quiet_until,
        }
    }

    /// A target is about to be judged at `now`, while `dying` of `all`, itself included, are or would be within an interval.
    pub fn ask(&mut self, now: Tick, dying: usize, all: usize) -> Held {
        match self.state {
            State::Holding { since, until } if now >= until => {
                self.state = State::Spent { since, quiet_until: now + self.timeout };
                Held::No(Some(now.since(since)))
            }
            State::Holding { until, .. } => Held::Until { until, began: false },
            State::Spent { since, quiet_until } if now < quiet_until => Held::No(Some(now.since(since))),
            State::Idle | State::Spent { .. } => {
                self.state = State::Idle;
                if dying < LEAST || dying * 2 < all {
                    return Held::No(None);
                }
                let until = now + self.longest;
                self.state = State::Holding { since: now, until };
                self.count += 1;
                Held::Until { until, began: true }
            }
        }
    }

    /// Something neutral was probed. If it answered, the own network is well and the hold ends.
    pub fn probed(&mut self, reachable: bool, now: Tick) {
        if let State::Holding { since, until } = self.state
            && reachable
        {
            self.state = State::Holding { since, until: until.min(now) };
        }
    }

    /// Until when verdicts wait, if they do.
    #[must_use]
    pub fn held_until(&self, now: Tick) -> Option<Tick> {
        match self.state {
            State::Holding { until, .. } if until > now => Some(until),
            _ => None,
        }
    }

    /// How many holds there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss() -> CorrelatedLoss {
        CorrelatedLoss::new(Duration::from_secs(10), Duration::from_secs(50))
    }

    #[test]
    fn three_and_half_of_all_are_a_mass() {
        for (dying, all, held) in [(2, 2, false), (3, 6, true), (3, 7, false), (4, 7, true), (49, 100, false)]
        {
            let found = loss().ask(Tick::from_millis(1), dying, all);
            assert_eq!(matches!(found, Held::Until { began: true, .. }), held, "{dying} of {all}");
        }
    }

    #[test]
    fn the_bound_is_half_the_timeout_or_two_intervals() {
        assert_eq!(loss().longest, Duration::from_secs(20));
        assert_eq!(
            CorrelatedLoss::new(Duration::from_secs(10), Duration::from_secs(30)).longest,
            Duration::from_secs(15)
        );
    }

    #[test]
    fn a_hold_is_not_followed_by_another_until_a_timeout_has_passed() {
        let mut loss = loss();
        let at = Tick::from_millis;
        assert!(matches!(loss.ask(at(0), 60, 100), Held::Until { .. }));
        assert_eq!(loss.ask(at(20_000), 60, 100), Held::No(Some(Duration::from_secs(20))));
        assert!(!loss.wants_count(at(69_999)));
        assert!(matches!(loss.ask(at(69_999), 60, 100), Held::No(Some(_))));
        assert!(matches!(loss.ask(at(70_000), 60, 100), Held::Until { began: true, .. }));
    }

    #[test]
    fn a_probe_that_answers_ends_the_hold_and_one_that_does_not_leaves_it() {
        let mut loss = loss();
        let at = Tick::from_millis;
        assert!(matches!(loss.ask(at(0), 60, 100), Held::Until { .. }));
        loss.probed(false, at(1_000));
        assert_eq!(loss.held_until(at(1_000)), Some(at(20_000)));
        loss.probed(true, at(2_000));
        assert_eq!(loss.held_until(at(2_000)), None);
        assert_eq!(loss.ask(at(2_000), 60, 100), Held::No(Some(Duration::from_secs(2))));
    }
}
