//! Whether and when a call is made again.
//!
//! A strategy is a pure function of the attempt's number, so one value serves all records (Flink: FLINK-33698). Whether
//! an outcome is worth another attempt is the predicate's to say.

use std::time::Duration;

use crate::context::scramble;
use crate::options::{FailurePolicy, LONGEST, OptionsError};
use crate::output::{CallError, FailureReason};

/// How often and after which pause a call is made again (Flink: `AsyncRetryStrategies`).
///
/// ```
/// use asyncio::Retry;
/// use std::time::Duration;
///
/// let retry = Retry::ExponentialDelay {
///     max_retries: 5,
///     initial: Duration::from_millis(100),
///     max: Duration::from_secs(1),
///     multiplier: 2.0,
///     jitter: 0.0,
///     seed: 0,
/// };
/// let pauses: Vec<u128> = (1..=5).map(|attempt| retry.delay(attempt, 0).as_millis()).collect();
/// assert_eq!(pauses, [100, 200, 400, 800, 1_000]);
/// // Five calls beyond the first, six in all.
/// assert!(retry.can_retry(5) && !retry.can_retry(6));
///
/// let fixed = Retry::FixedDelay { max_retries: 2, delay: Duration::from_millis(50) };
/// assert_eq!(fixed.delay(2, 0), Duration::from_millis(50));
/// assert!(!Retry::None.can_retry(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Retry {
    /// Never.
    #[default]
    None,
    /// After equal pauses.
    FixedDelay {
        /// Calls beyond the first, at least 1.
        max_retries: u32,
        /// The pause, above zero.
        delay: Duration,
    },
    /// After growing pauses.
    ExponentialDelay {
        /// Calls beyond the first, at least 1.
        max_retries: u32,
        /// The pause after the first attempt, above zero.
        initial: Duration,
        /// The longest pause, at least `initial`. Jitter may exceed it.
        max: Duration,
        /// By how much a pause grows, at least 1.
        multiplier: f64,
        /// By which part a pause is moved at random, 0 to 1: 0.2 moves it by up to 20 % either way.
        jitter: f64,
        /// Where the random part begins; equal seeds, equal pauses.
        seed: u64,
    },
}

impl Retry {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        match *self {
            Self::None => Ok(()),
            Self::FixedDelay { max_retries: 0, .. } | Self::ExponentialDelay { max_retries: 0, .. } => {
                Err(OptionsError::ZeroRetries)
            }
            Self::FixedDelay { delay: Duration::ZERO, .. } => Err(OptionsError::ZeroDelay("delay")),
            Self::FixedDelay { delay, .. } if delay > LONGEST => {
                Err(OptionsError::TooLong { option: "retry.delay", duration: delay })
            }
            Self::FixedDelay { .. } => Ok(()),
            Self::ExponentialDelay { max, .. } if max > LONGEST => {
                Err(OptionsError::TooLong { option: "retry.max", duration: max })
            }
            Self::ExponentialDelay { initial: Duration::ZERO, .. } => Err(OptionsError::ZeroDelay("initial")),
            Self::ExponentialDelay { initial, max, .. } if max < initial => {
                Err(OptionsError::MaxBelowInitial { initial, max })
            }
            Self::ExponentialDelay { multiplier, .. } if !(1.0..f64::INFINITY).contains(&multiplier) => {
                Err(OptionsError::Multiplier(multiplier))
            }
            Self::ExponentialDelay { jitter, .. } if !(0.0..=1.0).contains(&jitter) => {
                Err(OptionsError::Jitter(jitter))
            }
            Self::ExponentialDelay { .. } => Ok(()),
        }
    }

    /// Whether another attempt may follow this many (Flink: `canRetry`).
    #[must_use]
    pub const fn can_retry(&self, attempts: u32) -> bool {
        match *self {
            Self::None => false,
            Self::FixedDelay { max_retries, .. } | Self::ExponentialDelay { max_retries, .. } => {
                attempts <= max_retries
            }
        }
    }

    /// The pause after attempt `attempt` (from 1) of the record with this number. The number only moves the jitter, so
    /// that records that failed together do not come back together.
    #[must_use]
    pub fn delay(&self, attempt: u32, record: u64) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::FixedDelay { delay, .. } => delay,
            Self::ExponentialDelay { initial, max, multiplier, jitter, seed, .. } => {
                let mut delay = initial;
                for _ in 1..attempt {
                    let next = grown(delay, multiplier).min(max);
                    if next == delay {
                        break;
                    }
                    delay = next;
                }
                if jitter == 0.0 {
                    return delay;
                }
                let bits = scramble(seed ^ scramble(record ^ (u64::from(attempt) << 40)));
                // 53 bits make a fraction in [0, 1) without rounding; it becomes one in [-1, 1).
                let fraction = (bits >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0;
                grown(delay, 1.0 + jitter * fraction)
            }
        }
    }
}

