//! When to ask a target: at once, and then at a place of its own in the interval.
//!
//! Targets often come together, after a change of leader all at once. If each were asked an interval after its first
//! request, they would be asked together for ever. So the second request goes to a place that is spread over the interval, and
//! the target keeps that place: also after a stall of the owner, when everything is due at once.

use runtime_core::Tick;
use std::time::Duration;

/// 2^64 divided by the golden ratio: its multiples fill the circle evenly at every length, without randomness and
/// without a hash of the id (Knuth, TAOCP 3, 6.4, theorem S).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hands out places in the interval.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    place: u64,
}

impl Spread {
    /// When to send the second request after a first at `now`: between a half and one and a half intervals later, so
    /// that a peer that refuses while it starts has time before its next call.
    pub(crate) fn second(&mut self, now: Tick, interval: Duration) -> Tick {
        self.place = self.place.wrapping_add(GOLDEN);
        // A share of the interval in units of 2^-64; it is below the interval.
        let share = (u128::from(nanos(interval)) * u128::from(self.place)) >> 64;
        now + interval / 2 + Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// When to send the request after one that was due at `due` and went out at `now`: at the target's place in the first
/// interval in which that is at least half an interval away. What was missed is not made up for, so requests
/// never pile up.
pub(crate) fn following(due: Tick, now: Tick, interval: Duration) -> Tick {
    let step = nanos(interval).max(1);
    let wanted = nanos(now.since(due)).saturating_add(step / 2);
    let steps = wanted.div_ceil(step).max(1);
    Tick::from_nanos(due.as_nanos().saturating_add(step.saturating_mul(steps)))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const I: Duration = Duration::from_millis(1_000);

    #[test]
    fn a_request_on_time_is_followed_one_interval_later() {
        for late in [0, 1, 50, 500] {
            let following = following(Tick::from_millis(3_000), Tick::from_millis(3_000 + late), I);
            assert_eq!(following, Tick::from_millis(4_000), "{late} ms late");
        }
    }

    #[test]
    fn a_late_request_keeps_half_an_interval_to_the_next_and_the_place() {
        for (late, next) in [(501, 5_000), (1_000, 5_000), (3_000, 7_000), (3_700, 8_000)] {
            let following = following(Tick::from_millis(3_000), Tick::from_millis(3_000 + late), I);
            assert_eq!(following, Tick::from_millis(next), "{late} ms late");
        }
    }
}
