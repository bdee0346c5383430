//! Before and after the writing: what may be there already, what is made, what is removed.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use job::options::FileSinkOptions;
use runtime_core::{AttemptId, JobId};

use super::disk::remove;
use super::{SinkError, name};

/// Checks that the output can be put where it is to be. Changes nothing.
///
/// # Errors
///
/// There is output already and `overwrite` is off, or a file stands where a folder is needed or the other way round.
pub fn check(options: &FileSinkOptions) -> Result<(), SinkError> {
    let folder = name::folder(options);
    if let Some(existing) = folder.ancestors().find(|path| path.symlink_metadata().is_ok())
        && !existing.is_dir()
    {
        return Err(SinkError::NotAFolder { path: existing.to_path_buf() });
    }
    if options.parts {
        let part = parts(options)?.into_iter().next();
        return match part {
            Some(part) if !options.overwrite => Err(SinkError::PartsExist { part }),
            _ => Ok(()),
        };
    }
    if options.path.file_name().is_none() {
        return Err(SinkError::NoFileName { path: options.path.clone() });
    }
    match options.path.symlink_metadata() {
        Ok(_) if options.path.is_dir() => Err(SinkError::IsAFolder { path: options.path.clone() }),
        Ok(_) if !options.overwrite => Err(SinkError::Exists { path: options.path.clone() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SinkError::io("look at", &options.path)(error)),
    }
}

/// Makes ready for a job's first deployment: checks, makes missing folders, finds out whether they can be written and
/// only then, with `overwrite`, removes the earlier output and what attempts have left beside it.
///
/// # Errors
///
/// As [`check`]; or the folder cannot be made or written. Earlier output is still there in each of these cases.
pub fn prepare(options: &FileSinkOptions) -> Result<(), SinkError> {
    check(options)?;
    make_folder(options)?;
    if options.overwrite {
        if options.parts {
            parts(options)?.iter().try_for_each(|path| remove(path))?;
        } else {
            remove(&options.path)?;
        }
        sweep_where(options, |_| true)?;
    }
    Ok(())
}

/// Makes the folder of the output, and finds out whether it can be written.
pub(super) fn make_folder(options: &FileSinkOptions) -> Result<(), SinkError> {
    let folder = name::folder(options);
    fs::create_dir_all(folder).map_err(SinkError::io("make the folder", folder))?;
    let probe = folder.join(format!(".tidegate-probe-{}", std::process::id()));
    File::create(&probe).map_err(SinkError::io("write into", folder))?;
    remove(&probe)
}

/// Removes what attempts of `job` have left beside the output, and says how many files that were. It must not be called
/// while attempts of the job write or before what they have staged is committed.
///
/// # Errors
///
/// The folder cannot be read or a file in it cannot be removed.
pub fn sweep(options: &FileSinkOptions, job: JobId) -> Result<usize, SinkError> {
    sweep_where(options, |attempt| attempt.job == job)
}

/// Removes what these attempts have left beside the output, and says how many files that were. They must have been
/// stopped, and what they have staged for a completed checkpoint must have been committed.
///
/// One that was thought to be stopped and wakes again may still leave a file of its own name, which nobody reads: the
/// [`sweep`] at the job's end is for it.
///
/// # Errors
///
/// The folder cannot be read or a file in it cannot be removed.
pub fn sweep_attempts(options: &FileSinkOptions, attempts: &[AttemptId]) -> Result<usize, SinkError> {
    let attempts: HashSet<_> = attempts.iter().collect();
    sweep_where(options, |attempt| attempts.contains(&attempt))
}

fn sweep_where(options: &FileSinkOptions, swept: impl Fn(AttemptId) -> bool) -> Result<usize, SinkError> {
    let left =
        files_of(name::folder(options), |file| name::attempt_of_dot_file(options, file).is_some_and(&swept))?;
    left.iter().try_for_each(|path| remove(path))?;
    Ok(left.len())
}

/// Whether the folder holds a part of this subtask, of whatever number.
pub(super) fn has_part_of(options: &FileSinkOptions, subtask: u32) -> Result<bool, SinkError> {
    let subtask = subtask.to_string();
    let parts = files_of(&options.path, |file| name::subtask_of_part(file) == Some(&subtask))?;
    Ok(!parts.is_empty())
}

fn parts(options: &FileSinkOptions) -> Result<Vec<PathBuf>, SinkError> {
    files_of(&options.path, |file| name::subtask_of_part(file).is_some())
}

/// The parts with a number above this one.
pub(super) fn parts_behind(options: &FileSinkOptions, number: u64) -> Result<Vec<PathBuf>, SinkError> {
    files_of(&options.path, |file| name::number_of_part(file).is_some_and(|found| found > number))
}

/// The files of a folder whose names are wanted, by name; none where there is no folder.
fn files_of(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, SinkError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(SinkError::io("list", folder))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<_> = names.collect::<io::Result<_>>().map_err(SinkError::io("list", folder))?;
    names.retain(|name| name.to_str().is_some_and(&wanted));
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
