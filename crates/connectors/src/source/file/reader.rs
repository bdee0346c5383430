//! The lines of one split.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use job::record::Origin;

use super::input::{Filled, Input};
use super::{FileSplit, MALFORMED_TEXT_LIMIT, SourceError, malformed_text};

/// How much is read at a time. The lines of a block share it, so that a line costs neither an allocation nor a copy, which
/// is a third faster than a copy for each. A record that waits long keeps its whole block in memory; with blocks of 256 KiB
/// that is four times as much, and reading is not faster.
const BLOCK: usize = 64 << 10;

/// How much is read behind the end of a split, where all but the rest of one line is another's.
const LAST_BLOCK: usize = 16 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What stands on one line that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadLine {
    /// The line's bytes, without its end; whether they are a record is to be found out.
    Line {
        /// The bytes.
        bytes: Bytes,
        /// Where they were read.
        origin: Origin,
    },
    /// No record whatever is in it.
    Malformed {
        /// What there is of it, at most [`MALFORMED_TEXT_LIMIT`] bytes.
        text: String,
        /// What is wrong.
        reason: String,
        /// Where it begins.
        origin: Origin,
    },
}

/// How far a split was read: where its next line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// In bytes from the start of the unpacked file. Behind packed data that breaks off or is damaged `u64::MAX`: of such a
    /// file nothing more is read, and the place alone would not say whether the break was met.
    pub offset: u64,
    /// Counted as in [`Origin::line`].
    pub line: u64,
}

/// Reads the lines of a split from start to end. It blocks, and needs memory for no more than two of the longest lines
/// and what is kept of a malformed one.
pub struct SplitReader {
    input: Input,
    file: Arc<str>,
    start: u64,
    /// No line that begins here or later is read.
    end: u64,
    max_record: usize,
    /// What was read and not yet handed out. It begins at `position`.
    block: Bytes,
    /// So many bytes of the block are known to hold no newline.
    scanned: usize,
    position: Position,
    /// Absent while there may be more; then how the input ended.
    ended: Option<Filled>,
}

impl SplitReader {
    /// Opens a split whose lines may be `max_record` bytes long. With [`FileSplit::resume`] it reads on as the reader would
    /// have whose [`position`](Self::position) that is.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, or is shorter than it was when it was listed or read.
    pub fn open(split: &FileSplit, max_record: u64) -> Result<Self, SourceError> {
        let Some(name) = split.path.to_str() else {
            return Err(SourceError::Name { path: split.path.clone() });
        };
        let end = if split.gzip { u64::MAX } else { split.end.unwrap_or(u64::MAX) };
        // At the very beginning nothing was read, not even the mark that may be there.
        let resume = split.resume.filter(|at| at.offset > 0);
        let from = match resume {
            // Nothing follows, so nothing need be unpacked either.
            Some(at) if split.gzip && at.offset >= end => 0,
            Some(at) => at.offset,
            None if split.gzip => 0,
            // Whether a line begins at `start` is seen from the byte before.
            None => split.start.saturating_sub(1),
        };
        let mut reader = Self {
            input: Input::open(split, from)?,
            file: name.into(),
            start: split.start,
            end,
            max_record: usize::try_from(max_record).unwrap_or(usize::MAX),
            block: Bytes::new(),
            scanned: 0,
            position: resume.unwrap_or(Position { offset: from, line: 1 }),
            ended: None,
        };
        if resume.is_some() {
            return Ok(reader);
        }
        reader.read_block()?;
        if reader.start > 0 {
            // The newline before the split is no part of it, so neither does it count.
            if reader.block.first() == Some(&b'\n') {
                reader.position.line = 0;
            }
            reader.discard_line()?;
        } else if reader.block.starts_with(BYTE_ORDER_MARK) {
            reader.advance(BYTE_ORDER_MARK.len());
        }
        Ok(reader)
    }

