//! By what the keyed order keeps records in order.

use std::hash::Hash;

/// Says which key a record has (Flink: `KeySelector`). A closure `Fn(&I) -> Option<K>` is one.
///
/// A record without key is neither held in order nor counted against the limit of a key.
///
/// ```
/// use asyncio::{AsyncWaitOperator, NeverRetry, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let customer = |order: &&str| order.split_once('/').map(|(customer, _)| customer.to_owned());
/// let options = Options::keyed().build()?;
/// let mut operator = AsyncWaitOperator::<&str, u32, String, _, _>::with(options, customer, NeverRetry);
/// for order in ["ann/1", "ann/2", "bob/1", "no customer"] {
///     operator.push(StreamElement::Record(Record::new(order)), Tick::ZERO).unwrap();
/// }
/// // Ann's second order waits for her first one.
/// assert_eq!(operator.in_flight(), 3);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
pub trait KeySelector<I> {
    /// The key.
    type Key: Eq + Hash;

    /// The key of this input.
    fn key_of(&self, input: &I) -> Option<Self::Key>;
}

impl<I, K, F> KeySelector<I> for F
where
    K: Eq + Hash,
    F: Fn(&I) -> Option<K>,
{
    type Key = K;

    fn key_of(&self, input: &I) -> Option<K> {
        self(input)
    }
}

/// No record has a key: the selector of the orders that need none.
///
/// ```
/// use asyncio::{AsyncWaitOperator, NeverRetry, NoKey, Options};
///
/// // No keys, and a predicate of one's own.
/// let options = Options::unordered().build()?;
/// let operator = AsyncWaitOperator::<u32, u32, String, _, _>::with(options, NoKey, NeverRetry);
/// # assert!(operator.is_empty());
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKey;

impl<I> KeySelector<I> for NoKey {
    type Key = ();

    fn key_of(&self, _: &I) -> Option<()> {
        None
    }
}
