//! The names of the sink's files, and how they are told from everything else that may lie in a folder.

use std::path::{Path, PathBuf};

use job::options::FileSinkOptions;
use runtime_core::{AttemptId, Epoch, JobId, VertexId};

use super::SinkError;

/// The number of the parts of a job without checkpoints, which has one commit. Ids of checkpoints begin at 1.
pub(super) const WITHOUT_CHECKPOINTS: u64 = 0;

/// The folder in which all files of the sink lie.
pub(super) fn folder(options: &FileSinkOptions) -> &Path {
    if options.parts { &options.path } else { options.path.parent().unwrap_or(Path::new("/")) }
}

/// Where an attempt's output becomes visible; `number` tells the parts of a subtask apart.
pub(super) fn target(options: &FileSinkOptions, attempt: AttemptId, number: u64) -> PathBuf {
    if options.parts {
        options.path.join(format!("part-{}-{number}.jsonl", attempt.subtask))
    } else {
        options.path.clone()
    }
}

/// Where an attempt writes.
pub(super) fn unfinished(options: &FileSinkOptions, attempt: AttemptId) -> Result<PathBuf, SinkError> {
    let stem =
        if options.parts { format!("part-{}", attempt.subtask) } else { file_name(options)?.to_owned() };
    Ok(folder(options).join(format!(".{stem}.{attempt}")))
}

/// Where lies what an attempt has staged for a checkpoint, from where it writes.
pub(super) fn staged(unfinished: &Path, checkpoint: u64) -> PathBuf {
    let mut path = unfinished.as_os_str().to_owned();
    path.push(format!(".{checkpoint}"));
    path.into()
}

/// The subtask of which a file of this name is a part, of some job's output; `None`: it is no part.
pub(super) fn subtask_of_part(name: &str) -> Option<&str> {
    numbers_of_part(name).map(|(subtask, _)| subtask)
}

/// The number of a part of this name among those of its subtask.
pub(super) fn number_of_part(name: &str) -> Option<u64> {
    numbers_of_part(name).and_then(|(_, part)| number(part))
}

fn numbers_of_part(name: &str) -> Option<(&str, &str)> {
    let numbers = name.strip_prefix("part-")?.strip_suffix(".jsonl")?;
    let (subtask, number) = numbers.split_once('-')?;
    (digits(subtask) && digits(number)).then_some((subtask, number))
}

/// Where output of a savepoint is written before it is put in its place.
pub(super) fn restored(target: &Path) -> PathBuf {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.savepoint-{}", std::process::id()))
}

/// The attempt after which the dot file `name` of this sink is named, staged or not; `None`: it is no such file.
pub(super) fn attempt_of_dot_file(options: &FileSinkOptions, name: &str) -> Option<AttemptId> {
    let rest = name.strip_prefix('.')?;
    let rest = if options.parts {
        let (subtask, rest) = rest.strip_prefix("part-")?.split_once('.')?;
        digits(subtask).then_some(rest)?
    } else {
        rest.strip_prefix(file_name(options).ok()?)?.strip_prefix('.')?
    };
    match rest.split_once('.') {
        Some((attempt, checkpoint)) => digits(checkpoint).then(|| attempt_id(attempt))?,
        None => attempt_id(rest),
    }
}

/// Reads what [`AttemptId`] prints.
fn attempt_id(text: &str) -> Option<AttemptId> {
    let mut parts = text.split('-');
    let job: JobId = parts.next()?.parse().ok()?;
    let term = Epoch(number(parts.next()?)?);
    let vertex = VertexId(number(parts.next()?.strip_prefix('v')?)?);
    let (subtask, attempt) = (number(parts.next()?)?, number(parts.next()?)?);
    parts.next().is_none().then_some(AttemptId { job, term, vertex, subtask, attempt })
}

/// A number as it is printed: others would be read, a sign for one.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    digits(text).then(|| text.parse().ok())?
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
        let written_at = unfinished(&options("/out/a.jsonl", false), attempt()).unwrap();
        assert_eq!(written_at.to_str(), Some("/out/.a.jsonl.00000000000000000000000000000007-1-v2-3-4"));
        let written_at = unfinished(&options("/out/", true), attempt()).unwrap();
        assert_eq!(written_at.to_str(), Some("/out/.part-3.00000000000000000000000000000007-1-v2-3-4"));
        let staged_at = staged(&written_at, 17);
        assert_eq!(staged_at.to_str(), Some("/out/.part-3.00000000000000000000000000000007-1-v2-3-4.17"));
        assert_eq!(target(&options("/out/", true), attempt(), 17).to_str(), Some("/out/part-3-17.jsonl"));
    }

    #[test]
    fn the_attempt_of_a_dot_file_is_read_back_from_its_name() {
        for options in [options("/out/a.jsonl", false), options("/out/", true)] {
            let written_at = unfinished(&options, attempt()).unwrap();
            for path in [staged(&written_at, 17), written_at] {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert_eq!(attempt_of_dot_file(&options, name), Some(attempt()));
            }
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
            format!(".a.jsonl.{hex}-1-v2-3-+4"),
            format!(".a.jsonl.{hex}-1-v2-3-4-5"),
            format!(".a.jsonl.{hex}-1-v2-3-4."),
            format!(".a.jsonl.{hex}-1-v2-3-4.swp"),
            format!(".a.jsonl.{hex}-1-v2-3-4.1.2"),
            ".a.jsonl.swp".to_owned(),
        ] {
            assert_eq!(attempt_of_dot_file(&options("/out/a.jsonl", false), &name), None, "{name}");
        }
        for name in ["part-1.jsonl", "part-1-x.jsonl", "part-1-0.json", "part--0.jsonl", ".part-1-0.jsonl"] {
            assert_eq!(subtask_of_part(name), None, "{name}");
        }
        assert_eq!(subtask_of_part("part-1-0.jsonl"), Some("1"));
        assert_eq!(subtask_of_part("part-12-345.jsonl"), Some("12"));
    }
}
