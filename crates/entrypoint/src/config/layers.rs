//! The layers above the defaults: file, environment, `--set`. Each gives names, texts and where they stand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Shown, Source};
use super::key::variable;
use super::keys::KEYS;
use super::yaml::{self, Leaf};

/// What the environment form of every key begins with.
pub const PREFIX: &str = "TIDEGATE_";

/// Where a configuration is taken from. The later wins: file, environment, `--set`.
#[derive(Debug, Default, Clone)]
pub struct Layers {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// The environment of the process; names that do not begin with [`PREFIX`] are passed over.
    pub environment: Vec<(OsString, OsString)>,
    /// `--set`, each `KEY=VALUE`, of equal keys the last one wins.
    pub set: Vec<String>,
}

/// One value of one layer, not yet checked.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) origin: Source,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// Nothing behind the colon.
    Nothing,
    /// No single value; shown like this.
    Other(Shown),
}

/// The values of all layers, the one that wins last, and warnings.
pub(super) fn gather(layers: &Layers) -> Result<(Vec<Given>, Vec<String>), ConfigError> {
    let mut given = Vec::new();
    if let Some(path) = &layers.file {
        from_file(path, &mut given)?;
    }
    let mut warnings = Vec::new();
    from_environment(&layers.environment, &mut given, &mut warnings);
    for assignment in &layers.set {
        let (key, value) = assignment
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| ConfigError::NoAssignment { text: Shown(assignment.clone()) })?;
        given.push(Given {
            key: key.trim().to_owned(),
            value: Value::Text(value.trim().to_owned()),
            origin: Source::Flag,
        });
    }
    Ok((given, warnings))
}

fn from_file(path: &Path, given: &mut Vec<Given>) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| ConfigError::Unreadable { path: path.to_owned(), cause })?;
    let entries = yaml::read(&text).map_err(|cause| ConfigError::Syntax { path: path.to_owned(), cause })?;
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries {
        if let Some(first) = lines.insert(entry.key.clone(), entry.line) {
            let path = path.to_owned();
            return Err(ConfigError::Twice { key: entry.key, path, first, second: entry.line });
        }
        let value = match entry.value {
            Leaf::Text(text) => Value::Text(text),
            Leaf::Nothing => Value::Nothing,
            Leaf::List => Value::Other(Shown("a list".to_owned())),
        };
        given.push(Given {
            key: entry.key,
            value,
            origin: Source::File { path: path.to_owned(), line: entry.line },
        });
    }
    Ok(())
}

fn from_environment(
    environment: &[(OsString, OsString)],
    given: &mut Vec<Given>,
    warnings: &mut Vec<String>,
) {
    let known: BTreeMap<String, &str> = KEYS.iter().map(|key| (variable(key.name()), key.name())).collect();
    // The order of the environment is no order; this one keeps warnings and errors the same from run to run.
    let mut ours: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    ours.sort();
    for (name, value) in ours {
        match known.get(&name) {
            Some(key) => {
                let value = match value.to_str() {
                    Some(text) => Value::Text(text.trim().to_owned()),
                    None => Value::Other(Shown(value.to_string_lossy().into_owned())),
                };
                given.push(Given { key: (*key).to_owned(), value, origin: Source::Variable(name) });
            }
            None => {
                let near = super::nearest(&name, known.keys().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                warnings.push(format!("variable {name} names no configuration key and is ignored{hint}"));
            }
        }
    }
}
