//! The name of a process.

use super::ParseIdError;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// Longer names lie elsewhere. As many as fit beside the length in the three words that the type takes.
const INLINE: usize = 22;

/// The name of a process in the cluster: `[A-Za-z0-9._-]+`, at most 255 bytes. It may be taken again by a successor.
///
/// A short name is held in place: it is found, compared and copied without following a pointer, which among a hundred
/// thousand of them is a cache miss each time.
#[derive(Clone)]
pub struct ResourceId(Name);

#[derive(Clone)]
enum Name {
    /// The bytes beyond the length are 0, so that equal names are equal bytes.
    Short {
        length: u8,
        bytes: [u8; INLINE],
    },
    Long(Arc<str>),
}

impl ResourceId {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Only ASCII comes in.
            Name::Short { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Name::Long(name) => name,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Name::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Name::Long(name) => name.as_bytes(),
        }
    }
}

impl PartialEq for ResourceId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Of a fixed length: no loop.
            (Name::Short { bytes, .. }, Name::Short { bytes: others, .. }) => bytes == others,
            (Name::Long(name), Name::Long(others)) => name == others,
            _ => false,
        }
    }
}

impl Eq for ResourceId {}

impl Hash for ResourceId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
        // As of a `str`: what follows in the same hash is apart.
        state.write_u8(0xff);
    }
}

impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl FromStr for ResourceId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > 255 || !text.bytes().all(allowed) {
            return Err(ParseIdError::new(
                "resource id",
                "1 to 255 of the characters A-Z a-z 0-9 . _ -",
                text,
            ));
        }
        let mut bytes = [0; INLINE];
        let name = match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Name::Short { length, bytes }
            }
            _ => Name::Long(text.into()),
        };
        Ok(Self(name))
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceId").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher as _, RandomState};

    fn id(text: &str) -> ResourceId {
        text.parse().unwrap()
    }

    #[test]
    fn a_resource_id_has_only_the_characters_that_a_file_name_may_have() {
        assert!("host-1.example_6123".parse::<ResourceId>().is_ok());
        for text in ["", "a b", "a/b", "ä", &"x".repeat(256)] {
            assert!(text.parse::<ResourceId>().is_err(), "{text}");
        }
    }

    #[test]
    fn short_and_long_names_are_told_apart_and_kept_whole() {
        let hash = RandomState::new();
        let names: Vec<String> = (1..=255).map(|length| "x".repeat(length)).collect();
        for (name, longer) in names.iter().zip(names.iter().skip(1)) {
            assert_eq!(id(name).as_str(), name);
            assert_eq!((id(name), hash.hash_one(id(name))), (id(name), hash.hash_one(id(name))));
            assert_ne!(id(name), id(longer));
            assert!(id(name) < id(longer));
        }
        assert!(id("b") > id(&"a".repeat(30)), "as of texts");
        assert_eq!(format!("{:?} {}", id("te-1"), id("te-1")), "ResourceId(\"te-1\") te-1");
    }

    #[test]
    fn a_name_takes_three_words() {
        assert_eq!((size_of::<ResourceId>(), size_of::<Option<ResourceId>>()), (24, 24));
    }
}
