//! What was stored is read again; what was damaged is named, and nothing else suffers from it.

use std::fs;
use std::path::{Path, PathBuf};

use entrypoint::Role;
use runtime_core::Tick;
use wire::v1;

use super::folder::{CHECKPOINT_IDS, CHECKPOINTS, OUTPUT, PROGRESS, SPLITS, SUBMISSION};
use super::*;
use crate::checkpoint::{CheckpointLog as _, CheckpointPointer};
use crate::counts::Counts;

const JOB: JobId = JobId::from_u128(0x17);

fn open(dir: &Path) -> JobStore {
    JobStore::new(Some(Arc::new(StateDir::open(dir, Role::JobMaster).unwrap())))
}

fn submission() -> StoredSubmission {
    StoredSubmission {
        file: r#"{"name":"a job"}"#.into(),
        submitted_at: 1_000,
        seed: u64::MAX,
        savepoint: None,
    }
}

fn split(id: u32) -> v1::FileSplit {
    v1::FileSplit { id, path: "/in/a".into(), start: 0, end: u64::MAX, ..v1::FileSplit::default() }
}

fn staged() -> Vec<v1::StagedFile> {
    vec![v1::StagedFile {
        staged_path: "/out/.b".into(),
        final_path: "/out/b".into(),
        length: 7,
        offset: Some(3),
    }]
}

fn progress(restarts: u64, calls: u64) -> Progress {
    Progress { restarts, calls, ..Progress::default() }
}

/// A job of which everything is stored.
fn whole(dir: &Path) -> JobStore {
    let store = open(dir);
    let folder = Arc::new(store.accept(JOB, &submission()).unwrap());
    folder.prepared(&[split(0), split(1)]).unwrap();
    folder.reserve(16).unwrap();
    folder
        .completed(&[CheckpointPointer {
            id: 9,
            metadata: "17/chk-9/metadata".into(),
            completed_at: 5,
            store: None,
        }])
        .unwrap();
    folder.output(&staged(), Counts { records_in: 4, ..Counts::default() }).unwrap();
    let mut recorder = ProgressRecorder::new(Arc::clone(&folder), Progress::default());
    recorder.note(progress(2, 8), Tick::ZERO).unwrap().write_progress().unwrap();
    store
}

fn path(dir: &Path, kind: &str) -> PathBuf {
    dir.join("jobmaster/jobs").join(JOB.to_string()).join(kind)
}

#[test]
fn a_later_life_finds_all_that_was_stored_of_a_job() {
    let dir = tempfile::tempdir().unwrap();
    drop(whole(dir.path()));
    let store = open(dir.path());
    assert_eq!(store.jobs().unwrap(), [JOB]);
    let found = store.load(JOB).unwrap().unwrap();
    assert_eq!(found.submission, submission());
    assert_eq!(found.left.splits, Some(vec![split(0), split(1)]));
    assert_eq!((found.left.reserved, found.left.completed[0].id), (16, 9));
    let output = found.left.output.unwrap();
    assert_eq!((output.staged(), output.counts.records_in), (staged(), 4));
    assert_eq!(found.left.progress, progress(2, 8));
}

#[test]
fn a_job_that_is_over_is_forgotten_and_its_late_writers_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let folder = store.accept(JOB, &submission()).unwrap();
    folder.leave_progress(progress(1, 1));
    folder.remove().unwrap();
    folder.write_progress().unwrap();
    folder.reserve(3).unwrap();
    assert_eq!(store.jobs().unwrap(), []);
    assert!(!path(dir.path(), PROGRESS).exists());
}

#[test]
fn without_a_folder_nothing_is_remembered_and_nothing_fails() {
    let store = JobStore::new(None);
    let folder = store.accept(JOB, &submission()).unwrap();
    folder.prepared(&[split(0)]).unwrap();
    folder.remove().unwrap();
    assert_eq!(store.jobs().unwrap(), []);
    assert!(store.load(JOB).unwrap().is_none());
}

