//! The line of a record, counted from the start of its file.
//!
//! A reader of a split in the middle of a file does not know how many lines are before it, and counting them at each
//! split would read a large file once more for each. Only who wants to say the line to a person pays for the count.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use job::record::Origin;

const BLOCK: usize = 256 << 10;

/// The line of `origin` counted from the start of its file, from 1. Reads the file up to the split.
///
/// # Errors
///
/// The file cannot be read, or is shorter than it was.
pub fn resolve_line(origin: &Origin) -> io::Result<u64> {
    LineNumbers::default().resolve(origin)
}

/// Resolves lines of many records, counting no part of a file twice as long as splits come in order.
#[derive(Debug, Default)]
pub struct LineNumbers {
    /// By file and start of a split: the newlines before it.
    counted: BTreeMap<(Arc<str>, u64), u64>,
}

impl LineNumbers {
    /// The line of `origin` counted from the start of its file, from 1.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is shorter than it was.
    pub fn resolve(&mut self, origin: &Origin) -> io::Result<u64> {
        // The split of a packed file is the whole file, so that nothing packed is counted here.
        if origin.split_start == 0 {
            return Ok(origin.line);
        }
        let known = self
            .counted
            .range((Arc::clone(&origin.file), 0)..=(Arc::clone(&origin.file), origin.split_start))
            .next_back()
            .map_or((0, 0), |((_, offset), newlines)| (*offset, *newlines));
        let (counted_to, mut newlines) = known;
        if counted_to < origin.split_start {
            newlines += count_newlines(&origin.file, counted_to, origin.split_start)?;
            self.counted.insert((Arc::clone(&origin.file), origin.split_start), newlines);
        }
        Ok(newlines + origin.line)
    }
}

fn count_newlines(path: &str, from: u64, to: u64) -> io::Result<u64> {
    use io::Seek;

    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::Start(from))?;
    let mut part = file.take(to - from);
    let mut block = vec![0; BLOCK];
    let mut newlines = 0;
    loop {
        let read = part.read(&mut block)?;
        if read == 0 {
            break;
        }
        newlines += memchr::memchr_iter(b'\n', block.get(..read).unwrap_or_default()).count() as u64;
    }
    if part.limit() > 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("`{path}` is shorter than it was")));
    }
    Ok(newlines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(file: &str, line: u64, split_start: u64) -> Origin {
        Origin { file: file.into(), line, offset: split_start, split_start }
    }

    #[test]
    fn newlines_before_the_split_are_counted_once_for_all_of_its_records() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\nb\n\nc\nd\n").unwrap();
        let path = file.path().to_str().unwrap();
        let mut lines = LineNumbers::default();
        assert_eq!(lines.resolve(&origin(path, 2, 0)).unwrap(), 2);
        assert_eq!(lines.resolve(&origin(path, 1, 5)).unwrap(), 4);
        assert_eq!(lines.resolve(&origin(path, 1, 7)).unwrap(), 5);
        std::fs::remove_file(file.path()).unwrap();
        assert_eq!(lines.resolve(&origin(path, 2, 7)).unwrap(), 6);
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\n").unwrap();
        let error = resolve_line(&origin(file.path().to_str().unwrap(), 1, 10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
