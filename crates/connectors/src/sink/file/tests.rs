//! From the first check to the last sweep, on real folders.

use std::fs::{self, OpenOptions};
use std::path::Path;

use job::options::FileSinkOptions;
use runtime_core::{AttemptId, Epoch, JobId, VertexId};
use tempfile::TempDir;

use super::*;
use crate::sink::TwoPhaseSink;

mod checkpoints;
mod crashes;
mod model;

const JOB: JobId = JobId::from_u128(1);
const OTHER_JOB: JobId = JobId::from_u128(2);

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &TempDir) -> FileSinkOptions {
    let path = folder.path().join("out/a.jsonl");
    FileSinkOptions { path, parts: false, overwrite: false, dead_letters: false }
}

fn parts(folder: &TempDir) -> FileSinkOptions {
    FileSinkOptions { path: folder.path().join("out"), parts: true, overwrite: false, dead_letters: false }
}

fn attempt(job: JobId, subtask: u32) -> AttemptId {
    AttemptId { job, term: Epoch(1), vertex: VertexId(0), subtask, attempt: 0 }
}

fn writer(options: &FileSinkOptions, attempt: AttemptId) -> FileWriter {
    FileWriter::create(options, attempt, Mode::WithoutCheckpoints).unwrap()
}

fn staged(options: &FileSinkOptions, attempt: AttemptId, lines: &[&str]) -> StagedFile {
    let mut writer = writer(options, attempt);
    for line in lines {
        writer.write_line(line.as_bytes()).unwrap();
    }
    let staged: [StagedFile; 1] = writer.finish().unwrap().try_into().unwrap();
    let [staged] = staged;
    staged
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn output_is_visible_when_it_is_committed_and_not_before() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let staged = staged(&options, attempt(JOB, 0), &["a", "b"]);
    assert!(!options.path.exists());
    assert_eq!(staged.length, 4);
    commit(std::slice::from_ref(&staged)).unwrap();
    assert_eq!(fs::read_to_string(&options.path).unwrap(), "a\nb\n");
    assert_eq!(names(&folder.path().join("out")), ["a.jsonl"]);
}

#[test]
fn a_commit_may_be_repeated() {
    let folder = folder();
    let options = parts(&folder);
    prepare(&options).unwrap();
    let files = [staged(&options, attempt(JOB, 0), &["a"]), staged(&options, attempt(JOB, 1), &["b"])];
    commit(&files[..1]).unwrap();
    commit(&files).unwrap();
    commit(&files).unwrap();
    assert_eq!(names(&options.path), ["part-0-0.jsonl", "part-1-0.jsonl"]);
}

#[test]
fn a_commit_whose_staged_file_is_gone_and_not_at_its_target_is_an_error() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let staged = staged(&options, attempt(JOB, 0), &["a"]);
    fs::remove_file(&staged.staged_path).unwrap();
    let lost = commit(std::slice::from_ref(&staged)).unwrap_err();
    assert!(matches!(lost, SinkError::Lost { .. }), "{lost}");
    fs::write(&options.path, "something else").unwrap();
    assert!(commit(&[staged]).is_err());
}

#[test]
fn staged_output_of_another_length_is_not_made_visible() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let staged = staged(&options, attempt(JOB, 0), &["a"]);
    OpenOptions::new().write(true).open(&staged.staged_path).unwrap().set_len(1).unwrap();
    assert!(commit(&[staged]).is_err());
    assert!(!options.path.exists());
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = writer(&options, attempt(JOB, 0));
    writer.write_line(b"a").unwrap();
    assert_eq!(names(&folder.path().join("out")).len(), 1);
    drop(writer);
    assert_eq!(names(&folder.path().join("out")), [""; 0]);
}

