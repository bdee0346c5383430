//! Which files a source reads, and how they are cut.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use job::options::{FileSourceOptions, SplitMode};

use super::{FileSplit, SourceError};

/// A split below this costs more to hand out than it gains.
const MIN_SPLIT: u64 = 1 << 20;

/// With splits above this one, the last ones to end would leave the other subtasks idle for long.
const MAX_SPLIT: u64 = 64 << 20;

/// How many splits of a file there are for each subtask, so that a fast subtask takes more than a slow one.
const SPLITS_PER_SUBTASK: u64 = 4;

/// Lists the input and cuts it into splits, by the names of files and then by place.
///
/// # Errors
///
/// There is no input, or it cannot be examined.
pub fn enumerate(options: &FileSourceOptions, parallelism: u32) -> Result<Vec<FileSplit>, SourceError> {
    let mut splits = Vec::new();
    for (path, length) in find_files(&options.path)? {
        let gzip = is_gzip(&path);
        let step = match options.split {
            SplitMode::Range if !gzip => split_size(length, parallelism),
            SplitMode::Range | SplitMode::File | SplitMode::Auto => u64::MAX,
        };
        let mut start = 0_u64;
        // An empty file is a split as well: that it was read is part of the job's figures, and an empty gzip is broken.
        loop {
            let end = start.saturating_add(step).min(length);
            let id = u32::try_from(splits.len()).unwrap_or(u32::MAX);
            splits.push(FileSplit { id, path: path.clone(), start, end: Some(end), gzip, resume: None });
            start = end;
            if start >= length {
                break;
            }
        }
    }
    Ok(splits)
}

/// The files that a path, a directory or a glob names, each with its length in bytes, by name.
///
/// A directory means its visible regular files, without those in folders below. A path that exists is never taken for a
/// glob, whatever characters are in it.
///
/// # Errors
///
/// There are none, the glob is none, or something cannot be examined.
pub fn find_files(pattern: &str) -> Result<Vec<(PathBuf, u64)>, SourceError> {
    let path = Path::new(pattern);
    let mut found = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => visible_files(path)?,
        Ok(metadata) if metadata.is_file() => vec![(path.to_path_buf(), metadata.len())],
        Ok(_) => return Err(SourceError::NotAFile { path: path.to_path_buf() }),
        Err(_) if pattern.contains(['*', '?', '[']) => matching_files(pattern)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(SourceError::Open { path: path.to_path_buf(), source }),
    };
    if found.is_empty() {
        return Err(SourceError::NoInput { pattern: pattern.to_owned() });
    }
    if let Some((path, _)) = found.iter().find(|(path, _)| path.to_str().is_none()) {
        return Err(SourceError::Name { path: path.clone() });
    }
    found.sort_by(|(a, _), (b, _)| a.as_os_str().cmp(b.as_os_str()));
    Ok(found)
}

fn visible_files(folder: &Path) -> Result<Vec<(PathBuf, u64)>, SourceError> {
    let cannot_open = |source| SourceError::Open { path: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_open)? {
        let path = entry.map_err(cannot_open)?.path();
        if !is_hidden(&path) {
            found.extend(regular(path)?);
        }
    }
    Ok(found)
}

/// As with whole paths, leading folders that exist under their very name are no globs: the folder of the job file may be
/// called `[2026]`.
fn matching_files(pattern: &str) -> Result<Vec<(PathBuf, u64)>, SourceError> {
    let folder = Path::new(pattern).ancestors().find(|path| path.is_dir()).and_then(Path::to_str);
    let folder = folder.unwrap_or_default();
    let below = pattern.strip_prefix(folder).unwrap_or_default();
    let escaped = glob::Pattern::escape(folder) + below;
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let matches = glob::glob_with(&escaped, options)
        .map_err(|source| SourceError::Pattern { pattern: pattern.to_owned(), source })?;
    let mut found = Vec::new();
    for path in matches {
        let path = path
            .map_err(|error| SourceError::Open { path: error.path().to_path_buf(), source: error.into() })?;
        found.extend(regular(path)?);
    }
    Ok(found)
}

/// The file with its length, if it is one; a link counts as what it points to.
fn regular(path: PathBuf) -> Result<Option<(PathBuf, u64)>, SourceError> {
    let of_file = |metadata: Metadata| metadata.is_file().then_some(metadata.len());
    match fs::metadata(&path).map(of_file) {
        Ok(length) => Ok(length.map(|length| (path, length))),
        Err(source) => Err(SourceError::Open { path, source }),
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file of this name is read as gzip.
pub(crate) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

fn split_size(length: u64, parallelism: u32) -> u64 {
    (length / (u64::from(parallelism.max(1)) * SPLITS_PER_SUBTASK)).clamp(MIN_SPLIT, MAX_SPLIT)
}

#[cfg(test)]
mod tests;
