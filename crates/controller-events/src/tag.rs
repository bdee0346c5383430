//! Names for events that can be replaced and cancelled.

use std::borrow::Cow;
use std::fmt;

/// The name of a queued or scheduled event. At most one event waits under a tag: a newer one replaces it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    name: Cow<'static, str>,
    key: u128,
}

impl Tag {
    /// A tag of this name.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), key: 0 }
    }

    /// A tag of this name for one of many things, told apart by a number: one timer per slot, per peer. Costs no
    /// allocation. `keyed(name, 0)` and `new(name)` are the same tag.
    #[must_use]
    pub const fn keyed(name: &'static str, key: u128) -> Self {
        Self { name: Cow::Borrowed(name), key }
    }

    /// A hash that differs from seed to seed. Names are short and keys are numbers: some multiplications instead of the
    /// standard map's hash, which costs more than all the rest of a look-up.
    pub(crate) fn hash_with(&self, seed: u64) -> u32 {
        let mut hash = fold(seed ^ self.key as u64, (self.key >> 64) as u64 ^ self.name.len() as u64);
        for eight in self.name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(eight).for_each(|(to, from)| *to = *from);
            hash = fold(hash, u64::from_le_bytes(word));
        }
        (hash >> 32) as u32
    }
}

/// Mixes a word into a hash: both halves of a product with an odd constant (the golden ratio's digits).
fn fold(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64 ^ hash.rotate_left(23)
}

impl From<&'static str> for Tag {
    fn from(name: &'static str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Tag {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            0 => f.write_str(&self.name),
            key => write!(f, "{}/{key:x}", self.name),
        }
    }
}