    /// Where the next line begins.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The next line that is not empty; `None` at the end of the split.
    ///
    /// Packed data that breaks off or is damaged is the last, malformed, line of its split.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has shrunk. Nothing more can be read then.
    // An iterator would hide that each step may fail, and that nothing follows a failure.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<ReadLine>, SourceError> {
        while self.position.offset < self.end {
            let unscanned = self.block.get(self.scanned..).unwrap_or_default();
            if let Some(length) = memchr::memchr(b'\n', unscanned) {
                let origin = self.origin();
                let mut line = self.block.slice(..self.scanned + length);
                self.advance(self.scanned + length + 1);
                self.position.line += 1;
                without_carriage_return(&mut line);
                if !line.is_empty() {
                    return Ok(Some(self.classify(line, origin)));
                }
            } else if self.block.len() > self.hopeless() {
                return self.too_long().map(Some);
            } else if self.ended.is_some() {
                return Ok(self.last_line());
            } else {
                self.read_block()?;
            }
        }
        Ok(None)
    }

    fn classify(&self, line: Bytes, origin: Origin) -> ReadLine {
        if line.len() <= self.max_record {
            return ReadLine::Line { bytes: line, origin };
        }
        ReadLine::Malformed { text: malformed_text(&line), reason: self.too_long_reason(), origin }
    }

    /// Of how many bytes at most a line's end is awaited. What is kept of a longer one is then the same for every reader, on
    /// whatever byte its blocks end.
    fn hopeless(&self) -> usize {
        self.max_record.saturating_add(1).max(MALFORMED_TEXT_LIMIT)
    }

    /// A line whose end is not even in sight: its beginning is kept, the rest passed over.
    fn too_long(&mut self) -> Result<ReadLine, SourceError> {
        let malformed = ReadLine::Malformed {
            text: malformed_text(&self.block),
            reason: self.too_long_reason(),
            origin: self.origin(),
        };
        self.discard_line()?;
        Ok(malformed)
    }

    fn too_long_reason(&self) -> String {
        format!("the line is longer than max_record, {} bytes", self.max_record)
    }

    fn last_line(&mut self) -> Option<ReadLine> {
        let origin = self.origin();
        let mut line = self.block.split_off(0);
        self.scanned = 0;
        self.position.offset += line.len() as u64;
        if let Some(Filled::Broken(reason)) = self.ended.replace(Filled::End) {
            self.position.offset = u64::MAX;
            return Some(ReadLine::Malformed { text: malformed_text(&line), reason, origin });
        }
        without_carriage_return(&mut line);
        if line.is_empty() {
            return None;
        }
        self.position.line += 1;
        Some(self.classify(line, origin))
    }

    /// Goes behind the next newline, or to the end of the input, or so far that no line of this split can follow.
    fn discard_line(&mut self) -> Result<(), SourceError> {
        loop {
            let unscanned = self.block.get(self.scanned..).unwrap_or_default();
            if let Some(length) = memchr::memchr(b'\n', unscanned) {
                self.advance(self.scanned + length + 1);
                self.position.line += 1;
                return Ok(());
            }
            self.advance(self.block.len());
            if self.ended.is_some() || self.position.offset >= self.end {
                return Ok(());
            }
            self.read_block()?;
        }
    }

    /// Puts the next block behind what is left of this one.
    fn read_block(&mut self) -> Result<(), SourceError> {
        let left = self.block.len();
        let read_to = self.position.offset + left as u64;
        // Behind the end there is only the rest of the last line.
        let wanted = match usize::try_from(self.end.saturating_sub(read_to)) {
            Ok(0) => LAST_BLOCK,
            Ok(wanted) => wanted.min(BLOCK),
            Err(_) => BLOCK,
        };
        // As much again as is there, so that a long line is copied a few times and not once for each block.
        let mut next = vec![0; left + wanted.max(left)];
        if let Some(beginning) = next.get_mut(..left) {
            beginning.copy_from_slice(&self.block);
        }
        let filled = self.input.fill(&mut next, left)?;
        self.scanned = left;
        self.block = Bytes::from(next);
        if filled != Filled::More {
            self.ended = Some(filled);
        }
        Ok(())
    }

    fn advance(&mut self, by: usize) {
        self.block.advance(by);
        self.scanned = 0;
        self.position.offset += by as u64;
    }

    fn origin(&self) -> Origin {
        Origin {
            file: Arc::clone(&self.file),
            line: self.position.line,
            offset: self.position.offset,
            split_start: self.start,
        }
    }
}

fn without_carriage_return(line: &mut Bytes) {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
}

#[cfg(test)]
mod tests;
