//! Reading checked values out of the tree, collecting every mistake on the way.
//!
//! A reader returns `None` for what is absent and for what is wrong; the latter is also noted. So a section is read to
//! its end whatever it holds, and defaults may stand in for what is wrong, as the result is thrown away then.

use std::cell::RefCell;
use std::time::Duration;

use super::error::{JobFileError, JobFileErrors, Place};
use super::node::{Node, Value};
use super::units;
use crate::suggest::closest;
use crate::template::Template;

/// Notes the mistakes of one file.
pub(super) struct Findings<'a> {
    file: &'a str,
    errors: RefCell<Vec<JobFileError>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self { file, errors: RefCell::new(Vec::new()) }
    }

    pub(super) fn note(&self, place: &Place, path: &str, message: impl Into<String>) {
        self.errors.borrow_mut().push(JobFileError {
            file: self.file.to_owned(),
            place: place.clone(),
            path: path.to_owned(),
            message: message.into(),
        });
    }

    /// The result, if there was no mistake.
    pub(super) fn conclude<T>(self, result: Option<T>) -> Result<T, JobFileErrors> {
        match (JobFileErrors::from_list(self.errors.into_inner()), result) {
            (None, Some(result)) => Ok(result),
            (Some(errors), _) => Err(errors),
            // Whatever returns nothing has noted why; should one not have, the file is still refused.
            (None, None) => Err(JobFileErrors::from(JobFileError {
                file: self.file.to_owned(),
                place: Place::START,
                path: String::new(),
                message: "the job file cannot be read".to_owned(),
            })),
        }
    }
}

/// A value, its path, and where to note what is wrong with it.
#[derive(Clone)]
pub(super) struct Item<'a> {
    pub(super) node: &'a Node,
    pub(super) path: String,
    pub(super) findings: &'a Findings<'a>,
}

impl<'a> Item<'a> {
    pub(super) fn note(&self, message: impl Into<String>) {
        self.findings.note(&self.node.place, &self.path, message);
    }

    fn wrong<T>(&self, expected: &str) -> Option<T> {
        self.note(format!("expected {expected}, found {}", self.node.describe()));
        None
    }

