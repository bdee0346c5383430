//! The `table` call: the rows of a file, held in memory.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use bytes::Bytes;
use job::key::Key;
use job::options::TableOptions;
use job::record::{JsonRecord, compact};

use super::answer::AnswerRules;
use super::{Answer, Call, CallRequest, Called};
use crate::source::file::{FileSplit, ReadLine, SourceError, SplitReader, is_gzip};

/// The longest row. What a step takes is its `max_answer`; this one only keeps a file that is no table from filling the
/// memory.
const MAX_ROW: u64 = 64 << 20;

/// Why a file is no table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It cannot be read.
    #[error("the table cannot be loaded: {0}")]
    Source(#[from] SourceError),
    /// A line is no row.
    #[error("the table `{file}`, line {line}: {reason}")]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A row lacks the field that names it. A row where it is null is none that could be asked for, and no error.
    #[error("the table `{file}`, line {line}: the row has no field `{key}`, which is the table's key")]
    NoKey {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The field.
        key: String,
    },
    /// Two rows have the same key.
    #[error("the table `{file}` has two rows with `{key}` {value}: lines {first} and {second}")]
    Twice {
        /// The file.
        file: PathBuf,
        /// The field.
        key: String,
        /// Its value as the second row has it.
        value: String,
        /// The line of the first row, from 1.
        first: u64,
        /// The line of the second row.
        second: u64,
    },
}

struct Row {
    line: u64,
    compact: Bytes,
}

/// Rows by key.
#[derive(Default)]
struct Table {
    rows: HashMap<Key, Row>,
}

impl Table {
    fn load(file: &Path, key: &str, length: u64) -> Result<Self, TableError> {
        let split = FileSplit {
            id: 0,
            path: file.to_path_buf(),
            start: 0,
            end: Some(length),
            gzip: is_gzip(file),
            resume: None,
        };
        let mut reader = SplitReader::open(&split, MAX_ROW)?;
        let mut table = Self::default();
        while let Some(read) = reader.next()? {
            match read {
                ReadLine::Line { bytes, origin } => {
                    let malformed =
                        |line, reason| TableError::Malformed { file: file.to_path_buf(), line, reason };
                    let line = origin.line;
                    let row = JsonRecord::parse(bytes, origin)
                        .map_err(|error| malformed(line, error.to_string()))?;
                    table.insert(file, key, line, &row)?;
                }
                ReadLine::Malformed { reason, origin, .. } => {
                    return Err(TableError::Malformed {
                        file: file.to_path_buf(),
                        line: origin.line,
                        reason,
                    });
                }
            }
        }
        table.rows.shrink_to_fit();
        Ok(table)
    }

    fn insert(&mut self, file: &Path, key: &str, line: u64, row: &JsonRecord) -> Result<(), TableError> {
        let Some(value) = row.field(key) else {
            return Err(TableError::NoKey { file: file.to_path_buf(), line, key: key.to_owned() });
        };
        let Some(parsed) = Key::of(value) else { return Ok(()) };
        // A copy of its own: the line shares its block of the file, which would stay in memory with it.
        let compact = compact(row.line()).map_err(|error| TableError::Malformed {
            file: file.to_path_buf(),
            line,
            reason: error.to_string(),
        })?;
        match self.rows.insert(parsed, Row { line, compact }) {
            None => Ok(()),
            Some(earlier) => Err(TableError::Twice {
                file: file.to_path_buf(),
                key: key.to_owned(),
                value: value.text().chars().take(100).collect(),
                first: earlier.line,
                second: line,
            }),
        }
    }
}

/// One state of one file, by one key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TableId {
    file: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
    key: String,
}

/// The tables in use in this process, so that subtasks share one.
static TABLES: Mutex<BTreeMap<TableId, Weak<Table>>> = Mutex::new(BTreeMap::new());

/// The table, loaded unless it is in use already. Whoever comes while it is being loaded waits for it.
fn shared(options: &TableOptions) -> Result<Arc<Table>, TableError> {
    let metadata = fs::metadata(&options.file)
        .map_err(|source| SourceError::Open { path: options.file.clone(), source })?;
    if !metadata.is_file() {
        return Err(SourceError::NotAFile { path: options.file.clone() }.into());
    }
    let id = TableId {
        file: options.file.clone(),
        modified: metadata.modified().ok(),
        length: metadata.len(),
        key: options.key.clone(),
    };
    // A loader that panicked has inserted nothing.
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(table) = tables.get(&id).and_then(Weak::upgrade) {
        return Ok(table);
    }
    let table = Arc::new(Table::load(&options.file, &options.key, metadata.len())?);
    tables.retain(|_, table| table.strong_count() > 0);
    tables.insert(id, Arc::downgrade(&table));
    Ok(table)
}

/// Answers with the row that a record's field names.
pub(super) struct TableCall {
    table: Arc<Table>,
    by: String,
    rules: AnswerRules,
}

impl TableCall {
    pub(super) fn build(options: &TableOptions, rules: AnswerRules) -> Result<Self, TableError> {
        Ok(Self { table: shared(options)?, by: options.by.clone(), rules })
    }
}

impl Call for TableCall {
    fn call(&self, request: &CallRequest) -> Called {
        let Some(key) = request.record.path(&self.by).and_then(Key::of) else {
            return Called::NotMade(Ok(Answer::Empty));
        };
        Called::Ready(match self.table.rows.get(&key) {
            // A row is an object, whatever it is for.
            Some(row) => {
                self.rules.check_length(row.compact.len() as u64).map(|()| Answer::Value(row.compact.clone()))
            }
            None => Ok(Answer::Empty),
        })
    }
}

#[cfg(test)]
mod tests;
