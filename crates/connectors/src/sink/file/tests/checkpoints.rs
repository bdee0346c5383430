//! Output in pieces, one for each checkpoint.

use std::io::Write as _;

use super::*;

pub(super) fn restored(options: &FileSinkOptions, attempt: AttemptId, restored: Restored) -> FileWriter {
    FileWriter::create(options, attempt, Mode::WithCheckpoints(restored)).unwrap()
}

fn first(options: &FileSinkOptions, attempt: AttemptId) -> FileWriter {
    restored(options, attempt, Restored::default())
}

pub(super) fn write(writer: &mut FileWriter, lines: &[&str]) {
    for line in lines {
        writer.write_line(line.as_bytes()).unwrap();
    }
}

fn read(options: &FileSinkOptions) -> String {
    fs::read_to_string(&options.path).unwrap()
}

#[test]
fn each_checkpoint_appends_its_piece_and_nothing_is_visible_before() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    write(&mut writer, &["a", "b"]);
    let one = writer.stage(1).unwrap();
    write(&mut writer, &["c"]);
    assert!(!options.path.exists());
    assert_eq!((one[0].offset, one[0].length, writer.committed_length()), (Some(0), 4, 4));
    commit(&one).unwrap();
    writer.confirmed(1);
    assert_eq!(read(&options), "a\nb\n");
    let two = writer.stage(2).unwrap();
    assert_eq!((two.len(), two[0].offset, two[0].length), (1, Some(4), 2));
    commit(&two).unwrap();
    assert_eq!(read(&options), "a\nb\nc\n");
    assert_eq!(writer.committed_length(), 6);
}

#[test]
fn a_part_has_the_number_of_its_checkpoint() {
    let folder = folder();
    let options = parts(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 3));
    write(&mut writer, &["a"]);
    commit(&writer.stage(7).unwrap()).unwrap();
    write(&mut writer, &["b"]);
    commit(&writer.stage(9).unwrap()).unwrap();
    assert_eq!(writer.committed_length(), 0);
    drop(writer);
    assert_eq!(names(&options.path), ["part-3-7.jsonl", "part-3-9.jsonl"]);
    assert_eq!(fs::read_to_string(options.path.join("part-3-9.jsonl")).unwrap(), "b\n");
}

#[test]
fn what_is_not_confirmed_is_handed_over_again_in_order() {
    let folder = folder();
    for options in [file(&folder), parts(&folder)] {
        prepare(&options).unwrap();
        let mut writer = first(&options, attempt(JOB, 0));
        write(&mut writer, &["a"]);
        let one = writer.stage(1).unwrap();
        assert_eq!(writer.stage(2).unwrap(), one, "nothing was written since");
        write(&mut writer, &["b"]);
        let three = writer.stage(3).unwrap();
        assert_eq!((three.len(), &three[..1]), (2, &one[..]));
        // Of the first nothing was heard; the second says that both are visible.
        writer.confirmed(2);
        assert_eq!(writer.stage(4).unwrap(), three[1..]);
        write(&mut writer, &["c"]);
        let end = writer.finish().unwrap();
        assert_eq!((end.len(), &end[..1]), (2, &three[1..]));
    }
}

#[test]
fn the_last_part_is_numbered_behind_the_last_barrier_or_the_restored_checkpoint() {
    let folder = folder();
    let options = parts(&folder);
    prepare(&options).unwrap();
    let number_of_last = |barriers: &[u64], checkpoint| {
        let mut writer = restored(&options, attempt(JOB, 1), Restored { checkpoint, ..Restored::default() });
        for barrier in barriers {
            writer.stage(*barrier).unwrap();
        }
        write(&mut writer, &["a"]);
        let staged = writer.finish().unwrap();
        let [staged] = staged.try_into().unwrap();
        staged.final_path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(number_of_last(&[], 0), "part-1-1.jsonl");
    assert_eq!(number_of_last(&[], 5), "part-1-6.jsonl");
    assert_eq!(number_of_last(&[7, 9], 5), "part-1-10.jsonl");
}

#[test]
fn empty_output_is_an_empty_file_also_with_checkpoints_but_only_at_the_end() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    assert_eq!(writer.stage(1).unwrap(), []);
    let end = writer.finish().unwrap();
    commit(&end).unwrap();
    commit(&end).unwrap();
    assert_eq!(names(&folder.path().join("out")), ["a.jsonl"]);
    assert_eq!(read(&options), "");
}

#[test]
fn of_a_folder_the_first_subtask_makes_an_empty_part_unless_it_has_one() {
    let folder = folder();
    let options = parts(&folder);
    prepare(&options).unwrap();
    assert_eq!(first(&options, attempt(JOB, 1)).finish().unwrap(), []);
    commit(&first(&options, attempt(JOB, 0)).finish().unwrap()).unwrap();
    assert_eq!(names(&options.path), ["part-0-1.jsonl"]);
    let since = Restored { checkpoint: 1, ..Restored::default() };
    assert_eq!(restored(&options, attempt(JOB, 0), since).finish().unwrap(), []);
    assert_eq!(names(&options.path), ["part-0-1.jsonl"]);
}

