//! A job file as a tree whose every value knows where it was written.
//!
//! The tree is read without a schema and checked afterwards, so that one look finds all mistakes and each names its
//! place, whether it came from the file or from a flag.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_saphyr::{Location, Spanned};

use super::error::{JobFileError, Place};

/// How many values anchors may repeat: no job needs as many, and a few lines could ask for millions.
const MOST_REPEATED: usize = 20_000;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Whole(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) node: Node,
}

impl Node {
    /// Reads YAML, of which JSON is a part.
    pub(super) fn read(text: &str, file: &str) -> Result<Self, JobFileError> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_REPEATED },
        };
        TRAIL.take();
        match serde_saphyr::from_str_with_options::<Spanned<Raw>>(&yaml_of_json(text), options) {
            Ok(raw) => Ok(located(raw)),
            Err(error) => {
                let path = TRAIL.take().concat();
                let place = error.location().map_or(Place::START, place_of);
                let path = path.trim_start_matches('.').to_owned();
                Err(JobFileError { file: file.to_owned(), place, path, message: plain(&error) })
            }
        }
    }

    /// Says that the value and all within it came from a flag.
    pub(super) fn place_at(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::List(nodes) => nodes.iter_mut().for_each(|node| node.place_at(place)),
            Value::Map(entries) => {
                for entry in entries {
                    entry.key_place = place.clone();
                    entry.node.place_at(place);
                }
            }
            _ => {}
        }
    }

    /// The value of a key of a map; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|e| e.key == key).map(|e| &e.node).filter(|node| node.value != Value::Null)
    }

    /// As [`Self::get`], to be changed.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let Value::Map(entries) = &mut self.value else { return None };
        entries
            .iter_mut()
            .find(|e| e.key == key)
            .map(|e| &mut e.node)
            .filter(|node| node.value != Value::Null)
    }

    /// What was written, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("{value}"),
            Value::Whole(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) if text.chars().count() <= 60 => format!("\"{text}\""),
            Value::Text(text) => format!("\"{}...\"", text.chars().take(57).collect::<String>()),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Whole(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => serializer.serialize_u64(value),
                (_, Ok(value)) => serializer.serialize_i64(value),
                _ => serializer.serialize_f64(*value as f64),
            },
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(nodes) => serializer.collect_seq(nodes),
            Value::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&entry.key, &entry.node)?;
                }
                map.end()
            }
        }
    }
}

thread_local! {
    /// Where in the tree the reader is, for the path of what is no YAML: `.steps`, `[0]`, `.enrich`. The parser makes the
    /// values itself, so there is no way to hand them the path; it stays where the reader was when it failed.
    static TRAIL: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Reads what lies one step further down the tree.
fn along<T, E>(step: String, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    TRAIL.with_borrow_mut(|trail| trail.push(step));
    let value = read()?;
    TRAIL.with_borrow_mut(Vec::pop);
    Ok(value)
}

/// A value as the parser gives it.
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value.into())))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value)))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(i128::try_from(value).map_or(Value::Float(value as f64), Value::Whole)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = along(format!("[{}]", list.len()), || access.next_element())? {
            list.push(element);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let value = along(format!(".{}", key.value), || access.next_value())?;
            map.push((key, value));
        }
        Ok(Raw::Map(map))
    }
}

/// JSON whose strings may hold characters that YAML takes only as escapes. Between strings there are none, so each is
/// written as its escape.
fn yaml_of_json(text: &str) -> Cow<'_, str> {
    let is_strange = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if !text.trim_start().starts_with('{') || !text.contains(is_strange) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_strange(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

fn located(raw: Spanned<Raw>) -> Node {
    let place = place_of(raw.referenced);
    let value = match raw.value {
        Raw::Scalar(value) => value,
        Raw::List(list) => Value::List(list.into_iter().map(located).collect()),
        Raw::Map(map) => Value::Map(
            map.into_iter()
                .map(|(key, value)| Entry {
                    key_place: place_of(key.referenced),
                    key: key.value,
                    node: located(value),
                })
                .collect(),
        ),
    };
    Node { place, value }
}

fn place_of(location: Location) -> Place {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    Place::File { line: number(location.line()), column: number(location.column()) }
}

/// The parser's message without the place at its end and without hints at the parser's own settings.
fn plain(error: &serde_saphyr::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(message);
    let message = message.split("; use from_").next().unwrap_or(message);
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
