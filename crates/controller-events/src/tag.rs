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