#[test]
fn a_file_with_output_gets_nothing_more_from_an_end_without_output() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    write(&mut writer, &["a"]);
    commit(&writer.stage(1).unwrap()).unwrap();
    writer.confirmed(1);
    assert_eq!(writer.finish().unwrap(), []);
    let since = Restored { checkpoint: 1, committed_length: 2 };
    let mut again = restored(&options, AttemptId { attempt: 1, ..attempt(JOB, 0) }, since);
    assert_eq!(again.finish().unwrap(), []);
    drop((writer, again));
    assert_eq!(names(&folder.path().join("out")), ["a.jsonl"]);
}

#[test]
fn a_commit_that_comes_late_leaves_what_was_appended_since() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    write(&mut writer, &["a"]);
    let one = writer.stage(1).unwrap();
    let kept = fs::read(&one[0].staged_path).unwrap();
    commit(&one).unwrap();
    write(&mut writer, &["b"]);
    commit(&writer.stage(2).unwrap()).unwrap();
    commit(&one).unwrap();
    // After a loss of power a file that was removed may be there again.
    fs::write(&one[0].staged_path, kept).unwrap();
    commit(&one).unwrap();
    assert!(!one[0].staged_path.exists());
    assert_eq!(read(&options), "a\nb\n");
}

#[test]
fn a_target_that_others_have_changed_is_an_error_that_changes_nothing() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    write(&mut writer, &["aa"]);
    commit(&writer.stage(1).unwrap()).unwrap();
    writer.confirmed(1);
    write(&mut writer, &["bb"]);
    let two = writer.stage(2).unwrap();

    for cut in ["aa", ""] {
        fs::write(&options.path, cut).unwrap();
        let error = commit(&two).unwrap_err();
        assert!(matches!(error, SinkError::Shortened { expected: 3, .. }), "{error}");
        assert!(error.to_string().contains("put it back"), "{error}");
        assert_eq!(read(&options), cut);
    }
    fs::remove_file(&options.path).unwrap();
    assert!(matches!(commit(&two).unwrap_err(), SinkError::Shortened { found: 0, .. }));
    assert!(!options.path.exists(), "an empty one would look as if it had been cut");

    fs::write(&options.path, "aa\nother things\n").unwrap();
    let error = commit(&two).unwrap_err();
    assert!(matches!(error, SinkError::Foreign { committed: 3, .. }), "{error}");
    assert_eq!(read(&options), "aa\nother things\n");
    // What the error says is what helps.
    OpenOptions::new().write(true).open(&options.path).unwrap().set_len(3).unwrap();
    commit(&two).unwrap();
    assert_eq!(read(&options), "aa\nbb\n");

    fs::write(&options.path, "aa\nb").unwrap();
    let error = commit(&two).unwrap_err();
    assert!(matches!(error, SinkError::Lost { length: 3, .. }), "{error}");
}

#[test]
fn a_full_disk_ends_a_commit_with_advice() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    std::os::unix::fs::symlink("/dev/full", &options.path).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    write(&mut writer, &["a"]);
    let one = writer.stage(1).unwrap();
    let error = commit(&one).unwrap_err().to_string();
    assert!(error.contains(options.path.to_str().unwrap()) && error.contains("make room"), "{error}");
    assert!(one[0].staged_path.exists());
}

