//! The checked options of one operator.

mod builder;
mod error;

use std::borrow::Cow;
use std::time::Duration;

pub use builder::OptionsBuilder;
pub use error::OptionsError;

use crate::retry::{Retry, RetryBudget};

/// The order in which records leave.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, NeverRetry, Options, Order, Output};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// /// How 1, 2 and 3 leave that are answered in the order 3, 2, 1; odd and even numbers are the keys.
/// fn leaving(order: Order) -> Result<Vec<u32>, asyncio::OptionsError> {
///     let (now, parity) = (Tick::ZERO, |n: &u32| Some(n % 2));
///     let options = Options::with_order(order).max_in_flight_per_key(2).build()?;
///     let mut operator = AsyncWaitOperator::<u32, u32, String, _, _>::with(options, parity, NeverRetry);
///     for n in 1..=3 {
///         operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
///     }
///     let started: Vec<Effect> = std::iter::from_fn(|| operator.next_effect()).collect();
///     for effect in started.into_iter().rev() {
///         let Effect::Start { entry, attempt } = effect else { continue };
///         operator.complete(entry, attempt, Ok(0), now);
///     }
///     let outputs = std::iter::from_fn(|| operator.next_output());
///     Ok(outputs.map(|output| match output {
///         Output::Record { input, .. } => input.value,
///         _ => 0,
///     }).collect())
/// }
///
/// assert_eq!(leaving(Order::Ordered)?, [1, 2, 3]);
/// assert_eq!(leaving(Order::Unordered)?, [3, 2, 1]);
/// assert_eq!(leaving(Order::Keyed)?, [2, 1, 3]);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// As they came (Flink: `ORDERED`).
    Ordered,
    /// As they are ready, but never across a watermark or a status (Flink: `UNORDERED`).
    Unordered,
    /// As they came within a key: calls of one key start and leave in order, keys overlap (Flink: key-ordered lookup of
    /// FLIP-519). Never across a watermark or a status.
    Keyed,
}

/// What is to become of a record whose calls have failed.
///
/// The operator itself does none of it but the first: it says the policy with the [outcome](crate::Outcome::Failed), and
/// whoever takes the output routes the record by it. (Flink has the first only: a failure fails the task.)
///
/// ```
/// use asyncio::{FailurePolicy, FailureReason};
///
/// /// What somebody who takes the output does with a record that has failed.
/// fn route(record: &str, reason: &FailureReason<String>, policy: FailurePolicy) -> Result<String, String> {
///     match policy {
///         FailurePolicy::Fail => Err(format!("the job fails: {record}: {reason}")),
///         FailurePolicy::Drop => Ok("nothing goes on".to_owned()),
///         FailurePolicy::Keep => Ok(format!("goes on: {record} without an answer")),
///         FailurePolicy::DeadLetter => Ok(format!("dead letter: {record}: {reason}")),
///     }
/// }
///
/// let dead = route("order 7", &FailureReason::Timeout, FailurePolicy::DeadLetter);
/// assert_eq!(dead.unwrap(), "dead letter: order 7: the async call timed out");
/// ```
///
/// A stream does this by itself: see [`AsyncWaitExt`](crate::AsyncWaitExt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// The failure ends the work. The outcome leaves at once, whatever the order, and from then on the operator refuses
    /// snapshots: one taken now would not hold the failed record, and it would be lost.
    #[default]
    Fail,
    /// The record is left out.
    Drop,
    /// The record goes on without an answer.
    Keep,
    /// The record goes on to the dead letters.
    DeadLetter,
}

/// Options that have been checked; made by [`Options::ordered`], [`Options::unordered`] or [`Options::keyed`].
///
/// ```
/// use asyncio::{Options, Retry};
/// use std::time::Duration;
///
/// let options = Options::unordered()
///     .capacity(50)
///     .timeout(Duration::from_secs(30))
///     .retry(Retry::FixedDelay { max_retries: 3, delay: Duration::from_millis(100) })
///     .build()?;
/// assert_eq!(options.capacity(), 50);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    order: Order,
    capacity: usize,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    retry: Retry,
    retry_budget: Option<RetryBudget>,
    retry_after_end: bool,
    max_in_flight_per_key: usize,
    on_failure: FailurePolicy,
    name: Cow<'static, str>,
    idempotency_scope: u64,
}

impl Options {
    /// Records leave as they came.
    pub const fn ordered() -> OptionsBuilder {
        Self::with_order(Order::Ordered)
    }

    /// Records leave as they are ready.
    pub const fn unordered() -> OptionsBuilder {
        Self::with_order(Order::Unordered)
    }

    /// Records of one key are called and leave in order.
    pub const fn keyed() -> OptionsBuilder {
        Self::with_order(Order::Keyed)
    }

    /// Records leave in this order.
    pub const fn with_order(order: Order) -> OptionsBuilder {
        OptionsBuilder(Self {
            order,
            capacity: 100,
            timeout: None,
            attempt_timeout: None,
            retry: Retry::None,
            retry_budget: None,
            retry_after_end: false,
            max_in_flight_per_key: 1,
            on_failure: FailurePolicy::Fail,
            name: Cow::Borrowed("async wait operator"),
            idempotency_scope: 0,
        })
    }

    /// The order in which records leave.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// How many elements the operator holds at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The budget of one record, from the start of its first attempt; absent: none.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The time of one attempt; absent: none.
    #[must_use]
    pub const fn attempt_timeout(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// When a call is made again.
    #[must_use]
    pub const fn retry(&self) -> &Retry {
        &self.retry
    }

    /// How many retries the operator as a whole may make; absent: as many as the records ask for.
    #[must_use]
    pub const fn retry_budget(&self) -> Option<RetryBudget> {
        self.retry_budget
    }

    /// Whether retries go on after the end of input.
    #[must_use]
    pub const fn retry_after_end(&self) -> bool {
        self.retry_after_end
    }

    /// How many calls of one key run at a time.
    #[must_use]
    pub const fn max_in_flight_per_key(&self) -> usize {
        self.max_in_flight_per_key
    }

    /// What is to become of a record that has failed.
    #[must_use]
    pub const fn on_failure(&self) -> FailurePolicy {
        self.on_failure
    }

    /// The operator's name, for errors and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What sets this operator's idempotency keys apart from those of others.
    #[must_use]
    pub const fn idempotency_scope(&self) -> u64 {
        self.idempotency_scope
    }
}

/// The longest time there is, as a tick counts it: 584 years.
pub(crate) const LONGEST: Duration = Duration::from_nanos(u64::MAX);

#[cfg(test)]
mod tests;