/// The duration times a factor that is not negative, cut to nanoseconds.
fn grown(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// How many retries an operator may make over all its records (Finagle: `RetryBudget`).
///
/// Each record's first attempt pays `per_record` in, each retry takes one out, and there is never more in it than
/// `reserve`, with which it begins. So while a service is down, at most so many retries are made for each record that
/// fails, and a service that recovers is not held down by them.
///
/// ```
/// use asyncio::{AsyncWaitOperator, CallError, Effect, FailurePolicy, Options, Retry, RetryBudget};
/// use runtime_core::{Record, StreamElement, Tick};
/// use std::time::Duration;
///
/// let now = Tick::ZERO;
/// let options = Options::unordered()
///     .timeout(Duration::from_secs(30))
///     .retry(Retry::FixedDelay { max_retries: 3, delay: Duration::from_secs(1) })
///     .retry_budget(RetryBudget { per_record: 0.0, reserve: 2 })
///     .on_failure(FailurePolicy::DeadLetter)
///     .build()?;
/// let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(options);
/// for n in 0..10 {
///     operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
/// }
/// while let Some(Effect::Start { entry, attempt }) = operator.next_effect() {
///     operator.complete(entry, attempt, Err(CallError::Error("down")), now);
/// }
/// // Two of ten may be tried again, the others have failed.
/// let figures = operator.figures(now);
/// assert_eq!((figures.failures, figures.retries_refused), (8, 8));
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// Retries that each record pays for, 0 to 1000: 0.2 allows one retry for every five records.
    pub per_record: f64,
    /// Retries that may be made beyond that, at the start and after quiet times.
    pub reserve: u32,
}

/// What is left of a budget.
#[derive(Debug, Clone)]
pub(crate) struct RetryAllowance {
    budget: RetryBudget,
    left: f64,
}

impl RetryAllowance {
    pub(crate) fn new(budget: RetryBudget) -> Self {
        Self { budget, left: budget.reserve.into() }
    }

    pub(crate) fn pay_in(&mut self) {
        self.left = (self.left + self.budget.per_record).min(f64::from(self.budget.reserve).max(1.0));
    }

    /// Takes one retry out, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let allowed = self.left >= 1.0;
        if allowed {
            self.left -= 1.0;
        }
        allowed
    }
}

/// What is to become of an attempt's outcome while retries are left.
///
/// ```
/// use asyncio::{CallError, Verdict};
/// use std::time::Duration;
///
/// enum ServiceError {
///     Busy { retry_after: Option<Duration> },
///     NotFound,
/// }
///
/// let judge = |outcome: &Result<String, CallError<ServiceError>>| match outcome {
///     // An empty answer may be filled a little later.
///     Ok(answer) if answer.is_empty() => Verdict::Retry,
///     Err(CallError::Error(ServiceError::Busy { retry_after })) => {
///         retry_after.map_or(Verdict::Retry, Verdict::RetryAfter)
///     }
///     Ok(_) | Err(_) => Verdict::Final,
/// };
/// let busy = ServiceError::Busy { retry_after: Some(Duration::from_secs(2)) };
/// assert_eq!(judge(&Err(CallError::Error(busy))), Verdict::RetryAfter(Duration::from_secs(2)));
/// # assert_eq!(judge(&Err(CallError::Error(ServiceError::NotFound))), Verdict::Final);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the record's outcome.
    Final,
    /// Another attempt may help.
    Retry,
    /// Another attempt may help, but not sooner than this after now (HTTP: `Retry-After`).
    RetryAfter(Duration),
}

/// Judges an attempt's outcome. A closure `Fn(&Result<R, CallError<E>>) -> Verdict` is one.
///
/// It is asked only while the strategy allows another attempt, never about the budget's own end, about a call that
/// panicked or never began, and never after the end of input. An outcome that is not retried passes through unchanged.
/// A predicate that panics makes the outcome a final failure with the panic's text.
///
/// ```
/// use asyncio::{CallError, FailurePolicy, FailureReason, RetryPredicate, Verdict};
///
/// #[derive(Debug, PartialEq)]
/// enum BillingError {
///     Busy,
///     Duplicate,
/// }
///
/// /// Busy is retried; what was billed before is left out, whatever the options say of other failures.
/// struct Billing;
///
/// impl<R> RetryPredicate<R, BillingError> for Billing {
///     fn judge(&self, outcome: &Result<R, CallError<BillingError>>) -> Verdict {
///         match outcome {
///             Err(CallError::Error(BillingError::Busy) | CallError::AttemptTimeout) => Verdict::Retry,
///             _ => Verdict::Final,
///         }
///     }
///
///     fn policy(&self, reason: &FailureReason<BillingError>, options: FailurePolicy) -> FailurePolicy {
///         match reason {
///             FailureReason::Error(BillingError::Duplicate) => FailurePolicy::Drop,
///             _ => options,
///         }
///     }
/// }
/// # let duplicate = FailureReason::Error(BillingError::Duplicate);
/// # assert_eq!(RetryPredicate::<u32, _>::policy(&Billing, &duplicate, FailurePolicy::Fail), FailurePolicy::Drop);
/// ```
pub trait RetryPredicate<R, E> {
    /// What is to become of this outcome.
    fn judge(&self, outcome: &Result<R, CallError<E>>) -> Verdict;

