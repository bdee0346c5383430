//! By what the keyed order keeps records in order.

use std::hash::Hash;

/// Says which key a record has. A closure `Fn(&I) -> Option<K>` is one.
///
/// A record without key is neither held in order nor counted against the limit of a key.
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
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKey;

impl<I> KeySelector<I> for NoKey {
    type Key = ();

    fn key_of(&self, _: &I) -> Option<()> {
        None
    }
}
