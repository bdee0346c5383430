//! What can go wrong with output.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Output cannot be written, staged or made visible.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// There is a file where the output is to be. Nothing was changed.
    #[error("the output `{path}` exists already; move it away, or set `overwrite: true` to replace it")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There are parts in the folder where the output is to be. Nothing was changed.
    #[error(
        "the output folder holds parts already, such as `{part}`; move them away, or set `overwrite: true` to replace them"
    )]
    PartsExist {
        /// One of them.
        part: PathBuf,
    },
    /// The output is to be a file, but there is a folder. Nothing was changed.
    #[error("the output `{path}` is a folder; end the path in `/` to write parts into it")]
    IsAFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The output needs a folder where there is something else. Nothing was changed.
    #[error("`{path}` is no folder, but output is to be written into it")]
    NotAFolder {
        /// What is there.
        path: PathBuf,
    },
    /// The path of the output ends without a name.
    #[error("the output `{path}` names no file")]
    NoFileName {
        /// The path.
        path: PathBuf,
    },
    /// What an attempt has staged is neither where it was nor at its target. Nothing was changed.
    #[error(
        "the staged output `{staged}` of {length} bytes is gone, and `{target}` does not hold it; something else removed \
         or replaced it: put it back, or run the job anew with `overwrite: true`"
    )]
    Lost {
        /// Where it was.
        staged: PathBuf,
        /// Where it was to be.
        target: PathBuf,
        /// How long it was.
        length: u64,
    },
    /// A dot file is not as it was written. Nothing was changed.
    #[error(
        "the unfinished output `{path}` holds {found} bytes, but {expected} were written to it; something else changed it"
    )]
    Changed {
        /// The dot file.
        path: PathBuf,
        /// The bytes that were written.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },
    /// The target is shorter than what was committed to it. Nothing was changed.
    #[error(
        "the output `{target}` holds {found} bytes, but {expected} are committed; something else cut, moved or replaced \
         it: put it back, or run the job anew with `overwrite: true`"
    )]
    Shortened {
        /// The target.
        target: PathBuf,
        /// The bytes that are committed.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },
    /// The target holds something else where staged output is to stand. Nothing was changed.
    #[error(
        "something else has written to the output `{target}`: behind its {committed} committed bytes stands what is not of \
         this job; cut it to that length, and the job goes on"
    )]
    Foreign {
        /// The target.
        target: PathBuf,
        /// Its length without what is foreign.
        committed: u64,
    },
    /// The sink was finished, or an earlier error has ended it. Nothing was changed.
    #[error(
        "the output `{path}` of this attempt takes nothing more: it has ended, or could not be written before"
    )]
    Closed {
        /// The dot file.
        path: PathBuf,
    },
    /// The target has more than what is to be continued. Nothing was changed.
    #[error(
        "the output `{target}` holds {found} bytes, but the savepoint ends at {committed}: the job that took it went on, or \
         another was started from it. To give up what came after it, cut the file: truncate -s {committed} {target}; \
         to keep that, give the job another output"
    )]
    WentOn {
        /// The target.
        target: PathBuf,
        /// Where the savepoint ends.
        committed: u64,
        /// The bytes that are there.
        found: u64,
    },
    /// The folder has parts that are newer than what is to be continued. Nothing was changed.
    #[error(
        "the output folder holds `{part}`, which is newer than the savepoint {checkpoint}: the job that took it went on, or \
         another was started from it. Move such parts away to give up what is in them, or give the job another output"
    )]
    PartsWentOn {
        /// One of them.
        part: PathBuf,
        /// The savepoint's number.
        checkpoint: u64,
    },
    /// A barrier came after that of a later checkpoint, or twice. Nothing was changed.
    #[error("the output `{path}` was staged for checkpoint {last} already, and cannot be for {checkpoint}")]
    OutOfOrder {
        /// The dot file.
        path: PathBuf,
        /// The checkpoint of the barrier.
        checkpoint: u64,
        /// The latest one.
        last: u64,
    },
    /// The file system refused.
    #[error("cannot {doing} `{path}`: {source}{}", Advice(source))]
    Io {
        /// What was tried: a verb.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl SinkError {
    /// Makes the error of an attempt at `doing` something with `path`.
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

/// What a person can do about it, where the system's own words do not say.
struct Advice<'a>(&'a io::Error);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                f.write_str("; make room, nothing that was committed is lost")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("; the user that runs the job must be allowed to write there")
            }
            io::ErrorKind::ReadOnlyFilesystem => f.write_str("; choose a path that can be written"),
            _ => Ok(()),
        }
    }
}