    /// What is to become of the record that has failed with this: unless said otherwise what the
    /// [options](crate::OptionsBuilder::on_failure) say. For policies that differ by the kind of failure.
    fn policy(&self, _reason: &FailureReason<E>, options: FailurePolicy) -> FailurePolicy {
        options
    }
}

impl<R, E, F> RetryPredicate<R, E> for F
where
    F: Fn(&Result<R, CallError<E>>) -> Verdict,
{
    fn judge(&self, outcome: &Result<R, CallError<E>>) -> Verdict {
        self(outcome)
    }
}

/// Any error is worth another attempt (Flink: `HAS_EXCEPTION`).
///
/// ```
/// use asyncio::{CallError, NeverRetry, RetryErrors, RetryPredicate, Verdict};
///
/// let failed = Err::<u32, _>(CallError::Error("down"));
/// assert_eq!(RetryErrors.judge(&failed), Verdict::Retry);
/// assert_eq!(RetryErrors.judge(&Ok::<u32, CallError<&str>>(0)), Verdict::Final);
/// assert_eq!(NeverRetry.judge(&failed), Verdict::Final);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryErrors;

impl<R, E> RetryPredicate<R, E> for RetryErrors {
    fn judge(&self, outcome: &Result<R, CallError<E>>) -> Verdict {
        if outcome.is_err() { Verdict::Retry } else { Verdict::Final }
    }
}

/// Nothing is worth another attempt, whatever the strategy.
///
/// The example is at [`RetryErrors`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverRetry;

impl<R, E> RetryPredicate<R, E> for NeverRetry {
    fn judge(&self, _: &Result<R, CallError<E>>) -> Verdict {
        Verdict::Final
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(jitter: f64) -> Retry {
        Retry::ExponentialDelay {
            max_retries: 10,
            initial: Duration::from_millis(100),
            max: Duration::from_millis(2000),
            multiplier: 2.0,
            jitter,
            seed: 7,
        }
    }

    #[test]
    fn e09_exponential_delays_depend_on_the_attempt_alone() {
        let retry = exponential(0.0);
        for _ in 0..5 {
            let delays: Vec<u128> = (1..=10).map(|n| retry.delay(n, 0).as_millis()).collect();
            assert_eq!(delays, [100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000, 2000]);
        }
        assert!(retry.can_retry(10));
        assert!(!retry.can_retry(11));
    }

    #[test]
    fn max_retries_counts_calls_beyond_the_first() {
        let retry = Retry::FixedDelay { max_retries: 2, delay: Duration::from_millis(10) };
        assert!(retry.can_retry(1) && retry.can_retry(2) && !retry.can_retry(3));
        assert!(!Retry::None.can_retry(1));
    }

    #[test]
    fn a_budget_allows_its_reserve_and_then_a_share_of_the_records() {
        let mut allowance = RetryAllowance::new(RetryBudget { per_record: 0.25, reserve: 2 });
        assert!(allowance.take() && allowance.take() && !allowance.take());
        let mut retries = 0;
        for _ in 0..100 {
            allowance.pay_in();
            retries += u32::from(allowance.take());
        }
        assert_eq!(retries, 25);
        (0..100).for_each(|_| allowance.pay_in());
        assert!(
            allowance.take() && allowance.take() && !allowance.take(),
            "no more than the reserve is kept"
        );
    }

    #[test]
    fn jitter_stays_in_its_range_and_is_equal_for_equal_seeds() {
        let retry = exponential(0.2);
        let delays: Vec<Duration> = (0..1000).map(|record| retry.delay(1, record)).collect();
        assert!(delays.iter().all(|d| (80..=120).contains(&d.as_millis())));
        assert!(delays.iter().any(|d| d.as_millis() < 90) && delays.iter().any(|d| d.as_millis() >= 110));
        assert_eq!(delays, (0..1000).map(|record| retry.delay(1, record)).collect::<Vec<_>>());
    }

    #[test]
    fn a_delay_beyond_what_a_duration_holds_is_the_longest_one() {
        let retry = Retry::ExponentialDelay {
            max_retries: u32::MAX,
            initial: Duration::from_secs(1),
            max: Duration::MAX,
            multiplier: 1e30,
            jitter: 0.0,
            seed: 0,
        };
        assert_eq!(retry.delay(u32::MAX, 0), Duration::MAX);
    }
}
