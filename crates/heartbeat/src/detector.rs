//! The adaptive detector: how long a silence of this target is too long, by its own habits.
//!
//! The gaps between heartbeats are taken to be normally distributed, and the *suspicion level* of a silence is
//! `phi = -log10(P(gap > silence))` (Hayashibara and others, "The phi accrual failure detector", 2004; Akka's variant). At
//! `phi = 8` one in a hundred million silences is that long by chance.
//!
//! It never judges alone. It is no faster than three intervals, so that one lost answer is no death however regular the peer
//! was; and never slower than `heartbeat.timeout`. A target of which fewer than [`PRIOR`] gaps are known is judged by the
//! timeout alone.

use std::collections::VecDeque;
use std::time::Duration;

/// How many gaps are kept.
const WINDOW: usize = 200;
/// So many gaps of one interval are believed before any is seen.
pub(crate) const PRIOR: usize = 5;
/// The silence, in standard deviations beyond the mean, at which `phi` is 8.
const DEATH: f64 = 5.612;
/// A peer that is regular to the millisecond must not die of the first hiccup.
const LEAST_DEVIATION: Duration = Duration::from_millis(100);

/// How silence is judged (`heartbeat.detector`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detector {
    /// By `heartbeat.timeout` alone, as Flink does.
    #[default]
    Fixed,
    /// By what is unusual for the target, between three intervals and `heartbeat.timeout`.
    Adaptive,
}

/// The gaps between a target's heartbeats.
///
/// ```
/// use heartbeat::Gaps;
/// use std::time::Duration;
///
/// let (interval, timeout) = (Duration::from_secs(1), Duration::from_secs(50));
/// let mut gaps = Gaps::new(interval);
/// assert_eq!(gaps.limit(timeout), timeout, "nothing is known yet");
/// for _ in 0..200 {
///     gaps.record(interval);
/// }
/// assert_eq!(gaps.limit(timeout), 3 * interval, "regular: as fast as it gets");
/// assert!(gaps.phi(Duration::from_millis(1_300)) < 4.0);
/// assert!(gaps.phi(Duration::from_millis(1_600)) > 8.0);
/// ```
#[derive(Debug, Clone)]
pub struct Gaps {
    interval: Duration,
    /// Microseconds. An hour of silence is far beyond every timeout that makes sense.
    window: VecDeque<u32>,
    sum: u64,
    squares: u128,
}

impl Gaps {
    /// No gap is known of a peer that is to be heard every `interval`.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { interval, window: VecDeque::new(), sum: 0, squares: 0 }
    }

    /// Notes a gap. One during which the watcher itself stood still, or of more than the timeout, tells nothing of the
    /// peer's habits and is not to be noted.
    pub fn record(&mut self, gap: Duration) {
        if self.window.len() == WINDOW {
            let oldest = self.window.pop_front().unwrap_or(0);
            self.sum -= u64::from(oldest);
            self.squares -= u128::from(oldest) * u128::from(oldest);
        }
        let micros = u32::try_from(gap.as_micros()).unwrap_or(u32::MAX);
        self.window.push_back(micros);
        self.sum += u64::from(micros);
        self.squares += u128::from(micros) * u128::from(micros);
    }

    /// How many gaps are known, 200 at most.
    #[must_use]
    pub fn known(&self) -> usize {
        self.window.len()
    }

    /// The silence after which the target is dead.
    #[must_use]
    pub fn limit(&self, timeout: Duration) -> Duration {
        if self.window.len() < PRIOR {
            return timeout;
        }
        let (mean, deviation) = self.shape();
        let unusual = Duration::try_from_secs_f64(mean + DEATH * deviation).unwrap_or(timeout);
        unusual.max(self.interval * 3).min(timeout)
    }

    /// The suspicion level of a silence, for display.
    #[must_use]
    pub fn phi(&self, silence: Duration) -> f64 {
        let (mean, deviation) = self.shape();
        let y = (silence.as_secs_f64() - mean) / deviation;
        // The logistic approximation of the normal distribution's tail, good to 0.00014 (Akka's).
        let e = (-y * (1.5976 + 0.070_566 * y * y)).exp();
        let tail = if y > 0.0 { e / (1.0 + e) } else { 1.0 - 1.0 / (1.0 + e) };
        -tail.log10()
    }

    /// Mean and standard deviation in seconds, with the prior.
    fn shape(&self) -> (f64, f64) {
        let interval = self.interval.as_secs_f64();
        let prior = PRIOR as f64;
        let n = self.window.len() as f64 + prior;
        let mean = (self.sum as f64 / 1e6 + prior * interval) / n;
        let squares = (self.squares as f64 / 1e12 + prior * interval * interval) / n;
        let least = LEAST_DEVIATION.max(self.interval / 10).as_secs_f64();
        (mean, (squares - mean * mean).max(0.0).sqrt().max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn the_more_irregular_a_peer_is_the_longer_it_may_be_silent() {
        let limit = |spread: u64| {
            let mut gaps = Gaps::new(S);
            for round in 0..200_u64 {
                gaps.record(Duration::from_millis(1_000 - spread + round % 3 * spread));
            }
            gaps.limit(50 * S)
        };
        assert_eq!(limit(20), 3 * S);
        assert!(limit(600) > 3 * S && limit(600) < limit(900), "{:?} {:?}", limit(600), limit(900));
        assert!(limit(900) < 50 * S);
    }

    #[test]
    fn it_is_never_slower_than_the_timeout() {
        let mut gaps = Gaps::new(S);
        (0..200).for_each(|round| gaps.record(S * (round % 40)));
        assert_eq!(gaps.limit(20 * S), 20 * S);
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut gaps = Gaps::new(S);
        (0..200).for_each(|_| gaps.record(9 * S));
        (0..200).for_each(|_| gaps.record(S));
        assert_eq!((gaps.known(), gaps.limit(50 * S)), (200, 3 * S));
    }

    #[test]
    fn the_level_of_death_is_eight() {
        let mut gaps = Gaps::new(S);
        (0..200).for_each(|round| gaps.record(Duration::from_millis(600 + 400 * (round % 3))));
        let (mean, deviation) = gaps.shape();
        let phi = gaps.phi(Duration::from_secs_f64(mean + DEATH * deviation));
        assert!((7.5..9.5).contains(&phi), "{phi}");
    }
}
