//! Output that a job continues which begins where a savepoint of another one ends.
//!
//! What that one had made visible stays, and what it had staged is in the savepoint and becomes visible first. A target is
//! never cut here either: where it has more than the savepoint, a person has to decide whose output is to count.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use job::options::FileSinkOptions;

use super::{SinkError, StagedFile, commit, disk, name, target};

/// Where a savepoint ends in an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedEnd {
    /// The savepoint's number, above that of every part in it.
    pub checkpoint: u64,
    /// Of a single file: its length.
    pub committed_length: u64,
}

/// Checks that an output can be continued behind `end`, of which what is behind `visible` may be missing yet: it is in the
/// savepoint. Changes nothing.
///
/// # Errors
///
/// The output has more than that, or less.
pub fn check_continued(options: &FileSinkOptions, end: SavedEnd, visible: u64) -> Result<(), SinkError> {
    if options.parts {
        let newer = target::parts_behind(options, end.checkpoint)?.into_iter().next();
        let checkpoint = end.checkpoint;
        return newer.map_or(Ok(()), |part| Err(SinkError::PartsWentOn { part, checkpoint }));
    }
    let target = || options.path.clone();
    let found = match fs::metadata(&options.path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(SinkError::io("look at", &options.path)(error)),
    };
    if found > end.committed_length {
        return Err(SinkError::WentOn { target: target(), committed: end.committed_length, found });
    }
    if found < visible {
        return Err(SinkError::Shortened { target: target(), expected: visible, found });
    }
    Ok(())
}

/// Makes ready for the first deployment of a job that continues this output.
///
/// # Errors
///
/// As [`check_continued`]; or the folder cannot be made or written.
pub fn prepare_continued(options: &FileSinkOptions, end: SavedEnd) -> Result<(), SinkError> {
    target::make_folder(options)?;
    check_continued(options, end, end.committed_length)
}

/// Makes output visible that lies in a savepoint; `write` gives its bytes. It may be repeated, as a commit may: what is
/// visible already is left alone.
///
/// # Errors
///
/// It cannot be written, or something else stands in its place.
pub fn restore(
    final_path: &Path,
    length: u64,
    offset: Option<u64>,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), SinkError> {
    if offset.is_none()
        && let Ok(found) = fs::metadata(final_path)
    {
        let (found, target) = (found.len(), final_path.to_path_buf());
        let there = found == length;
        return there.then_some(()).ok_or(SinkError::WentOn { target, committed: length, found });
    }
    let folder = final_path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(SinkError::io("make the folder", folder))?;
    let staged_path = name::restored(final_path);
    let mut file = File::create(&staged_path).map_err(SinkError::io("create", &staged_path))?;
    write(&mut file).map_err(SinkError::io("write", &staged_path))?;
    disk::sync(&file, &staged_path)?;
    drop(file);
    let staged = StagedFile { staged_path, final_path: final_path.to_path_buf(), length, offset };
    let committed = commit(std::slice::from_ref(&staged));
    if committed.is_err() {
        // It is in the savepoint still.
        disk::remove(&staged.staged_path)?;
    }
    committed
}
