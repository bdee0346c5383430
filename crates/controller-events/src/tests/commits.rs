//! Replies that wait for a commit.

use super::*;
use runtime_core::Epoch;

/// Writes at an offset and answers with it once that is committed.
fn write(bench: &Bench, offset: u64) -> ReplyReceiver<u64> {
    let (reply, answer) = Reply::pair();
    let event = bench
        .ev("write")
        .runs(move |cx| cx.complete_at(offset, reply, offset).map_err(|late| Fault::new(late.to_string())));
    bench.handle.put(event).unwrap();
    answer
}

fn then(bench: &Bench, f: impl FnOnce(&mut Cx<'_, Ev>) + Send + 'static) {
    let event = bench.ev("then").runs(move |cx| {
        f(cx);
        Ok(())
    });
    bench.handle.put(event).unwrap();
}

fn at_once<T>(answer: ReplyReceiver<T>) -> Option<Result<T, Abandoned>> {
    answer.wait_timeout(Duration::ZERO).ok()
}

#[test]
fn an_answer_waits_for_the_commit_of_what_was_written() {
    let mut bench = Bench::new();
    let [one, again, three] = [1, 1, 3].map(|offset| write(&bench, offset));
    bench.advance(5);
    then(&bench, |cx| assert_eq!(cx.commit_up_to(2), 2));
    bench.run();
    assert_eq!((one.wait(), again.wait()), (Ok(1), Ok(1)));
    let figures = bench.handle.stats();
    assert_eq!((figures.done, figures.failed), (4, 0));
    then(&bench, |cx| assert_eq!((cx.commit_up_to(7), cx.commit_up_to(7)), (1, 0)));
    bench.run();
    assert_eq!(three.wait(), Ok(3));
}

#[test]
fn offsets_never_fall_and_the_refused_reply_comes_back() {
    let mut bench = Bench::new();
    write(&bench, 2);
    let late = write(&bench, 1);
    bench.run();
    assert_eq!(bench.handle.stats().failed, 1);
    assert_eq!(late.wait(), Err(Abandoned));
}

#[test]
fn s8_2_what_wrote_nothing_waits_for_all_that_was_written_before() {
    let mut bench = Bench::new();
    let read = |bench: &Bench| {
        let (reply, answer) = Reply::pair();
        then(bench, move |cx| cx.complete_behind_all(reply, "read"));
        answer
    };
    let nothing_waits = read(&bench);
    bench.run();
    assert_eq!(nothing_waits.wait(), Ok("read"));
    let (_write, behind) = (write(&bench, 7), read(&bench));
    bench.run();
    then(&bench, |cx| assert_eq!((cx.commit_up_to(6), cx.commit_up_to(7)), (0, 2)));
    bench.run();
    assert_eq!(behind.wait(), Ok("read"));
}

#[test]
fn a_new_epoch_and_the_end_of_the_loop_abandon_what_is_not_committed() {
    let mut bench = Bench::new();
    let old = write(&bench, 1);
    then(&bench, |cx| cx.set_epoch(Epoch(2)));
    let new = write(&bench, 1);
    bench.run();
    assert_eq!(at_once(old), Some(Err(Abandoned)));
    bench.handle.begin_drain();
    bench.run();
    assert_eq!(at_once(new), Some(Err(Abandoned)));
}
