//! Making staged output visible.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::PathBuf;

use super::SinkError;

/// Finished and synced output of one attempt that is not visible yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Where it lies.
    pub staged_path: PathBuf,
    /// Where it becomes visible, in the same folder.
    pub final_path: PathBuf,
    /// Its bytes.
    pub length: u64,
}

/// Makes staged files visible, and returns when that would survive a loss of power. It may be repeated: what is at its
/// target already is left alone.
///
/// # Errors
///
/// A file is neither staged nor at its target, or cannot be renamed. Those before it are visible; it may be tried again.
pub fn commit(files: &[StagedFile]) -> Result<(), SinkError> {
    for file in files {
        publish(file)?;
    }
    let folders: BTreeSet<_> = files.iter().filter_map(|file| file.final_path.parent()).collect();
    for folder in folders {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(SinkError::io("sync the folder", folder))?;
    }
    Ok(())
}

fn publish(file: &StagedFile) -> Result<(), SinkError> {
    let StagedFile { staged_path, final_path, length } = file;
    let lost =
        || SinkError::Lost { staged: staged_path.clone(), target: final_path.clone(), length: *length };
    match fs::metadata(staged_path) {
        Ok(staged) if staged.len() == *length => {
            fs::rename(staged_path, final_path).map_err(SinkError::io("rename staged output to", final_path))
        }
        Ok(_) => Err(lost()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let committed = fs::metadata(final_path).is_ok_and(|found| found.len() == *length);
            committed.then_some(()).ok_or_else(lost)
        }
        Err(error) => Err(SinkError::io("look at", staged_path)(error)),
    }
}
