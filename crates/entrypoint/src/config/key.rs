//! What a key is: name, type, default, meaning and check.

use std::any::Any;

use super::value::Setting;
use crate::role::Role;

/// A configuration key of type `T`.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// Its name in files and after `--set`; upper-cased and with underscores also its environment variable.
    pub name: &'static str,
    /// What it means, in one line.
    pub doc: &'static str,
    /// Whose key it is.
    pub roles: &'static [Role],
    /// Its value where no layer gives one.
    pub default: fn(Role) -> T,
    /// Refuses what has the right type but cannot be; the error says what would be right.
    pub check: fn(&T) -> Result<(), &'static str>,
}

/// A key whatever its type: what the table of keys is made of.
pub trait AnyKey: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What it means.
    fn doc(&self) -> &'static str;

    /// Whether the role reads it.
    fn belongs_to(&self, role: Role) -> bool;

    /// The default, printed.
    fn default_text(&self, role: Role) -> String;

    /// What its type takes, to stand after "expected".
    fn expected(&self) -> String;

    /// Reads and checks a text.
    ///
    /// # Errors
    /// What would be right, to stand after "expected".
    fn read(&self, text: &str) -> Result<Read, String>;
}

/// A value that a layer gave, read and checked.
pub struct Read {
    /// The value, of the key's type.
    pub value: Box<dyn Any + Send + Sync>,
    /// The value, printed.
    pub text: String,
}

impl<T: Setting> AnyKey for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn belongs_to(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    fn default_text(&self, role: Role) -> String {
        (self.default)(role).print()
    }

    fn expected(&self) -> String {
        T::expected()
    }

    fn read(&self, text: &str) -> Result<Read, String> {
        let value = T::parse(text).ok_or_else(T::expected)?;
        (self.check)(&value).map_err(str::to_owned)?;
        Ok(Read { text: value.print(), value: Box::new(value) })
    }
}

/// The variable that sets a key: `heartbeat.interval` is `TIDEGATE_HEARTBEAT_INTERVAL`.
#[must_use]
pub fn variable(name: &str) -> String {
    let upper = name.chars().map(|c| if matches!(c, '.' | '-') { '_' } else { c.to_ascii_uppercase() });
    super::layers::PREFIX.chars().chain(upper).collect()
}
