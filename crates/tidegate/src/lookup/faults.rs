//! Which answers are replaced by a failure.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A reproducible choice: the same seed chooses the same requests, counted in the order in which they came.
#[derive(Debug)]
pub struct Faults {
    rate: f64,
    random: StdRng,
}

impl Faults {
    /// Failures for a share of all requests, between 0 (none) and 1 (all); what lies outside is taken as the nearer one.
    #[must_use]
    pub fn new(rate: f64, seed: u64) -> Self {
        let rate = if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) };
        Self { rate, random: StdRng::seed_from_u64(seed) }
    }

    /// Whether the next request fails.
    pub fn strikes(&mut self) -> bool {
        self.random.random_bool(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rate: f64, seed: u64) -> Vec<bool> {
        let mut faults = Faults::new(rate, seed);
        (0..10_000).map(|_| faults.strikes()).collect()
    }

    #[test]
    fn equal_seeds_choose_equal_requests_and_others_choose_others() {
        assert_eq!(of(0.1, 7), of(0.1, 7));
        assert_ne!(of(0.1, 7), of(0.1, 8));
    }

    #[test]
    fn the_share_is_the_one_that_was_asked_for() {
        let struck = of(0.1, 7).into_iter().filter(|struck| *struck).count();
        assert!((850..1150).contains(&struck), "{struck} of 10,000 for seed 7");
        assert!(of(0.0, 7).iter().all(|struck| !struck));
        assert!(of(1.0, 7).iter().all(|struck| *struck));
        assert!(of(f64::NAN, 7).iter().all(|struck| !struck));
    }
}
