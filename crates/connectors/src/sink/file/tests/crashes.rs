//! Deaths between any two file operations.

use super::checkpoints::{restored, write};
use super::*;
use disk::{DEATH, dies_after, lives};

/// Runs `work` so that it dies before its first file operation, its second and so on, until it lives. After each death
/// `then` looks at what is left.
fn at_every_point<T>(
    mut begin: impl FnMut() -> T,
    mut work: impl FnMut(&mut T) -> Result<(), SinkError>,
    mut then: impl FnMut(T, bool),
) {
    for operations in 0.. {
        let mut begun = begin();
        dies_after(operations);
        let result = work(&mut begun);
        lives();
        if let Err(error) = &result {
            assert!(error.to_string().contains(DEATH), "{error}");
        }
        then(begun, result.is_err());
        if result.is_ok() {
            assert!(operations > 0, "there was nothing to die before");
            return;
        }
    }
}

fn visible(options: &FileSinkOptions) -> String {
    if !options.parts {
        return fs::read_to_string(&options.path).unwrap_or_default();
    }
    let parts = names(&options.path).into_iter().filter(|name| !name.starts_with('.'));
    parts.map(|name| fs::read_to_string(options.path.join(name)).unwrap()).collect()
}

#[test]
fn a_commit_that_dies_anywhere_is_completed_by_the_next() {
    for of_options in [file, parts] {
        let begin = || {
            let folder = folder();
            let options = of_options(&folder);
            prepare(&options).unwrap();
            let mut writer = restored(&options, attempt(JOB, 0), Restored::default());
            for (checkpoint, lines) in [(1, ["aa", "a"]), (2, ["bb", "b"]), (3, ["cc", "c"])] {
                write(&mut writer, &lines);
                writer.stage(checkpoint).unwrap();
            }
            let staged = writer.finish().unwrap();
            (folder, options, staged)
        };
        at_every_point(
            begin,
            |(_, _, staged)| commit(staged),
            |(_folder, options, staged), _| {
                let whole = "aa\na\nbb\nb\ncc\nc\n";
                assert!(whole.starts_with(&visible(&options)), "{}", visible(&options));
                commit(&staged).unwrap();
                assert_eq!(visible(&options), whole);
                commit(&staged[..1]).unwrap();
                assert_eq!(visible(&options), whole);
                assert_eq!(sweep(&options, JOB).unwrap(), 0);
            },
        );
    }
}

#[test]
fn a_task_that_dies_while_it_stages_has_changed_nothing_that_is_committed() {
    for of_options in [file, parts] {
        for finishes in [false, true] {
            let begin = || {
                let folder = folder();
                let options = of_options(&folder);
                prepare(&options).unwrap();
                let mut writer = restored(&options, attempt(JOB, 0), Restored::default());
                write(&mut writer, &["a"]);
                commit(&writer.stage(1).unwrap()).unwrap();
                writer.confirmed(1);
                write(&mut writer, &["b"]);
                (folder, options, writer)
            };
            let work = |(_, _, writer): &mut (TempDir, FileSinkOptions, FileWriter)| {
                if finishes { writer.finish() } else { writer.stage(2) }.map(drop)
            };
            at_every_point(begin, work, |(_folder, options, writer), _| {
                // It is killed, so that it removes nothing.
                std::mem::forget(writer);
                assert_eq!(visible(&options), "a\n");
                sweep_attempts(&options, &[attempt(JOB, 0)]).unwrap();
                let next = AttemptId { attempt: 1, ..attempt(JOB, 0) };
                let since = Restored { checkpoint: 1, committed_length: 2 };
                let mut writer = restored(&options, next, since);
                write(&mut writer, &["b"]);
                commit(&writer.finish().unwrap()).unwrap();
                assert_eq!(visible(&options), "a\nb\n");
                assert_eq!(sweep(&options, JOB).unwrap(), 0);
            });
        }
    }
}

#[test]
fn a_stage_that_failed_has_lost_nothing_or_fails_for_good() {
    for of_options in [file, parts] {
        let begin = || {
            let folder = folder();
            let options = of_options(&folder);
            prepare(&options).unwrap();
            let mut writer = restored(&options, attempt(JOB, 0), Restored::default());
            write(&mut writer, &["a"]);
            (folder, options, writer)
        };
        let work = |(_, _, writer): &mut (TempDir, FileSinkOptions, FileWriter)| writer.stage(1).map(drop);
        at_every_point(begin, work, |(_folder, options, mut writer), failed| {
            match writer.write_line(b"b").and_then(|()| writer.stage(2)) {
                Ok(staged) => {
                    commit(&staged).unwrap();
                    assert_eq!(visible(&options), "a\nb\n");
                }
                Err(error) => assert!(failed && matches!(error, SinkError::Closed { .. }), "{error}"),
            }
        });
    }
}
