//! What can be wrong with options.

use std::time::Duration;

/// Options that make no sense. Nothing was built.
///
/// ```
/// use asyncio::{Options, OptionsError, Retry};
/// use std::time::Duration;
///
/// let error = Options::ordered().capacity(0).build().unwrap_err();
/// assert_eq!(error, OptionsError::Capacity(0));
/// assert_eq!(error.to_string(), "capacity is 0: it must be at least 1 and below 2^32 - 1");
///
/// let error = Options::ordered().timeout(Duration::ZERO).build().unwrap_err();
/// assert_eq!(error.to_string(), "timeout is zero: give a positive duration, or none to wait without limit");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// No room for a single element, or for more than can be numbered.
    #[error("capacity is {0}: it must be at least 1 and below 2^32 - 1")]
    Capacity(usize),
    /// A budget of nothing.
    #[error("timeout is zero: give a positive duration, or none to wait without limit")]
    ZeroTimeout,
    /// An attempt of no time.
    #[error("attempt_timeout is zero: give a positive duration, or none")]
    ZeroAttemptTimeout,
    /// A time that no clock can count.
    #[error("{option} is {duration:?}: it must be below 584 years; give none to wait without limit")]
    TooLong {
        /// Which option.
        option: &'static str,
        /// What it was.
        duration: Duration,
    },
    /// No call of a key could ever start.
    #[error("max_in_flight_per_key is 0: it must be at least 1")]
    ZeroInFlightPerKey,
    /// Retries without an end in time.
    #[error("retry needs a timeout: set the budget of one record")]
    RetryWithoutTimeout,
    /// A strategy that never retries.
    #[error("retry.max_retries is 0: it must be at least 1; leave retry out to make one attempt only")]
    ZeroRetries,
    /// A retry without a pause.
    #[error("retry.{0} is zero: give a positive duration")]
    ZeroDelay(&'static str),
    /// The longest pause is shorter than the first.
    #[error("retry.max is {max:?}: it must not be below retry.initial, {initial:?}")]
    MaxBelowInitial {
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
    },
    /// Pauses would shrink, or are no number.
    #[error("retry.multiplier is {0}: it must be a number of at least 1")]
    Multiplier(f64),
    /// Retries that are no number, negative, or without bound.
    #[error("retry_budget.per_record is {0}: it must be a number from 0 to 1000")]
    RetryBudget(f64),
    /// A budget for retries that are never made.
    #[error("retry_budget needs a retry strategy: set retry, or leave the budget out")]
    RetryBudgetWithoutRetry,
    /// A part beyond the whole, or none.
    #[error("retry.jitter is {0}: it must be a number from 0 to 1")]
    Jitter(f64),
}