#[test]
fn a_submission_that_was_cut_off_before_its_answer_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let cut_off = path(dir.path(), "submission.tmp");
    fs::create_dir_all(cut_off.parent().unwrap()).unwrap();
    fs::write(&cut_off, "{\"tide").unwrap();
    assert!(store.load(JOB).unwrap().is_none());
    assert_eq!(store.jobs().unwrap(), []);
}

#[test]
fn a_file_cut_off_at_any_byte_or_changed_in_any_is_named_with_a_way_out_and_left() {
    for kind in [SUBMISSION, SPLITS, CHECKPOINT_IDS, CHECKPOINTS, OUTPUT, PROGRESS] {
        let dir = tempfile::tempdir().unwrap();
        let store = whole(dir.path());
        let path = path(dir.path(), kind);
        let content = fs::read(&path).unwrap();
        let cuts = (0..content.len()).map(|length| content[..length].to_vec());
        let flips = (0..content.len()).map(|at| {
            let mut changed = content.clone();
            changed[at] ^= 1;
            changed
        });
        for damaged in cuts.chain(flips) {
            fs::write(&path, &damaged).unwrap();
            let Err(refused) = store.load(JOB) else {
                panic!("{kind} was taken as {:?}", String::from_utf8_lossy(&damaged));
            };
            let text = refused.to_string();
            assert!(text.contains(path.to_str().unwrap()) && text.contains("restore the file"), "{text}");
            assert_eq!(refused.submission.is_some(), kind != SUBMISSION, "{text}");
            assert_eq!(fs::read(&path).unwrap(), damaged, "nobody repairs what nobody understands");
        }
        fs::write(&path, &content).unwrap();
        assert!(store.load(JOB).unwrap().is_some(), "a restored {kind} is taken again");
    }
}

#[test]
fn a_file_of_another_version_job_or_kind_is_refused_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let store = whole(dir.path());
    let path = path(dir.path(), CHECKPOINT_IDS);
    let content = fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        ("\"version\":1", "\"version\":2", "version 2"),
        (&JOB.to_string(), &JobId::from_u128(5).to_string(), "of job 00000000000000000000000000000005"),
        ("checkpoint-ids", "checkpoints", "`checkpoints`"),
    ] {
        fs::write(&path, content.replacen(from, to, 1)).unwrap();
        let text = store.load(JOB).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn without_its_submission_a_job_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = whole(dir.path());
    fs::remove_file(path(dir.path(), SUBMISSION)).unwrap();
    assert!(store.load(JOB).unwrap_err().to_string().contains("submission cannot be used: it is missing"));
}

#[test]
fn a_restart_is_stored_at_once_and_counts_of_calls_once_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let folder = Arc::new(store.accept(JOB, &submission()).unwrap());
    let mut recorder = ProgressRecorder::new(folder, Progress::default());
    let at = Tick::from_millis;
    assert!(recorder.note(progress(0, 1), at(0)).is_some());
    assert!(recorder.note(progress(0, 2), at(999)).is_none());
    assert!(recorder.note(progress(1, 2), at(999)).is_some(), "a restart does not wait");
    assert!(recorder.note(progress(1, 3), at(1_500)).is_none());
    assert!(recorder.note(progress(1, 3), at(1_999)).is_some());
    assert!(recorder.note(progress(1, 3), at(9_000)).is_none(), "nothing has changed");
}

#[test]
fn of_progress_that_overtakes_itself_the_newest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let folder = Arc::new(store.accept(JOB, &submission()).unwrap());
    let mut recorder = ProgressRecorder::new(folder, Progress::default());
    let first = recorder.note(progress(1, 1), Tick::ZERO).unwrap();
    let second = recorder.note(progress(2, 2), Tick::ZERO).unwrap();
    second.write_progress().unwrap();
    first.write_progress().unwrap();
    assert_eq!(store.load(JOB).unwrap().unwrap().left.progress, progress(2, 2));
}
