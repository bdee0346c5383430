//! A limit of the rate at which a source reads: a token bucket whose time is passed in.

use std::time::Duration;

use runtime_core::Tick;

/// The longest time's worth of records that may follow each other at once after a pause. Short enough that a service
/// behind the job sees the rate and not bursts, long enough that a thread need not be woken for each record.
const BURST: Duration = Duration::from_millis(100);

/// What a float may be short of a whole token and still be one.
const ROUNDING: f64 = 1e-6;

/// Hands out permissions to read a record.
///
/// ```
/// use connectors::source::rate::RateLimiter;
/// use runtime_core::Tick;
///
/// let mut limiter = RateLimiter::new(10.0, Tick::ZERO);
/// assert_eq!(limiter.take(Tick::ZERO), Ok(()));
/// let wait_until = limiter.take(Tick::ZERO).unwrap_err();
/// assert_eq!(limiter.take(wait_until), Ok(()));
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter {
    per_second: f64,
    tokens: f64,
    refilled_at: Tick,
}

impl RateLimiter {
    /// A limiter of `per_second` records, above zero, that lets the first one pass at once.
    #[must_use]
    pub fn new(per_second: f64, now: Tick) -> Self {
        Self { per_second: positive(per_second), tokens: 1.0, refilled_at: now }
    }

    /// Goes on at another rate: the share of a subtask grows as others end.
    pub fn set_rate(&mut self, per_second: f64, now: Tick) {
        self.refill(now);
        self.per_second = positive(per_second);
        self.tokens = self.tokens.min(self.most());
    }

    /// Takes the permission to read one record.
    ///
    /// # Errors
    ///
    /// When to ask again: nothing was taken.
    pub fn take(&mut self, now: Tick) -> Result<(), Tick> {
        self.refill(now);
        if self.tokens + ROUNDING >= 1.0 {
            self.tokens = (self.tokens - 1.0).max(0.0);
            return Ok(());
        }
        // A century stands for a rate so low that it is none.
        let seconds = ((1.0 - self.tokens) / self.per_second).min(3_155_760_000.0);
        Err(now + Duration::from_secs_f64(seconds) + Duration::from_nanos(1))
    }

    fn refill(&mut self, now: Tick) {
        let elapsed = now.since(self.refilled_at).as_secs_f64();
        self.tokens = elapsed.mul_add(self.per_second, self.tokens).min(self.most());
        self.refilled_at = self.refilled_at.max(now);
    }

    fn most(&self) -> f64 {
        (self.per_second * BURST.as_secs_f64()).max(1.0)
    }
}

/// The job file has refused zero and less; what comes by another way is the lowest rate instead of a division by zero.
fn positive(per_second: f64) -> f64 {
    if per_second > 0.0 { per_second } else { f64::MIN_POSITIVE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many records pass from `from` to `to`, asking again exactly when told.
    fn pass(limiter: &mut RateLimiter, from: Tick, to: Tick) -> u32 {
        let (mut now, mut passed) = (from, 0);
        while now < to {
            match limiter.take(now) {
                Ok(()) => passed += 1,
                Err(later) => now = later,
            }
        }
        passed
    }

    #[test]
    fn the_rate_is_kept_over_a_long_time_whatever_it_is() {
        for per_second in [0.5, 3.0, 1_000.0, 123_456.7] {
            let mut limiter = RateLimiter::new(per_second, Tick::ZERO);
            let passed = f64::from(pass(&mut limiter, Tick::ZERO, Tick::from_millis(5_000)));
            let expected = per_second * 5.0;
            assert!((passed - expected).abs() <= expected.mul_add(0.001, 1.0), "{per_second}: {passed}");
        }
    }

    #[test]
    fn after_a_pause_no_more_than_a_tenth_of_a_second_comes_at_once() {
        let mut limiter = RateLimiter::new(1_000.0, Tick::ZERO);
        let later = Tick::from_millis(60_000);
        let mut at_once = 0;
        while limiter.take(later).is_ok() {
            at_once += 1;
        }
        assert_eq!(at_once, 100);
    }

    #[test]
    fn who_asks_when_told_is_not_refused_again() {
        let mut limiter = RateLimiter::new(7.0, Tick::from_millis(3));
        let mut now = Tick::from_millis(3);
        for _ in 0..1_000 {
            if let Err(later) = limiter.take(now) {
                assert!(later > now);
                now = later;
                assert_eq!(limiter.take(now), Ok(()));
            }
        }
    }

    #[test]
    fn a_new_rate_holds_from_now_on() {
        let mut limiter = RateLimiter::new(10.0, Tick::ZERO);
        pass(&mut limiter, Tick::ZERO, Tick::from_millis(1_000));
        limiter.set_rate(100.0, Tick::from_millis(1_000));
        let passed = pass(&mut limiter, Tick::from_millis(1_000), Tick::from_millis(2_000));
        assert!((99..=101).contains(&passed), "{passed}");
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_pass_and_does_not_divide_by_it() {
        let mut limiter = RateLimiter::new(0.0, Tick::ZERO);
        assert_eq!(limiter.take(Tick::ZERO), Ok(()));
        assert!(limiter.take(Tick::from_millis(1_000_000)).is_err());
    }
}
