//! Keys of records, and which subtask a key belongs to.
//!
//! Flink: `KeyGroupRangeAssignment`, with xxh3-64 in place of murmur over a Java hash code.

use xxhash_rust::xxh3::xxh3_64;

use crate::record::{JsonText, Kind};

/// What keyed order and the limit per key go by.
///
/// Two keys are equal when type and text of the JSON values are: `7`, `7.0` and `"7"` are three keys, `"a"` and
/// `"\u0061"` are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// A letter for the type, then the text; of a string its characters.
    bytes: Box<[u8]>,
}

impl Key {
    /// The key that a field's value is; absent where it is null, as such a record belongs to no key.
    #[must_use]
    pub fn of(value: JsonText<'_>) -> Option<Self> {
        let letter = match value.kind() {
            Kind::Null => return None,
            Kind::Bool => b'b',
            Kind::Number => b'n',
            Kind::String => b's',
            Kind::Array => b'a',
            Kind::Object => b'o',
        };
        let text = value.string_bytes();
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.push(letter);
        bytes.extend_from_slice(&text);
        Some(Self { bytes: bytes.into_boxed_slice() })
    }

    /// The xxh3-64 (seed 0) of type and text: of the letter `b`, `n`, `s`, `a` or `o` and the text.
    #[must_use]
    pub fn hash(&self) -> u64 {
        xxh3_64(&self.bytes)
    }

    /// Type letter and text, for messages and for state that is stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The key group of a key, from 0; `max_parallelism` counts as 1 when it is 0.
#[must_use]
pub fn key_group(key: &Key, max_parallelism: u32) -> u32 {
    let group = key.hash() % u64::from(max_parallelism.max(1));
    // A remainder of a 32-bit divisor.
    u32::try_from(group).unwrap_or(0)
}

/// The subtask that owns a key group. Flink: `computeOperatorIndexForKeyGroup`.
#[must_use]
pub fn subtask_of(key_group: u32, max_parallelism: u32, parallelism: u32) -> u32 {
    let subtask = u64::from(key_group) * u64::from(parallelism) / u64::from(max_parallelism.max(1));
    u32::try_from(subtask).unwrap_or(0).min(parallelism.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(text: &str) -> Key {
        Key::of(JsonText::new(text)).unwrap()
    }

    #[test]
    fn type_and_text_make_a_key() {
        let distinct = ["7", "7.0", r#""7""#, "true", r#""true""#, "[7]", r#"{"a":7}"#, r#""""#];
        let keys: BTreeSet<Key> = distinct.iter().map(|t| key(t)).collect();
        assert_eq!(keys.len(), distinct.len());
    }

    #[test]
    fn the_spelling_of_a_string_does_not_matter() {
        assert_eq!(key(r#""a/ü""#), key(r#""\u0061\/\u00FC""#));
        assert_eq!(key(r#""\ud800""#), key(r#""\uD800""#));
        assert_ne!(key(r#""\ud800""#), key(r#""\ud801""#));
    }

    #[test]
    fn null_is_no_key() {
        assert_eq!(Key::of(JsonText::new("null")), None);
    }

    #[test]
    fn the_key_group_is_a_fixed_function_of_type_and_text() {
        assert_eq!(key(r#""N14228""#).hash(), xxh3_64(b"sN14228"));
        assert_eq!(key_group(&key("7"), 128), (xxh3_64(b"n7") % 128) as u32);
    }

    #[test]
    fn every_subtask_owns_a_run_of_key_groups_and_each_group_has_one_owner() {
        for (max, parallelism) in [(128, 1), (128, 2), (128, 3), (128, 127), (128, 128), (1, 1)] {
            let owners: Vec<u32> = (0..max).map(|group| subtask_of(group, max, parallelism)).collect();
            assert!(owners.is_sorted());
            assert_eq!(owners.iter().collect::<BTreeSet<_>>().len() as u32, parallelism);
        }
    }
}
