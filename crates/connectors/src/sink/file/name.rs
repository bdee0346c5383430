//! The names of the sink's files, and how they are told from everything else that may lie in a folder.

use std::path::{Path, PathBuf};

use job::options::FileSinkOptions;
use runtime_core::{AttemptId, JobId};

use super::SinkError;

/// Without checkpoints all output is that of one, the last.
const PART_NUMBER: u32 = 0;

/// The folder in which all files of the sink lie.
pub(super) fn folder(options: &FileSinkOptions) -> &Path {
    if options.parts { &options.path } else { options.path.parent().unwrap_or(Path::new("/")) }
}

/// Where an attempt's output becomes visible.
pub(super) fn target(options: &FileSinkOptions, attempt: AttemptId) -> PathBuf {
    if options.parts {
        options.path.join(format!("part-{}-{PART_NUMBER}.jsonl", attempt.subtask))
    } else {
        options.path.clone()
    }
}

/// Where an attempt writes.
pub(super) fn staged(options: &FileSinkOptions, attempt: AttemptId) -> Result<PathBuf, SinkError> {
    let stem =
        if options.parts { format!("part-{}", attempt.subtask) } else { file_name(options)?.to_owned() };
    Ok(folder(options).join(format!(".{stem}.{attempt}")))
}

/// Whether a file of this name is a part of some job's output.
pub(super) fn is_part(name: &str) -> bool {
    let numbers = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".jsonl"));
    numbers.and_then(|n| n.split_once('-')).is_some_and(|(subtask, number)| digits(subtask) && digits(number))
}

/// The job of the attempt after which the dot file `name` of this sink is named; `None`: it is no such file.
pub(super) fn job_of_staged(options: &FileSinkOptions, name: &str) -> Option<JobId> {
    let rest = name.strip_prefix('.')?;
    let attempt = if options.parts {
        let (subtask, attempt) = rest.strip_prefix("part-")?.split_once('.')?;
        digits(subtask).then_some(attempt)?
    } else {
        rest.strip_prefix(file_name(options).ok()?)?.strip_prefix('.')?
    };
    job_of_attempt(attempt)
}

/// Reads what [`AttemptId`] prints.
fn job_of_attempt(text: &str) -> Option<JobId> {
    let mut parts = text.split('-');
    let job = parts.next()?.parse().ok()?;
    let term = parts.next()?;
    let vertex = parts.next()?.strip_prefix('v')?;
    let (subtask, attempt) = (parts.next()?, parts.next()?);
    let whole = [term, vertex, subtask, attempt].into_iter().all(digits) && parts.next().is_none();
    whole.then_some(job)
}

fn file_name(options: &FileSinkOptions) -> Result<&str, SinkError> {
    let name = options.path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| SinkError::NoFileName { path: options.path.clone() })
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::{Epoch, VertexId};

    fn options(path: &str, parts: bool) -> FileSinkOptions {
        FileSinkOptions { path: path.into(), parts, overwrite: false, dead_letters: false }
    }

    fn attempt() -> AttemptId {
        AttemptId { job: JobId::from_u128(7), term: Epoch(1), vertex: VertexId(2), subtask: 3, attempt: 4 }
    }

    #[test]
    fn a_dot_file_lies_beside_its_target_and_names_the_attempt() {
        let staged_at = staged(&options("/out/a.jsonl", false), attempt()).unwrap();
        assert_eq!(staged_at.to_str(), Some("/out/.a.jsonl.00000000000000000000000000000007-1-v2-3-4"));
        let staged_at = staged(&options("/out/", true), attempt()).unwrap();
        assert_eq!(staged_at.to_str(), Some("/out/.part-3.00000000000000000000000000000007-1-v2-3-4"));
        assert_eq!(target(&options("/out/", true), attempt()).to_str(), Some("/out/part-3-0.jsonl"));
    }

    #[test]
    fn the_job_of_a_dot_file_is_read_back_from_its_name() {
        for options in [options("/out/a.jsonl", false), options("/out/", true)] {
            let path = staged(&options, attempt()).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(job_of_staged(&options, name), Some(JobId::from_u128(7)));
        }
    }

    #[test]
    fn the_files_of_others_are_not_taken_for_ours() {
        let hex = "00000000000000000000000000000007";
        for name in [
            format!(".b.jsonl.{hex}-1-v2-3-4"),
            format!("a.jsonl.{hex}-1-v2-3-4"),
            format!(".a.jsonl.{hex}"),
            format!(".a.jsonl.{hex}-1-2-3-4"),
            format!(".a.jsonl.{hex}-1-v2-3-4-5"),
            ".a.jsonl.swp".to_owned(),
        ] {
            assert_eq!(job_of_staged(&options("/out/a.jsonl", false), &name), None, "{name}");
        }
        for name in ["part-1.jsonl", "part-1-x.jsonl", "part-1-0.json", "part--0.jsonl", ".part-1-0.jsonl"] {
            assert!(!is_part(name), "{name}");
        }
        assert!(is_part("part-1-0.jsonl") && is_part("part-12-345.jsonl"));
    }
}
