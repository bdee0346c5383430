//! Layered configuration: every value has a type, a check and a place it came from.
//!
//! The layers are defaults, the file of `--config`, the environment and `--set`; the later wins. All of them are
//! checked, also what a later layer replaces: a mistake is told when it is made and not on the day the flag goes away.
//! All roles share one table of keys, so that one file can serve a whole cluster; a role uses the keys it owns.

mod check;
mod error;
mod key;
pub mod keys;
mod layers;
mod units;
mod value;
mod yaml;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use error::{ConfigError, Contradiction, Shown, Source};
pub use key::{AnyKey, Key, Read, variable};
pub use layers::{Layers, PREFIX};
pub use units::{parse_duration, parse_size, print_duration, print_size};
pub use value::{
    Advertise, Auto, ClusterId, Detector, Folder, LogFormat, Setting, Size, Url, Words, WorkerDriver,
};

use crate::role::Role;

/// The checked configuration of one role.
pub struct Config {
    role: Role,
    values: BTreeMap<&'static str, Entry>,
    warnings: Vec<String>,
}

struct Entry {
    value: Box<dyn Any + Send + Sync>,
    text: String,
    origin: Source,
}

impl Config {
    /// Reads, types and checks all layers.
    ///
    /// # Errors
    /// The first mistake, in the order file, environment, `--set`, contradictions.
    pub fn load(role: Role, layers: &Layers) -> Result<Self, ConfigError> {
        let (given, warnings) = layers::gather(layers)?;
        let mut config = Self { role, values: BTreeMap::new(), warnings };
        for one in given {
            config.apply(one)?;
        }
        config.warnings.extend(check::together(&config)?);
        Ok(config)
    }

    /// The defaults of a role: for programs that embed it.
    #[must_use]
    pub fn defaults(role: Role) -> Self {
        Self { role, values: BTreeMap::new(), warnings: Vec::new() }
    }

    /// The same with one value more, taken as it is: for programs that embed a role.
    #[must_use]
    pub fn with<T: Setting>(mut self, key: &'static Key<T>, value: T) -> Self {
        let text = value.print();
        self.values.insert(key.name, Entry { value: Box::new(value), text, origin: Source::Program });
        self
    }

    /// Whose configuration it is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The value of a key: what the last layer gave, or the role's default.
    #[must_use]
    pub fn get<T: Setting>(&self, key: &'static Key<T>) -> T {
        let given = self.values.get(key.name).and_then(|entry| entry.value.downcast_ref::<T>());
        given.cloned().unwrap_or_else(|| (key.default)(self.role))
    }

    /// Where the value of a key came from.
    #[must_use]
    pub fn origin<T: Setting>(&self, key: &'static Key<T>) -> Source {
        self.values.get(key.name).map_or(Source::Default, |entry| entry.origin.clone())
    }

    /// What the layers gave for the keys of a role, which need not be this one: for who starts a process of that role, which
    /// is to be configured like this one.
    #[must_use]
    pub fn given_for(&self, role: Role) -> Vec<(&'static str, &str)> {
        let keys = keys::KEYS.iter().filter(|key| key.belongs_to(role));
        keys.filter_map(|key| Some((key.name(), self.values.get(key.name())?.text.as_str()))).collect()
    }

    /// A value that a look at the surroundings has shown to be of no use.
    #[must_use]
    pub fn refusal<T: Setting>(&self, key: &'static Key<T>, value: &str, expected: String) -> ConfigError {
        let (key, origin) = (key.name.to_owned(), self.origin(key));
        ConfigError::Value { key, value: Shown(value.to_owned()), origin, expected }
    }

    /// What is odd but possible; to be logged once logging runs.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Every key of the role with its value and, behind `#`, where it came from. It is a valid configuration file.
    #[must_use]
    pub fn print(&self) -> String {
        let rows: Vec<(String, String)> = keys::KEYS
            .iter()
            .filter(|key| key.belongs_to(self.role))
            .map(|key| match self.values.get(key.name()) {
                Some(entry) => (format!("{}: {}", key.name(), quoted(&entry.text)), entry.origin.to_string()),
                None => (
                    format!("{}: {}", key.name(), quoted(&key.default_text(self.role))),
                    Source::Default.to_string(),
                ),
            })
            .collect();
        let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
        rows.iter().fold(String::new(), |mut text, (left, origin)| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{left:<width$}  # {origin}");
            text
        })
    }

    fn apply(&mut self, given: layers::Given) -> Result<(), ConfigError> {
        let layers::Given { key, value, origin } = given;
        let shown = match &value {
            layers::Value::Text(text) => Shown(text.clone()),
            layers::Value::Nothing => Shown("nothing".to_owned()),
            layers::Value::Other(shown) => shown.clone(),
        };
        let Some(known) = keys::find(&key) else {
            let group = format!("{key}.");
            if matches!(value, layers::Value::Nothing)
                && keys::KEYS.iter().any(|k| k.name().starts_with(&group))
            {
                // A group whose keys are all commented out.
                return Ok(());
            }
            return Err(ConfigError::UnknownKey { hint: hint(&key), key, value: shown, origin });
        };
        let read = match &value {
            layers::Value::Text(text) => known.read(text),
            layers::Value::Nothing | layers::Value::Other(_) => Err(known.expected()),
        };
        match read {
            Ok(Read { value, text }) => {
                self.values.insert(known.name(), Entry { value, text, origin });
                Ok(())
            }
            Err(expected) => Err(ConfigError::Value { key, value: shown, origin, expected }),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Config({})\n{}", self.role, self.print())
    }
}

/// Texts that YAML would read otherwise are quoted; the colon of an address is none of them.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b':'))
        && !text.starts_with(['-', ':'])
        && !text.ends_with(':');
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// What to do about a key that does not exist.
fn hint(key: &str) -> String {
    let group = format!("{key}.");
    let members: Vec<_> =
        keys::KEYS.iter().map(|k| k.name()).filter(|name| name.starts_with(&group)).collect();
    if !members.is_empty() {
        return format!("it is a group, expected one of {}", members.join(", "));
    }
    let above = keys::KEYS.iter().map(|k| k.name()).find(|name| key.starts_with(&format!("{name}.")));
    if let Some(above) = above {
        return format!("did you mean {above}? It takes a single value");
    }
    match nearest(key, keys::KEYS.iter().map(|key| key.name())) {
        Some(near) => format!("did you mean {near}?"),
        None => "--print-config lists the keys that exist".to_owned(),
    }
}

/// The name that was probably meant.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // 0.8: a letter wrong, missing or too many, or words of a name exchanged; below, suggestions begin to mislead.
    names
        .map(|candidate| {
            (strsim::jaro_winkler(name, candidate).min(1.0), strsim::levenshtein(name, candidate), candidate)
        })
        .filter(|(likeness, distance, candidate)| *likeness >= 0.8 && *distance * 3 <= candidate.len())
        .min_by(|a, b| a.1.cmp(&b.1).then(b.0.total_cmp(&a.0)))
        .map(|(_, _, candidate)| candidate)
}
