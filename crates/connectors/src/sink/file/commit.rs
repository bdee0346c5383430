//! Making staged output visible.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use job::options::FileSinkOptions;
use runtime_core::{AttemptId, JobId};

use super::{SinkError, StagedFile, disk, target};
use crate::sink::Committer;

/// The second phase of a file sink.
#[derive(Debug, Clone, Copy)]
pub struct FileCommitter<'a>(pub &'a FileSinkOptions);

impl Committer for FileCommitter<'_> {
    fn commit(&self, staged: &[StagedFile]) -> Result<(), SinkError> {
        commit(staged)
    }

    fn sweep(&self, job: JobId) -> Result<usize, SinkError> {
        target::sweep(self.0, job)
    }

    fn sweep_attempts(&self, attempts: &[AttemptId]) -> Result<usize, SinkError> {
        target::sweep_attempts(self.0, attempts)
    }
}

/// Makes staged files visible, in order, and returns when that would survive a loss of power. It may be repeated at any
/// time, also after a crash at any point, and by two at once: what is visible already is left alone, and nothing behind it
/// is touched.
///
/// A staged file without an offset is renamed. One with an offset is written there, the target is synced, and only then is
/// the staged file removed. What may be found:
///
/// | staged file | target | |
/// |---|---|---|
/// | there | ends before the offset | error: it was cut |
/// | there | ends in or at the end of the piece | the piece is written, over what an interrupted append has left of it |
/// | there | goes on behind the piece and holds it | done before, and more since; the removal did not survive a crash |
/// | there | goes on behind the piece and holds something else | error: not of this job |
/// | gone | reaches to the end of the piece | done before |
/// | gone | does not | error: it is lost |
///
/// The bytes of a piece never change and lie at one offset, so writing them again changes nothing, however late that is;
/// and as a piece is synced before the next one is begun, a target that goes on behind a piece of this job holds it.
///
/// # Errors
///
/// As in the table; or a file cannot be written or renamed, as where the disk is full: what was appended by then is
/// completed by the next call. Those before it are visible.
pub fn commit(files: &[StagedFile]) -> Result<(), SinkError> {
    let mut renamed_in = BTreeSet::new();
    for file in files {
        match file.offset {
            Some(offset) => append(file, offset)?,
            None => {
                rename(file)?;
                renamed_in.extend(file.final_path.parent());
            }
        }
    }
    renamed_in.into_iter().try_for_each(disk::sync_folder)
}

fn rename(file: &StagedFile) -> Result<(), SinkError> {
    let StagedFile { staged_path, final_path, length, .. } = file;
    match fs::metadata(staged_path) {
        Ok(staged) => {
            require_length(staged_path, *length, staged.len())?;
            match disk::rename(staged_path, final_path) {
                // A network file system may say so of a rename that it has done.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                renamed => return renamed.map_err(SinkError::io("rename staged output to", final_path)),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(SinkError::io("look at", staged_path)(error)),
    }
    let committed = fs::metadata(final_path).is_ok_and(|found| found.len() == *length);
    committed.then_some(()).ok_or_else(|| lost(file))
}

fn append(file: &StagedFile, offset: u64) -> Result<(), SinkError> {
    let StagedFile { staged_path, final_path, length, .. } = file;
    let end = offset.saturating_add(*length);
    let staged = match File::open(staged_path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let committed = fs::metadata(final_path).is_ok_and(|found| found.len() >= end);
            return committed.then_some(()).ok_or_else(|| lost(file));
        }
        staged => staged.map_err(SinkError::io("open staged output", staged_path))?,
    };
    let there = staged.metadata().map_err(SinkError::io("look at", staged_path))?.len();
    require_length(staged_path, *length, there)?;

    let shortened = |found| SinkError::Shortened { target: final_path.clone(), expected: offset, found };
    // A target that is gone must not come back empty: it would look like one that was cut.
    let opened =
        OpenOptions::new().read(true).write(true).create(offset == 0).truncate(false).open(final_path);
    let mut target = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound && offset > 0 => return Err(shortened(0)),
        opened => opened.map_err(SinkError::io("open", final_path))?,
    };
    let found = target.metadata().map_err(SinkError::io("look at", final_path))?.len();
    if found < offset {
        return Err(shortened(found));
    }
    if found <= end {
        let written = disk::append(&staged, *length, &mut target, offset);
        let written = written.map_err(SinkError::io("append staged output to", final_path))?;
        require_length(staged_path, *length, written)?;
    } else if !holds(&mut target, offset, staged, *length).map_err(SinkError::io("read", final_path))? {
        return Err(SinkError::Foreign { target: final_path.clone(), committed: offset });
    }
    disk::sync(&target, final_path)?;
    disk::sync_folder(final_path.parent().unwrap_or(Path::new("/")))?;
    disk::remove(staged_path)
}

fn require_length(path: &Path, expected: u64, found: u64) -> Result<(), SinkError> {
    if expected == found {
        return Ok(());
    }
    Err(SinkError::Changed { path: path.to_path_buf(), expected, found })
}

fn lost(file: &StagedFile) -> SinkError {
    let StagedFile { staged_path, final_path, length, .. } = file;
    SinkError::Lost { staged: staged_path.clone(), target: final_path.clone(), length: *length }
}

/// Whether the target has the bytes of the staged file at `offset`.
fn holds(target: &mut File, offset: u64, staged: File, length: u64) -> io::Result<bool> {
    target.seek(SeekFrom::Start(offset))?;
    let (mut target, mut staged) = (BufReader::new(target), BufReader::new(staged.take(length)));
    loop {
        let (ours, theirs) = (staged.fill_buf()?, target.fill_buf()?);
        let compared = ours.len().min(theirs.len());
        if compared == 0 {
            return Ok(ours.is_empty());
        }
        if ours.get(..compared) != theirs.get(..compared) {
            return Ok(false);
        }
        staged.consume(compared);
        target.consume(compared);
    }
}
