//! Options as they are put together, and what is checked.

use std::borrow::Cow;
use std::time::Duration;

use super::{FailurePolicy, LONGEST, Options, OptionsError};
use crate::retry::{Retry, RetryBudget};

/// Options not yet checked.
///
/// ```
/// use asyncio::{Options, OptionsError, Retry};
/// use std::time::Duration;
///
/// let pause = Duration::from_millis(100);
/// let retrying = Options::keyed().max_in_flight_per_key(2).retry(Retry::FixedDelay { max_retries: 3, delay: pause });
/// // Retries without an end in time are refused.
/// assert_eq!(retrying.clone().build(), Err(OptionsError::RetryWithoutTimeout));
/// let options = retrying.timeout(Duration::from_secs(30)).attempt_timeout(Duration::from_secs(2)).build()?;
/// assert_eq!(options.timeout(), Some(Duration::from_secs(30)));
/// assert_eq!(options.name(), "async wait operator");
/// # Ok::<(), OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "options are checked by `build`"]
pub struct OptionsBuilder(pub(super) Options);

impl OptionsBuilder {
    /// Elements in the operator: pending and completed records, watermarks and statuses (Flink: the same, and the same
    /// default). At least 1; 100 unless said otherwise. Each costs the memory of its input, and later of its result.
    pub const fn capacity(mut self, elements: usize) -> Self {
        self.0.capacity = elements;
        self
    }

    /// The budget of one record, all attempts and pauses included, counted from the start of its first attempt: waiting
    /// for a slot or for its key does not count, and after a restore it starts anew (Flink: FLIP-232). Unless said
    /// otherwise there is none.
    ///
    /// ```
    /// use asyncio::Options;
    /// use std::time::Duration;
    ///
    /// let limit: Option<Duration> = None; // from a configuration
    /// assert_eq!(Options::ordered().timeout(limit).build()?.timeout(), None);
    /// let thirty = Options::ordered().timeout(Duration::from_secs(30)).build()?;
    /// assert_eq!(thirty.timeout(), Some(Duration::from_secs(30)));
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn timeout(mut self, budget: impl Into<Option<Duration>>) -> Self {
        self.0.timeout = budget.into();
        self
    }

    /// The time of one attempt. An attempt that exceeds it counts as an error that a retry may help with.
    ///
    /// The example is at [`Effect`](crate::Effect).
    pub fn attempt_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.0.attempt_timeout = limit.into();
        self
    }

    /// When a call is made again; needs a [`timeout`](Self::timeout).
    pub const fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Bounds the retries of all records together, so that a service that is down is not asked many times over. A failure
    /// that finds the budget used up is final.
    ///
    /// ```
    /// use asyncio::{Options, Retry, RetryBudget};
    /// use std::time::Duration;
    ///
    /// // One retry for every five records, and 10 at the start.
    /// let options = Options::unordered()
    ///     .timeout(Duration::from_secs(30))
    ///     .retry(Retry::FixedDelay { max_retries: 3, delay: Duration::from_millis(100) })
    ///     .retry_budget(RetryBudget { per_record: 0.2, reserve: 10 })
    ///     .build()?;
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.0.retry_budget = budget.into();
        self
    }

    /// Whether retries and their pauses go on after the [end of input](crate::AsyncWaitOperator::end_of_input). Unless said
    /// otherwise they do not, as in Flink: a pausing record is called once more at once, and so a source that ends makes
    /// its last records hurry. Say `true` for a finite source whose records should all have their retries; the end then
    /// waits for them, at most as long as their budgets.
    pub const fn retry_after_end(mut self, goes_on: bool) -> Self {
        self.0.retry_after_end = goes_on;
        self
    }

    /// How many calls of one key run at a time in keyed order; 1 unless said otherwise. With more than one, records of
    /// the key still leave in order.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, NeverRetry, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// for (limit, started) in [(1, 1), (2, 2)] {
    ///     let options = Options::keyed().max_in_flight_per_key(limit).build()?;
    ///     let one_key = |_: &u32| Some("all");
    ///     let mut operator = AsyncWaitOperator::<u32, u32, String, _, _>::with(options, one_key, NeverRetry);
    ///     for n in 1..=3 {
    ///         operator.push(StreamElement::Record(Record::new(n)), Tick::ZERO).unwrap();
    ///     }
    ///     assert_eq!(operator.in_flight(), started);
    /// }
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub const fn max_in_flight_per_key(mut self, calls: usize) -> Self {
        self.0.max_in_flight_per_key = calls;
        self
    }

    /// What is to become of a record that has failed; [`FailurePolicy::Fail`] unless said otherwise.
    pub const fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.0.on_failure = policy;
        self
    }

    /// The operator's name in errors and metrics; "async wait operator" unless said otherwise, as in Flink.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Sets this operator's idempotency keys apart from those of others: give each operator that may ask the same service,
    /// and each of its subtasks, a number of its own, and keep it through restarts. 0 unless said otherwise.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Effect, IdempotencyKey, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// /// The key of the first record of an operator.
    /// fn first_key(scope: u64) -> Result<IdempotencyKey, asyncio::OptionsError> {
    ///     let options = Options::ordered().idempotency_scope(scope).build()?;
    ///     let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options);
    ///     operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
    ///     let Some(Effect::Start { entry, .. }) = operator.next_effect() else { panic!("it starts") };
    ///     Ok(operator.context(entry).unwrap().idempotency_key())
    /// }
    /// assert_eq!(first_key(1)?, first_key(1)?);
    /// assert_ne!(first_key(1)?, first_key(2)?);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub const fn idempotency_scope(mut self, scope: u64) -> Self {
        self.0.idempotency_scope = scope;
        self
    }

    /// The options, if they make sense.
    ///
    /// The example is at [`OptionsError`].
    ///
    /// # Errors
    ///
    /// Says which option is out of its range and what would be right.
    pub fn build(self) -> Result<Options, OptionsError> {
        let options = self.0;
        // Entries are linked by 32-bit numbers, of which the last one stands for "none".
        if options.capacity == 0 || options.capacity >= u32::MAX as usize {
            return Err(OptionsError::Capacity(options.capacity));
        }
        if options.timeout == Some(Duration::ZERO) {
            return Err(OptionsError::ZeroTimeout);
        }
        if options.attempt_timeout == Some(Duration::ZERO) {
            return Err(OptionsError::ZeroAttemptTimeout);
        }
        for (option, duration) in [("timeout", options.timeout), ("attempt_timeout", options.attempt_timeout)]
        {
            if let Some(duration) = duration.filter(|&duration| duration > LONGEST) {
                return Err(OptionsError::TooLong { option, duration });
            }
        }
        if options.max_in_flight_per_key == 0 {
            return Err(OptionsError::ZeroInFlightPerKey);
        }
        if options.retry != Retry::None && options.timeout.is_none() {
            return Err(OptionsError::RetryWithoutTimeout);
        }
        options.retry.check()?;
        if let Some(RetryBudget { per_record, .. }) = options.retry_budget {
            if !(0.0..=1_000.0).contains(&per_record) {
                return Err(OptionsError::RetryBudget(per_record));
            }
            if options.retry == Retry::None {
                return Err(OptionsError::RetryBudgetWithoutRetry);
            }
        }
        Ok(options)
    }
}