#[test]
fn empty_output_is_an_empty_file_and_in_a_folder_one_empty_part() {
    let folder = folder();
    for options in [file(&folder), parts(&folder)] {
        prepare(&options).unwrap();
        commit(&[staged(&options, attempt(JOB, 0), &[])]).unwrap();
    }
    let mut second = writer(&parts(&folder), attempt(JOB, 1));
    assert_eq!(second.finish().unwrap(), []);
    drop(second);
    assert_eq!(names(&folder.path().join("out")), ["a.jsonl", "part-0-0.jsonl"]);
}

#[test]
fn output_that_is_there_already_is_refused_unless_it_may_be_overwritten() {
    let folder = folder();
    for (mut options, existing) in [(file(&folder), "a.jsonl"), (parts(&folder), "part-3-0.jsonl")] {
        prepare(&options).unwrap();
        let existing = folder.path().join("out").join(existing);
        fs::write(&existing, "").unwrap();
        let error = prepare(&options).unwrap_err();
        assert!(matches!(error, SinkError::Exists { .. } | SinkError::PartsExist { .. }), "{error}");
        assert!(error.to_string().contains(existing.to_str().unwrap()), "{error}");
        options.overwrite = true;
        prepare(&options).unwrap();
        assert!(!existing.exists());
    }
}

#[test]
fn overwriting_removes_the_output_and_its_dot_files_and_nothing_else() {
    let folder = folder();
    let out = folder.path().join("out");
    for (mut options, kept) in [
        (file(&folder), ["b.jsonl", ".a.jsonl.swp", "part-0-0.jsonl"]),
        (parts(&folder), ["a.jsonl", ".part-0.tmp", "part-0.jsonl"]),
    ] {
        options.overwrite = true;
        fs::create_dir(&out).unwrap();
        staged(&options, attempt(OTHER_JOB, 0), &["a"]);
        commit(&[staged(&options, attempt(JOB, 0), &["a"])]).unwrap();
        for name in kept {
            fs::write(out.join(name), "").unwrap();
        }
        prepare(&options).unwrap();
        let mut kept = kept;
        kept.sort_unstable();
        assert_eq!(names(&out), kept);
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn a_sweep_removes_the_dot_files_of_its_job_alone() {
    let folder = folder();
    for options in [file(&folder), parts(&folder)] {
        prepare(&options).unwrap();
        staged(&options, attempt(JOB, 0), &["a"]);
        staged(&options, attempt(OTHER_JOB, 0), &["a"]);
        assert_eq!(sweep(&options, JOB).unwrap(), 1);
        assert_eq!(sweep(&options, JOB).unwrap(), 0);
        assert_eq!(sweep(&options, OTHER_JOB).unwrap(), 1);
    }
}

#[test]
fn where_there_is_no_folder_there_is_nothing_to_sweep() {
    assert_eq!(sweep(&parts(&folder()), JOB).unwrap(), 0);
}

#[test]
fn a_file_in_the_place_of_a_folder_and_a_folder_in_that_of_a_file_are_refused() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("out/a.jsonl")).unwrap();
    assert!(matches!(check(&file(&folder)), Err(SinkError::IsAFolder { .. })));
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("out"), "").unwrap();
    assert!(matches!(check(&file(&folder)), Err(SinkError::NotAFolder { .. })));
    assert!(matches!(check(&parts(&folder)), Err(SinkError::NotAFolder { .. })));
}

#[test]
fn a_check_changes_nothing() {
    let folder = folder();
    check(&file(&folder)).unwrap();
    check(&parts(&folder)).unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_full_disk_is_named_with_the_path_and_the_unfinished_output_is_removed() {
    // The device that is always full stands in for the dot file.
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let at = name::unfinished(&options, attempt(JOB, 0)).unwrap();
    std::os::unix::fs::symlink("/dev/full", &at).unwrap();
    let mut writer = writer(&options, attempt(JOB, 0));
    writer.write_line(b"a").unwrap();
    let error = writer.finish().unwrap_err().to_string();
    drop(writer);
    assert!(error.contains(at.to_str().unwrap()) && error.contains("make room"), "{error}");
    assert_eq!(names(&folder.path().join("out")), [""; 0]);
}
