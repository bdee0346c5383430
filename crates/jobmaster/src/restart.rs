//! Whether and when a failed job runs again.
//!
//! Flink: `RestartBackoffTimeStrategy` and its four kinds. A pure core: it is told of each failure with the time and
//! answers with the moment of the next start, or with the reason why there is none.

use std::collections::VecDeque;
use std::time::Duration;

use job::options::RestartStrategy;
use runtime_core::Tick;

/// What a failure leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The job runs again, not before this moment.
    RestartAt(Tick),
    /// The failure belongs to the restart that is planned for this moment already.
    Join(Tick),
    /// The job fails; the text says which rule refuses.
    Refuse(String),
}

/// The state of a job's restart strategy.
#[derive(Debug)]
pub struct RestartBackoff {
    strategy: RestartStrategy,
    failures: u32,
    recent: VecDeque<Tick>,
    exponent: u32,
    planned: Option<Tick>,
}

impl RestartBackoff {
    /// A strategy that has seen no failure.
    #[must_use]
    pub fn new(strategy: RestartStrategy) -> Self {
        Self { strategy, failures: 0, recent: VecDeque::new(), exponent: 0, planned: None }
    }

    /// Takes note of a failure at `now`. `jitter` is a random number from -1 to 1.
    ///
    /// Under exponential delay, a failure before the planned restart belongs to that restart: it is not counted and
    /// moves nothing (FLINK-33565).
    pub fn on_failure(&mut self, now: Tick, jitter: f64) -> Decision {
        match self.strategy.clone() {
            RestartStrategy::None => Decision::Refuse("the restart strategy is `none`".into()),
            RestartStrategy::FixedDelay { attempts, delay } => {
                self.failures = self.failures.saturating_add(1);
                if self.failures > attempts {
                    return Decision::Refuse(format!(
                        "recovery is suppressed by `fixed-delay`: {} failures, {attempts} allowed",
                        self.failures
                    ));
                }
                Decision::RestartAt(now + delay)
            }
            RestartStrategy::FailureRate { max_failures, interval, delay } => {
                self.recent.push_back(now);
                while self.recent.len() > max_failures as usize + 1 {
                    self.recent.pop_front();
                }
                let full = self.recent.len() > max_failures as usize;
                if full && self.recent.front().is_some_and(|oldest| now.since(*oldest) <= interval) {
                    return Decision::Refuse(format!(
                        "recovery is suppressed by `failure-rate`: more than {max_failures} failures within {interval:?}"
                    ));
                }
                Decision::RestartAt(now + delay)
            }
            RestartStrategy::ExponentialDelay {
                initial,
                max,
                multiplier,
                jitter: part,
                reset_after,
                attempts,
            } => {
                if let Some(planned) = self.planned.filter(|at| now < *at) {
                    return Decision::Join(planned);
                }
                if self.planned.is_some_and(|at| now.since(at) >= reset_after) {
                    self.exponent = 0;
                    self.failures = 0;
                }
                self.failures = self.failures.saturating_add(1);
                if let Some(allowed) = attempts.filter(|allowed| self.failures > *allowed) {
                    return Decision::Refuse(format!(
                        "recovery is suppressed by `exponential-delay`: {} failures, {allowed} allowed",
                        self.failures
                    ));
                }
                let pause = backoff(initial, max, multiplier, self.exponent, part * jitter);
                self.exponent = self.exponent.saturating_add(1);
                let at = now + pause;
                self.planned = Some(at);
                Decision::RestartAt(at)
            }
        }
    }
}

/// `initial x multiplier^exponent`, moved by a part of itself, kept between `initial` and `max`.
fn backoff(initial: Duration, max: Duration, multiplier: f64, exponent: u32, shift: f64) -> Duration {
    let grown = initial.as_secs_f64() * multiplier.powi(i32::try_from(exponent).unwrap_or(i32::MAX));
    let moved = grown.min(max.as_secs_f64()) * (1.0 + shift);
    // A product that has left the numbers stands for the longest pause.
    let secs = if moved.is_finite() { moved } else { max.as_secs_f64() };
    Duration::try_from_secs_f64(secs.max(0.0)).unwrap_or(max).clamp(initial.min(max), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Tick {
        Tick::from_millis(n * 1000)
    }

    #[test]
    fn none_never_restarts() {
        assert!(matches!(
            RestartBackoff::new(RestartStrategy::None).on_failure(secs(1), 0.0),
            Decision::Refuse(_)
        ));
    }

    #[test]
    fn c074_fixed_delay_of_two_attempts_refuses_the_third_failure() {
        let strategy = RestartStrategy::FixedDelay { attempts: 2, delay: Duration::from_secs(1) };
        let mut backoff = RestartBackoff::new(strategy);
        assert_eq!(backoff.on_failure(secs(10), 0.0), Decision::RestartAt(secs(11)));
        assert_eq!(backoff.on_failure(secs(20), 0.0), Decision::RestartAt(secs(21)));
        let Decision::Refuse(why) = backoff.on_failure(secs(30), 0.0) else { panic!("a third restart") };
        assert!(why.contains("suppressed") && why.contains("fixed-delay"), "{why}");
    }

    #[test]
    fn c075_failure_rate_refuses_only_when_the_failures_fall_together() {
        let strategy = RestartStrategy::FailureRate {
            max_failures: 2,
            interval: Duration::from_secs(60),
            delay: Duration::ZERO,
        };
        let mut backoff = RestartBackoff::new(strategy);
        for at in [0, 10, 80, 85] {
            assert_eq!(backoff.on_failure(secs(at), 0.0), Decision::RestartAt(secs(at)), "at {at}");
        }
        assert!(matches!(backoff.on_failure(secs(90), 0.0), Decision::Refuse(_)));
    }

    fn exponential(attempts: Option<u32>) -> RestartBackoff {
        RestartBackoff::new(RestartStrategy::ExponentialDelay {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            multiplier: 1.5,
            jitter: 0.0,
            reset_after: Duration::from_secs(3600),
            attempts,
        })
    }

    #[test]
    fn c077_exponential_delay_grows_to_its_cap_and_starts_anew_after_quiet() {
        let mut backoff = exponential(None);
        let mut now = secs(0);
        let mut pauses = Vec::new();
        for _ in 0..14 {
            let Decision::RestartAt(at) = backoff.on_failure(now, 0.0) else { panic!("refused") };
            pauses.push(at.since(now).as_secs_f64());
            now = at;
        }
        assert_eq!(pauses[..4], [1.0, 1.5, 2.25, 3.375]);
        assert_eq!(pauses[12..], [60.0, 60.0]);
        let later = now + Duration::from_secs(3600);
        assert_eq!(backoff.on_failure(later, 0.0), Decision::RestartAt(later + Duration::from_secs(1)));
    }

    #[test]
    fn failures_before_the_planned_restart_belong_to_it() {
        let mut backoff = exponential(Some(1));
        assert_eq!(backoff.on_failure(secs(10), 0.0), Decision::RestartAt(secs(11)));
        assert_eq!(backoff.on_failure(Tick::from_millis(10_500), 0.0), Decision::Join(secs(11)));
        assert!(matches!(backoff.on_failure(secs(11), 0.0), Decision::Refuse(_)));
    }
}
