//! The file source: lines of files, packed or not.
//!
//! [`enumerate`] lists the input once, at the job's start, and cuts it into [`FileSplit`]s, which the job master hands
//! out. A [`SplitReader`] reads the lines of one split. Both block.
//!
//! What is a line of a split must be the same for every reader at every time, or records would be lost or doubled: a
//! line belongs to the split in which its first byte lies. A reader whose split does not begin the file therefore looks
//! at the byte before it, and the last line is read to its end wherever that is. A split remembers how long the file
//! was when it was listed: what was appended since is not read, and a file that has become shorter is an error.
//!
//! Records are not parsed here, so that invalid UTF-8 and lines that are no JSON object are found later.

mod enumerate;
mod input;
mod line_number;
mod reader;
mod text;

use std::io;
use std::path::PathBuf;

pub(crate) use enumerate::is_gzip;
pub use enumerate::{enumerate, find_files};
pub use line_number::{LineNumbers, resolve_line};
pub use reader::{Position, ReadLine, SplitReader};
pub use text::{MALFORMED_TEXT_LIMIT, malformed_text};

/// A part of a file, read by one subtask from start to end (Flink: `FileSourceSplit`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSplit {
    /// Counted from 0 over all files.
    pub id: u32,
    /// The file, absolute.
    pub path: PathBuf,
    /// The first byte of the part.
    pub start: u64,
    /// The byte behind the part; of a packed file its packed length when it was listed. `None`: wherever the file ends.
    pub end: Option<u64>,
    /// Whether the file is to be unpacked. Such a file is one split.
    pub gzip: bool,
    /// Where to read on; `None`: from its first line.
    pub resume: Option<Position>,
}

/// Input cannot be listed or read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The pattern names nothing.
    #[error("no input: `{pattern}` names no file; check the path (hidden files are left out)")]
    NoInput {
        /// The path as the job file has it.
        pattern: String,
    },
    /// The pattern is no glob.
    #[error("`{pattern}` is no glob: {source}")]
    Pattern {
        /// The path as the job file has it.
        pattern: String,
        /// What is wrong with it.
        source: glob::PatternError,
    },
    /// The path names a device, a pipe or a socket.
    #[error("`{path}` is neither a regular file nor a directory")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file's name cannot be written in a dead letter or a job's plan.
    #[error("the name of the file `{path}` is no valid UTF-8; rename it")]
    Name {
        /// The path, with replacement characters.
        path: PathBuf,
    },
    /// A file or directory cannot be opened or examined.
    #[error("cannot open `{path}`: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Reading failed in the middle.
    #[error("cannot read `{path}` at byte {offset}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// How far it was read, in bytes of the unpacked file.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// The file is not the one that was listed.
    #[error(
        "`{path}` has shrunk or was replaced while the job read it: {expected} bytes were to be there, there are {found}; \
         input must not change below a job"
    )]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// The bytes that this split needs.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },
}