    /// A map with these keys and no others.
    pub(super) fn section(&self, allowed: &'static [&'static str]) -> Option<Section<'a>> {
        let Value::Map(entries) = &self.node.value else {
            return self.wrong(&format!("a map with the keys {}", allowed.join(", ")));
        };
        for entry in entries.iter().filter(|entry| !allowed.contains(&entry.key.as_str())) {
            let message = match closest(&entry.key, allowed.iter().copied()) {
                Some(near) => {
                    format!("unknown key, did you mean `{near}`? Allowed here: {}", allowed.join(", "))
                }
                None => format!("unknown key; allowed here: {}", allowed.join(", ")),
            };
            self.findings.note(&entry.key_place, &joined(&self.path, &entry.key), message);
        }
        Some(Section { item: self.clone() })
    }

    /// A map with any keys.
    pub(super) fn open_section(&self) -> Option<Section<'a>> {
        match &self.node.value {
            Value::Map(_) => Some(Section { item: self.clone() }),
            _ => self.wrong("a map"),
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) if text.is_empty() => self.wrong("a text that is not empty"),
            Value::Text(text) => Some(text),
            Value::Bool(_) | Value::Whole(_) | Value::Float(_) => self.wrong("a text (put it into quotes)"),
            _ => self.wrong("a text"),
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.node.value {
            Value::Bool(value) => Some(value),
            _ => self.wrong("true or false"),
        }
    }

    /// A whole number within limits, both included.
    pub(super) fn whole<T: TryFrom<i128>>(&self, from: i128, to: i128) -> Option<T> {
        match self.node.value {
            Value::Whole(value) if (from..=to).contains(&value) => T::try_from(value).ok(),
            _ => self.wrong(&format!("a whole number from {from} to {to}")),
        }
    }

    pub(super) fn number(&self, expected: &str, allowed: impl Fn(f64) -> bool) -> Option<f64> {
        let value = match self.node.value {
            Value::Whole(value) => value as f64,
            Value::Float(value) => value,
            _ => return self.wrong(expected),
        };
        if value.is_finite() && allowed(value) { Some(value) } else { self.wrong(expected) }
    }

    /// A duration, zero included.
    pub(super) fn duration(&self) -> Option<Duration> {
        let duration = match &self.node.value {
            Value::Whole(millis) => u64::try_from(*millis).ok().map(Duration::from_millis),
            Value::Text(text) => units::duration(text),
            _ => None,
        };
        duration.or_else(|| self.wrong("a duration such as 250ms, 10s or 5m, or a number of milliseconds"))
    }

    /// A duration above zero.
    pub(super) fn positive_duration(&self) -> Option<Duration> {
        let duration = self.duration()?;
        if duration.is_zero() { self.wrong("a duration above zero") } else { Some(duration) }
    }

    /// A size within limits in bytes, both included.
    pub(super) fn size(&self, from: u64, to: u64) -> Option<u64> {
        let size = match &self.node.value {
            Value::Whole(bytes) => u64::try_from(*bytes).ok(),
            Value::Text(text) => units::size(text),
            _ => None,
        };
        let Some(size) = size else {
            return self.wrong("a size such as 64KiB or 10MB, or a number of bytes");
        };
        if (from..=to).contains(&size) {
            return Some(size);
        }
        self.wrong(&format!("a size from {} to {}", units::show_size(from), units::show_size(to)))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let word = match &self.node.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
            return Some(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let meant = closest(word, names.iter().copied())
            .map_or_else(String::new, |n| format!(", did you mean `{n}`?"));
        self.wrong(&format!("one of {}", names.join(", "))).or_else(|| self.extend(&meant))
    }

    /// Adds to the mistake that was noted last.
    fn extend<T>(&self, more: &str) -> Option<T> {
        if let Some(last) = self.findings.errors.borrow_mut().last_mut() {
            last.message.push_str(more);
        }
        None
    }

    pub(super) fn template(&self) -> Option<Template> {
        let text = self.text()?;
        Template::parse(text).map_err(|error| self.note(format!("no template: {error}"))).ok()
    }

    /// The elements of a list.
    pub(super) fn list(&self) -> Option<Vec<Item<'a>>> {
        let Value::List(nodes) = &self.node.value else { return self.wrong("a list") };
        let item =
            |(index, node)| Item { node, path: format!("{}[{index}]", self.path), findings: self.findings };
        Some(nodes.iter().enumerate().map(item).collect())
    }
}

/// A map whose keys have been checked.
#[derive(Clone)]
pub(super) struct Section<'a> {
    item: Item<'a>,
}

impl<'a> Section<'a> {
    /// The section as a value.
    pub(super) fn item(&self) -> &Item<'a> {
        &self.item
    }

    /// The value of a key; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        let node = self.item.node.get(key)?;
        Some(Item { node, path: joined(&self.item.path, key), findings: self.item.findings })
    }

    /// The value of a key that has to be there.
    pub(super) fn require(&self, key: &str, what: &str) -> Option<Item<'a>> {
        self.get(key).or_else(|| {
            self.item.findings.note(
                &self.item.node.place,
                &joined(&self.item.path, key),
                format!("missing: {what}"),
            );
            None
        })
    }

    /// The keys that were written, with their values.
    pub(super) fn entries(&self) -> Vec<(&'a str, &'a Place, Item<'a>)> {
        let Value::Map(entries) = &self.item.node.value else { return Vec::new() };
        let entry = |e: &'a super::node::Entry| {
            let path = joined(&self.item.path, &e.key);
            (e.key.as_str(), &e.key_place, Item { node: &e.node, path, findings: self.item.findings })
        };
        entries.iter().map(entry).collect()
    }

    /// The one key of `keys` that is there, which says what kind of thing this is.
    pub(super) fn kind(&self, keys: &[&str], what: &str) -> Option<(&'a str, Item<'a>)> {
        let entries = self.entries();
        let kinds: Vec<_> = entries.iter().filter(|(key, ..)| keys.contains(key)).collect();
        match kinds.as_slice() {
            [(key, _, item)] => Some((key, item.clone())),
            // A misspelt kind has been noted with a suggestion.
            [] if entries.iter().any(|(key, ..)| *key != "parallelism") => None,
            [] => {
                self.item.note(format!("missing: {what}, one of {}", keys.join(", ")));
                None
            }
            [(first, ..), (_, place, item), ..] => {
                let message =
                    format!("there is `{first}` already; {what} is only one of {}", keys.join(", "));
                self.item.findings.note(place, &item.path, message);
                None
            }
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
