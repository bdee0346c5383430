//! The rows of a file by the text of their key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use bytes::Bytes;
use connectors::source::file::{FileSplit, ReadLine, SplitReader};
use job::record::{JsonRecord, JsonText, Kind, LoneSurrogate, Malformed, compact};

use super::LookupError;

/// The longest row; it only keeps a file that is no table from filling the memory.
const MAX_ROW: u64 = 64 << 20;

/// Rows, each compacted to one line.
///
/// A row is found by the text that a URL template would make of its key: of a string its characters, of a number or
/// boolean its text, of an object or array its compact JSON. Thus `7` and `"7"` are one key here, unlike in the `table`
/// call of a job.
#[derive(Debug, Default)]
pub struct Rows {
    by_key: HashMap<String, Bytes>,
}

impl Rows {
    /// Reads a file of one JSON object a line, packed if its name ends in `.gz`. A row whose key is null cannot be asked
    /// for and is left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read, a line is no object or lacks the key, or two rows have the same key.
    pub fn load(file: &Path, key: &str) -> Result<Self, LookupError> {
        let gzip = file.extension().is_some_and(|extension| extension == "gz");
        let split = FileSplit { id: 0, path: file.to_path_buf(), start: 0, end: None, gzip, resume: None };
        let mut reader = SplitReader::open(&split, MAX_ROW)?;
        let mut rows = Self::default();
        while let Some(read) = reader.next()? {
            let (line, added) = match read {
                ReadLine::Line { bytes, origin } => {
                    let line = origin.line;
                    let row = JsonRecord::parse(bytes, origin).map_err(|error| error.to_string());
                    (line, row.and_then(|row| rows.add(&row, key)))
                }
                ReadLine::Malformed { reason, origin, .. } => (origin.line, Err(reason)),
            };
            added.map_err(|reason| LookupError::Row { file: file.to_path_buf(), line, reason })?;
        }
        Ok(rows)
    }

    fn add(&mut self, row: &JsonRecord, key: &str) -> Result<(), String> {
        let value = row.field(key).ok_or_else(|| format!("the row has no field `{key}`"))?;
        if value.is_null() {
            return Ok(());
        }
        let text = text_of(value)?;
        let line = compact(row.line()).map_err(|error| error.to_string())?;
        match self.by_key.entry(text) {
            Entry::Vacant(entry) => {
                entry.insert(line);
                Ok(())
            }
            Entry::Occupied(entry) => Err(format!("another row has the `{key}` {}, too", entry.key())),
        }
    }

    /// The row of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Bytes> {
        self.by_key.get(key)
    }
}

fn text_of(value: JsonText<'_>) -> Result<String, String> {
    match value.kind() {
        Kind::Array | Kind::Object => {
            let compacted = compact(value.text().as_bytes()).map_err(|error: Malformed| error.to_string())?;
            Ok(String::from_utf8_lossy(&compacted).into_owned())
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            value.string().map(|text| text.into_owned()).map_err(|error: LoneSurrogate| error.to_string())
        }
    }
}
