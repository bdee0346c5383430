//! What the flights job has to write, computed without the code under test.
//!
//! A flight's line with `,"plane":` and the plane's row, or null, before its last brace: bytes in, bytes out. Only the
//! look-up field is read as JSON, by `serde_json`. The checks compare whole lines, so every original field is compared
//! byte for byte.

mod compare;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

pub use compare::{Digest, parts, same_multiset, same_per_key, same_sequence};

use crate::flights;

/// The rows of one table, by the characters of a string field.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: HashMap<String, Vec<u8>>,
}

impl Table {
    /// Reads a file of rows.
    ///
    /// # Errors
    /// It cannot be read, a row has no such field, or two have the same.
    pub fn read(path: &Path, key: &str) -> anyhow::Result<Self> {
        let mut rows = HashMap::new();
        for (place, line) in flights::lines(path)?.into_iter().enumerate() {
            let at = || format!("{}:{}", path.display(), place + 1);
            let name = text_of(&line, key).with_context(at)?;
            let name = name.with_context(|| format!("{}: `{key}` is null", at()))?;
            if rows.insert(name, compact(&line)).is_some() {
                bail!("{}: the key stands there twice", at());
            }
        }
        Ok(Self { rows })
    }

    /// The row of a key.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&[u8]> {
        self.rows.get(key).map(Vec::as_slice)
    }
}

/// What a job makes of its input.
#[derive(Debug, Clone, Default)]
pub struct Joined {
    /// The output's lines in the order of the input.
    pub lines: Vec<Vec<u8>>,
    /// Records whose field was null: no call.
    pub without_key: u64,
    /// Records whose key the table does not have.
    pub unknown: u64,
}

impl Joined {
    /// Records for which the answer was null.
    #[must_use]
    pub const fn empty(&self) -> u64 {
        self.without_key + self.unknown
    }

    /// Records for which a call was made.
    #[must_use]
    pub fn called(&self) -> u64 {
        self.lines.len() as u64 - self.without_key
    }
}

/// Joins the records of a file with a table: `by` is the record's field, `into` the one that is added.
///
/// # Errors
/// A file cannot be read, or a line is no object.
pub fn join(records: &Path, table: &Table, by: &str, into: &str) -> anyhow::Result<Joined> {
    let mut joined = Joined::default();
    for (place, line) in flights::lines(records)?.into_iter().enumerate() {
        let at = || format!("{}:{}", records.display(), place + 1);
        let key = text_of(&line, by).with_context(at)?;
        let row = key.as_deref().and_then(|key| table.row(key));
        match (&key, row) {
            (None, _) => joined.without_key += 1,
            (Some(_), None) => joined.unknown += 1,
            (Some(_), Some(_)) => {}
        }
        let fields = line.strip_suffix(b"}").with_context(|| format!("{}: no object", at()))?;
        let name = format!(",\"{into}\":");
        joined.lines.push([fields, name.as_bytes(), row.unwrap_or(b"null"), b"}"].concat());
    }
    Ok(joined)
}

/// The flights of a file with their planes.
///
/// # Errors
/// As [`join`].
pub fn flights_with_planes(records: &Path, planes: &Path) -> anyhow::Result<Joined> {
    join(records, &Table::read(planes, "tailnum")?, "tailnum", "plane")
}

/// The characters of a string field; none where it is missing or null.
fn text_of(line: &[u8], field: &str) -> anyhow::Result<Option<String>> {
    let record: Value = serde_json::from_slice(line)?;
    match record.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => bail!("`{field}` is {other}, no string"),
    }
}

/// Without white space outside strings.
fn compact(json: &[u8]) -> Vec<u8> {
    let (mut inside, mut escaped) = (false, false);
    let mut kept = Vec::with_capacity(json.len());
    for byte in json {
        if inside || !byte.is_ascii_whitespace() {
            kept.push(*byte);
        }
        if *byte == b'"' && !escaped {
            inside = !inside;
        }
        escaped = inside && *byte == b'\\' && !escaped;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_what_its_page_says() {
        let joined = flights_with_planes(&flights::sample(), &flights::planes()).unwrap();
        assert_eq!(joined.lines.len() as u64, flights::RECORDS);
        assert_eq!((joined.without_key, joined.unknown), (flights::WITHOUT_TAILNUM, flights::UNKNOWN_PLANE));
    }

    #[test]
    fn a_row_goes_before_the_last_brace_and_nothing_else_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (records, rows) = (folder.path().join("r"), folder.path().join("t"));
        std::fs::write(&rows, "{ \"k\" : \"a b\", \"x\":\t1 }\n").unwrap();
        std::fs::write(&records, "{ \"k\":\"a b\" }\n{\"k\":\"c\"}\n{\"k\":null}\n{\"x\":1}\n").unwrap();
        let joined = join(&records, &Table::read(&rows, "k").unwrap(), "k", "p").unwrap();
        let lines: Vec<_> = joined.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        let expected = [
            "{ \"k\":\"a b\" ,\"p\":{\"k\":\"a b\",\"x\":1}}",
            "{\"k\":\"c\",\"p\":null}",
            "{\"k\":null,\"p\":null}",
            "{\"x\":1,\"p\":null}",
        ];
        assert_eq!(lines, expected);
        assert_eq!((joined.without_key, joined.unknown, joined.called()), (2, 1, 2));
    }

    #[test]
    fn white_space_inside_strings_stays() {
        assert_eq!(compact(br#"{ "a \" b" : [ 1 , "\\" ] }"#), br#"{"a \" b":[1,"\\"]}"#);
    }
}