#[test]
fn an_attempt_that_wakes_after_another_has_taken_over_changes_nothing_visible() {
    let folder = folder();
    for options in [file(&folder), parts(&folder)] {
        prepare(&options).unwrap();
        let mut old = first(&options, attempt(JOB, 0));
        write(&mut old, &["a"]);
        let one = old.stage(1).unwrap();
        commit(&one).unwrap();
        write(&mut old, &["lost"]);
        sweep_attempts(&options, &[attempt(JOB, 0)]).unwrap();
        let taken_over = AttemptId { attempt: 1, ..attempt(JOB, 0) };
        let since = Restored { checkpoint: 1, committed_length: 2 };
        let mut new = restored(&options, taken_over, since);
        write(&mut new, &["b"]);
        // Its dot file was swept, so that it cannot even be staged.
        assert!(old.stage(2).is_err());
        let two = new.stage(2).unwrap();
        drop(old);
        commit(&two).unwrap();
        let visible: String = if options.parts {
            names(&options.path).iter().map(|n| fs::read_to_string(options.path.join(n)).unwrap()).collect()
        } else {
            read(&options)
        };
        assert_eq!(visible, "a\nb\n");
        drop(new);
        fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn a_sweep_of_attempts_leaves_the_others_staged_or_not() {
    let folder = folder();
    for options in [file(&folder), parts(&folder)] {
        prepare(&options).unwrap();
        let mut writers = [0, 1].map(|number| {
            let id = AttemptId { attempt: number, ..attempt(JOB, 0) };
            let mut writer = first(&options, id);
            write(&mut writer, &["a"]);
            writer.stage(1).unwrap();
            write(&mut writer, &["b"]);
            (id, writer)
        });
        assert_eq!(sweep_attempts(&options, &[]).unwrap(), 0);
        assert_eq!(sweep_attempts(&options, &[writers[0].0]).unwrap(), 2);
        assert_eq!(writers[1].1.stage(2).unwrap().len(), 2);
        assert_eq!(sweep(&options, JOB).unwrap(), 2);
        assert_eq!(names(&folder.path().join("out")), [""; 0]);
    }
}

#[test]
fn a_barrier_out_of_order_is_refused() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let since = Restored { checkpoint: 5, ..Restored::default() };
    let mut writer = restored(&options, attempt(JOB, 0), since);
    write(&mut writer, &["a"]);
    assert!(matches!(writer.stage(5), Err(SinkError::OutOfOrder { checkpoint: 5, last: 5, .. })));
    assert_eq!(writer.stage(6).unwrap().len(), 1);
}

#[test]
fn a_savepoint_without_checkpoints_cuts_the_output_into_pieces_that_become_visible_together() {
    for options in [file, parts] {
        let folder = folder();
        let options = options(&folder);
        prepare(&options).unwrap();
        let mut whole = super::writer(&options, attempt(JOB, 0));
        write(&mut whole, &["a"]);
        assert_eq!(whole.stage(7).unwrap().len(), 1);
        assert_eq!(whole.committed_length(), if options.parts { 0 } else { 2 });
        write(&mut whole, &["b"]);
        let staged = whole.finish().unwrap();
        assert_eq!(staged.len(), 2);
        commit(&staged).unwrap();
        if options.parts {
            let names = names(&options.path);
            assert_eq!(names, ["part-0-7.jsonl", "part-0-8.jsonl"]);
        } else {
            assert_eq!(fs::read_to_string(&options.path).unwrap(), "a\nb\n");
        }
    }
}

#[test]
fn output_of_a_savepoint_is_put_in_its_place_once_however_often_it_is_restored() {
    let folder = folder();
    let options = file(&folder);
    fs::create_dir_all(options.path.parent().unwrap()).unwrap();
    fs::write(&options.path, "a\n").unwrap();
    let end = SavedEnd { checkpoint: 7, committed_length: 4 };
    check_continued(&options, end, 2).unwrap();
    assert!(matches!(check_continued(&options, end, 4), Err(SinkError::Shortened { found: 2, .. })));
    for _ in 0..2 {
        restore(&options.path, 2, Some(2), |file| file.write_all(b"b\n")).unwrap();
        prepare_continued(&options, end).unwrap();
        assert_eq!(fs::read_to_string(&options.path).unwrap(), "a\nb\n");
    }
    fs::write(&options.path, "a\nb\nc\n").unwrap();
    let refused = prepare_continued(&options, end).unwrap_err();
    assert!(matches!(refused, SinkError::WentOn { committed: 4, found: 6, .. }));
    assert!(refused.to_string().contains("truncate -s 4"), "{refused}");
    let left = names(options.path.parent().unwrap());
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn parts_of_a_savepoint_are_restored_and_newer_ones_are_named() {
    let folder = folder();
    let options = parts(&folder);
    let end = SavedEnd { checkpoint: 7, committed_length: 0 };
    let part = options.path.join("part-0-7.jsonl");
    for _ in 0..2 {
        restore(&part, 2, None, |file| file.write_all(b"b\n")).unwrap();
        prepare_continued(&options, end).unwrap();
    }
    assert_eq!(fs::read_to_string(&part).unwrap(), "b\n");
    fs::write(options.path.join("part-1-8.jsonl"), "c\n").unwrap();
    let refused = check_continued(&options, end, 0).unwrap_err();
    assert!(matches!(refused, SinkError::PartsWentOn { checkpoint: 7, .. }), "{refused}");
}

#[test]
fn after_the_end_and_after_a_failed_write_nothing_is_taken() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut ended = first(&options, attempt(JOB, 0));
    ended.finish().unwrap();

    let full = AttemptId { attempt: 1, ..attempt(JOB, 0) };
    std::os::unix::fs::symlink("/dev/full", name::unfinished(&options, full).unwrap()).unwrap();
    let mut failed = first(&options, full);
    write(&mut failed, &["a"]);
    assert!(failed.stage(1).is_err());
    assert!(failed.write_line(&vec![b'x'; 1 << 20]).is_err());
    for writer in [&mut ended, &mut failed] {
        assert!(matches!(writer.write_line(b"a"), Err(SinkError::Closed { .. })));
        assert!(matches!(writer.stage(2), Err(SinkError::Closed { .. })));
        assert!(matches!(writer.finish(), Err(SinkError::Closed { .. })));
    }
}

#[test]
fn unfinished_output_that_something_else_has_changed_is_never_staged() {
    let folder = folder();
    let options = file(&folder);
    prepare(&options).unwrap();
    let mut writer = first(&options, attempt(JOB, 0));
    fs::write(name::unfinished(&options, attempt(JOB, 0)).unwrap(), "others").unwrap();
    write(&mut writer, &["a"]);
    let error = writer.stage(1).unwrap_err();
    assert!(matches!(error, SinkError::Changed { expected: 2, found: 6, .. }), "{error}");
    assert!(writer.stage(2).is_err());
}
