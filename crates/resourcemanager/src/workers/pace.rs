//! How fast workers are started while they fail.

use std::collections::VecDeque;
use std::time::Duration;

use runtime_core::Tick;

const MINUTE: Duration = Duration::from_secs(60);

/// Lets starts through until too many have failed within a minute; from then on each failure makes a pause (Flink:
/// `resourcemanager.start-worker.max-failure-rate` and `.retry-interval`). A command that crashes at once would otherwise
/// be started as fast as the machine can (C-132).
#[derive(Debug)]
pub struct StartPace {
    most: usize,
    pause: Duration,
    failures: VecDeque<Tick>,
    paused_until: Option<Tick>,
}

impl StartPace {
    /// Up to `most` failures in a minute pass without a pause.
    #[must_use]
    pub fn new(most: u32, pause: Duration) -> Self {
        Self { most: most as usize, pause, failures: VecDeque::new(), paused_until: None }
    }

    /// A start has failed.
    pub fn failed(&mut self, now: Tick) {
        self.failures.push_back(now);
        self.forget(now);
        if self.failures.len() > self.most {
            self.paused_until = Some(now + self.pause);
        }
    }

    /// Until when nothing is to be started, if there is a pause.
    #[must_use]
    pub fn paused_until(&self, now: Tick) -> Option<Tick> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Failures of the last minute, by the second (Flink: `startWorkFailurePerSecond`).
    #[must_use]
    pub fn failures_per_second(&self, now: Tick) -> f64 {
        let recent = self.failures.iter().filter(|at| now.since(**at) < MINUTE).count();
        recent as f64 / MINUTE.as_secs_f64()
    }

    /// The pauses bound what is left.
    fn forget(&mut self, now: Tick) {
        while self.failures.front().is_some_and(|at| now.since(*at) >= MINUTE) {
            self.failures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Tick {
        Tick::from_millis(millis)
    }

    #[test]
    fn the_failure_after_the_limit_makes_a_pause_and_each_further_one_another() {
        let mut pace = StartPace::new(10, Duration::from_secs(3));
        for n in 0..10 {
            pace.failed(at(n));
            assert_eq!(pace.paused_until(at(n)), None, "failure {n}");
        }
        pace.failed(at(10));
        assert_eq!(pace.paused_until(at(10)), Some(at(3_010)));
        assert_eq!(pace.paused_until(at(3_010)), None);
        pace.failed(at(3_020));
        assert_eq!(pace.paused_until(at(3_020)), Some(at(6_020)));
    }

    #[test]
    fn a_minute_without_failures_is_a_new_beginning() {
        let mut pace = StartPace::new(2, Duration::from_secs(3));
        for n in 0..3 {
            pace.failed(at(n));
        }
        assert!(pace.paused_until(at(3)).is_some());
        assert!((pace.failures_per_second(at(3)) - 0.05).abs() < 1e-9);
        pace.failed(at(60_003));
        assert_eq!(pace.paused_until(at(60_003)), None);
        assert!(pace.failures_per_second(at(130_000)).abs() < 1e-9);
    }
}
