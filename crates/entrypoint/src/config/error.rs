//! What can be wrong with a configuration, each said in one line.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// No layer gave one.
    Default,
    /// A line of the configuration file, counted from 1.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The line of the key.
        line: u64,
    },
    /// An environment variable.
    Variable(String),
    /// `--set` on the command line.
    Flag,
    /// The program that embeds a role.
    Program,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag => f.write_str("flag --set"),
            Self::Program => f.write_str("program"),
        }
    }
}

/// A configuration that cannot be used. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No role has such a key.
    #[error("{key}: unknown key (value {value}, from {origin}); {hint}")]
    UnknownKey {
        /// The key.
        key: String,
        /// What it was set to.
        value: Shown,
        /// Where.
        origin: Source,
        /// The nearest key that exists, or how to see all.
        hint: String,
    },
    /// The value is of another type, or impossible.
    #[error("{key}: {value} from {origin} is not possible; expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// What it was set to.
        value: Shown,
        /// Where.
        origin: Source,
        /// What would be right.
        expected: String,
    },
    /// Two values that cannot be together.
    #[error(transparent)]
    Contradiction(#[from] Box<Contradiction>),
    /// One file sets a key twice.
    #[error("{key}: set twice in {path}, on lines {first} and {second}; keep one of them", path = path.display())]
    Twice {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// The line of the first.
        first: u64,
        /// The line of the second.
        second: u64,
    },
    /// The file could not be read.
    #[error("--config {path}: {cause}; expected a readable YAML file", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// The file is no YAML mapping.
    #[error("--config {path}: {cause}; expected a mapping of keys to values", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says, with line and column.
        cause: String,
    },
    /// `--set` without `=`.
    #[error("--set {text}: no value; expected --set KEY=VALUE, such as --set heartbeat.interval=5s")]
    NoAssignment {
        /// What was given.
        text: Shown,
    },
}

/// Two values that are possible alone and not together.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {value} from {origin} contradicts {other} = {other_value} from {other_origin}; {expected}")]
pub struct Contradiction {
    /// The first key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// Where it came from.
    pub origin: Source,
    /// The second key.
    pub other: &'static str,
    /// Its value.
    pub other_value: String,
    /// Where it came from.
    pub other_origin: Source,
    /// What would be right.
    pub expected: String,
}

/// A text from outside, shown quoted on one line and cut to a length that a terminal bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown(pub String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let head: String = chars.by_ref().take(100).collect();
        let more = if chars.next().is_some() { "..." } else { "" };
        write!(f, "\"{}{more}\"", head.escape_debug())
    }
}
