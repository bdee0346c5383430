//! What is listed, in which order, and how it is cut.

use std::fs::File;
use std::time::Duration;

use super::*;

fn options(path: &Path, split: SplitMode) -> FileSourceOptions {
    FileSourceOptions {
        path: path.to_str().unwrap().to_owned(),
        split,
        event_time: None,
        watermark_lag: Duration::ZERO,
        max_rate: None,
        max_record: 1 << 20,
    }
}

fn file_of(path: &Path, length: u64) {
    File::create(path).unwrap().set_len(length).unwrap();
}

fn names(found: &[(PathBuf, u64)]) -> Vec<&str> {
    found.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn a_directory_means_its_visible_regular_files_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.jsonl", "a.jsonl", ".hidden", "c.txt"] {
        file_of(&folder.path().join(name), 1);
    }
    fs::create_dir(folder.path().join("below")).unwrap();
    file_of(&folder.path().join("below/d.jsonl"), 1);
    let found = find_files(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(names(&found), ["a.jsonl", "b.jsonl", "c.txt"]);
}

#[test]
fn a_glob_means_its_visible_matches_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["2.jsonl", "10.jsonl", ".1.jsonl", "c.txt"] {
        file_of(&folder.path().join(name), 1);
    }
    let found = find_files(folder.path().join("*.jsonl").to_str().unwrap()).unwrap();
    assert_eq!(names(&found), ["10.jsonl", "2.jsonl"]);
}

#[test]
fn a_file_that_exists_is_no_glob_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a[1].jsonl");
    file_of(&path, 3);
    assert_eq!(find_files(path.to_str().unwrap()).unwrap(), [(path, 3)]);
}

#[test]
fn folders_before_a_glob_are_no_globs_when_they_exist() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("[2026]/a")).unwrap();
    file_of(&folder.path().join("[2026]/a/1.jsonl"), 1);
    let found = find_files(folder.path().join("[2026]/*/?.jsonl").to_str().unwrap()).unwrap();
    assert_eq!(names(&found), ["1.jsonl"]);
}

#[test]
fn no_input_is_an_error_that_names_the_pattern() {
    let folder = tempfile::tempdir().unwrap();
    for pattern in ["missing.jsonl", "*.jsonl", ""] {
        let pattern = folder.path().join(pattern).to_str().unwrap().to_owned();
        let error = find_files(&pattern).unwrap_err();
        assert!(matches!(error, SourceError::NoInput { .. }), "{error}");
        assert!(error.to_string().contains(&pattern), "{error}");
    }
}

#[test]
fn a_pattern_that_is_no_glob_is_an_error() {
    let error = find_files("/nowhere/[a").unwrap_err();
    assert!(matches!(error, SourceError::Pattern { .. }), "{error}");
}

#[test]
fn in_file_mode_each_file_is_one_split_and_ids_count_up() {
    let folder = tempfile::tempdir().unwrap();
    file_of(&folder.path().join("a"), 9 << 20);
    file_of(&folder.path().join("b"), 0);
    let splits = enumerate(&options(folder.path(), SplitMode::File), 2).unwrap();
    let found: Vec<_> = splits.iter().map(|s| (s.id, s.start, s.end)).collect();
    assert_eq!(found, [(0, 0, Some(9 << 20)), (1, 0, Some(0))]);
}

#[test]
fn in_range_mode_splits_cover_a_large_file_without_gap_or_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let length = (37 << 20) + 5;
    file_of(&folder.path().join("a"), length);
    let splits = enumerate(&options(folder.path(), SplitMode::Range), 2).unwrap();
    assert_eq!(splits.len(), 9);
    let mut expected_start = 0;
    for (index, split) in splits.iter().enumerate() {
        assert_eq!((split.id as usize, split.start), (index, expected_start));
        expected_start = split.end.unwrap();
    }
    assert_eq!(expected_start, length);
}

#[test]
fn split_sizes_stay_within_one_and_sixty_four_mebibytes() {
    assert_eq!(split_size(100, 1), MIN_SPLIT);
    assert_eq!(split_size(1 << 40, 4), MAX_SPLIT);
    assert_eq!(split_size(80 << 20, 2), 10 << 20);
}

#[test]
fn a_packed_file_is_one_split_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    file_of(&folder.path().join("a.jsonl.gz"), 9 << 20);
    let splits = enumerate(&options(folder.path(), SplitMode::Range), 8).unwrap();
    assert_eq!(splits.len(), 1);
    assert!(splits[0].gzip);
}
