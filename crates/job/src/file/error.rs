//! What is wrong with a job file, and where.

use std::fmt;

/// Where a value of a job was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file.
    File {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
    /// On the command line; the flag's text, `steps.customer.capacity=50`.
    Set(String),
}

impl Place {
    /// The start of the file.
    pub(super) const START: Self = Self::File { line: 1, column: 1 };
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct JobFileError {
    /// The file's name, as it was given.
    pub file: String,
    /// Where the mistake was written.
    pub place: Place,
    /// The path of the key: `steps[1].enrich.capacity`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl JobFileError {
    /// The line in the file, from 1; absent for a value from the command line.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        match self.place {
            Place::File { line, .. } => Some(line),
            Place::Set(_) => None,
        }
    }

    /// The column in the file, from 1; absent for a value from the command line.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        match self.place {
            Place::File { column, .. } => Some(column),
            Place::Set(_) => None,
        }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { line, column } => write!(f, "{}:{line}:{column}: ", self.file)?,
            Place::Set(text) => write!(f, "--set {text}: ")?,
        }
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// All mistakes of a job file, in the order of the file; never empty. Printed as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFileErrors(Vec<JobFileError>);

impl JobFileErrors {
    /// The mistakes, sorted by place. `None` when there are none.
    pub(crate) fn from_list(mut errors: Vec<JobFileError>) -> Option<Self> {
        errors.sort_by(|a, b| a.place.cmp(&b.place));
        errors.dedup();
        if errors.is_empty() { None } else { Some(Self(errors)) }
    }

    /// The mistakes in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &JobFileError> {
        self.0.iter()
    }
}

impl From<JobFileError> for JobFileErrors {
    fn from(error: JobFileError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for JobFileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileErrors {}
