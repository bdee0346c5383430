//! The file sink, without checkpoints: everything becomes visible once all tasks have finished.
//!
//! An attempt writes to a dot file beside its target, named after the attempt, so that no two attempts ever write to
//! the same file and a late one can do no harm. What it has finished is a [`StagedFile`]: synced, but not visible.
//! [`commit`] renames it to its target; repeating that changes nothing.
//!
//! [`prepare`] comes before a job's first deployment, [`sweep`] before each deployment and at the job's end.

mod commit;
mod name;
mod target;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use commit::{StagedFile, commit};
pub use target::{check, prepare, sweep};
pub use writer::FileWriter;

/// Output cannot be written.
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
    /// What an attempt has staged is neither where it was nor at its target.
    #[error(
        "the staged output `{staged}` of {length} bytes is gone, and `{target}` is not it; something else removed or \
         replaced it"
    )]
    Lost {
        /// Where it was.
        staged: PathBuf,
        /// Where it was to be.
        target: PathBuf,
        /// How long it was.
        length: u64,
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
    fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
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
                f.write_str("; make room, what was written so far is removed")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("; the user that runs the job must be allowed to write there")
            }
            io::ErrorKind::ReadOnlyFilesystem => f.write_str("; choose a path that can be written"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
