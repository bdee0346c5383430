//! `clear_and_put`: before it or after it, and nothing between.

use super::*;
use std::sync::mpsc;

fn clear(handle: &Handle<Ev>, event: Ev) -> usize {
    handle.clear_and_put(event, ClearScope::Fifo).unwrap().count
}

#[test]
fn c01_what_waits_is_preempted_in_order_and_the_running_event_is_not_touched() {
    let mut bench = Bench::new();
    let (e, log) = (bench.ev("E"), bench.log.clone());
    bench.gate(move |handle| {
        assert_eq!(clear(handle, e), 3);
        log.is(&["run gate", "not_run a Preempted", "not_run b Preempted", "not_run c Preempted"]);
    });
    for name in ["a", "b", "c"] {
        bench.put(name);
    }
    bench.run();
    assert_eq!(bench.log.lines().last().unwrap(), "run E");
    bench.is_conserved();
}

#[test]
fn c02_with_nothing_queued_the_running_event_finishes_and_the_barrier_runs() {
    let mut bench = Bench::new();
    let e = bench.ev("E");
    let gate = bench.gate(move |handle| assert_eq!(clear(handle, e), 0));
    bench.run();
    assert_eq!(gate.outcome(), Some(Outcome::Done));
    bench.log.is(&["run gate", "run E"]);
}

#[test]
fn c03_on_an_idle_loop_the_barrier_is_a_put() {
    let mut bench = Bench::new();
    assert_eq!(clear(&bench.handle, bench.ev("E")), 0);
    bench.run();
    bench.log.is(&["run E"]);
}

#[test]
fn c04_a_preempted_event_leaves_no_trace_in_the_times() {
    let mut bench = Bench::new();
    let e = bench.ev("E");
    bench.gate(move |handle| {
        clear(handle, e);
    });
    bench.handle.put(bench.ev("a").state(Doing::Election)).unwrap();
    bench.run();
    assert_eq!(figures::histogram(&bench.handle, "event_queue_time_nanoseconds").count(), 2);
    assert_eq!(figures::state_times(&bench.handle, "Change").count(), 2);
    assert_eq!(figures::state_times(&bench.handle, "Election").count(), 0);
}

#[test]
fn c06_an_event_put_by_a_preempted_one_runs_behind_the_barrier() {
    let mut bench = Bench::new();
    let (handle, r) = (bench.handle.clone(), bench.ev("r"));
    let a = bench.ev("a").otherwise(move |_| {
        handle.put(r).unwrap();
    });
    bench.handle.put(a).unwrap();
    clear(&bench.handle, bench.ev("E"));
    bench.run();
    bench.log.is(&["not_run a Preempted", "run E", "run r"]);
}

#[test]
fn c07_of_two_barriers_the_later_one_preempts_the_earlier() {
    let mut bench = Bench::new();
    let (e1, e2) = (bench.ev("E1"), bench.ev("E2"));
    bench.gate(move |handle| {
        let other = handle.clone();
        let first = std::thread::spawn(move || clear(&other, e1));
        let counts = clear(handle, e2) + first.join().unwrap();
        assert_eq!(counts, 101);
    });
    for _ in 0..100 {
        bench.put("x");
    }
    bench.run();
    let lines = bench.log.lines();
    assert_eq!(lines.iter().filter(|line| *line == "not_run x Preempted").count(), 100);
    assert_eq!(lines.iter().filter(|line| line.starts_with("not_run E")).count(), 1);
    assert_eq!(lines.iter().filter(|line| line.starts_with("run E")).count(), 1);
    bench.is_conserved();
}

#[test]
fn c09_the_barrier_waits_for_the_callbacks_and_puts_do_not() {
    let mut bench = Bench::new();
    let (entered, has_entered) = mpsc::channel();
    let (open, is_open) = mpsc::channel::<()>();
    let a = bench.ev("a").otherwise(move |_| {
        entered.send(()).unwrap();
        is_open.recv().unwrap();
    });
    bench.handle.put(a).unwrap();
    let (handle, e) = (bench.handle.clone(), bench.ev("E"));
    let clearing = std::thread::spawn(move || clear(&handle, e));
    has_entered.recv().unwrap();
    bench.put("p");
    assert_eq!(bench.event_loop.step(), Step::Held);
    open.send(()).unwrap();
    clearing.join().unwrap();
    bench.run();
    bench.log.is(&["not_run a Preempted", "run E", "run p"]);
}

#[test]
fn c10_scheduled_events_survive_a_barrier() {
    let mut bench = Bench::new();
    bench.handle.schedule(Some("x".into()), When::At(ms(3_600_000)), bench.ev("x")).unwrap();
    bench.put("a");
    clear(&bench.handle, bench.ev("E"));
    bench.run();
    bench.advance(3_600_000);
    bench.log.is(&["not_run a Preempted", "run E", "run x"]);
}

#[test]
fn c11_a_barrier_of_scope_all_preempts_scheduled_events_too() {
    let mut bench = Bench::new();
    bench.handle.schedule(Some("x".into()), When::At(ms(3_600_000)), bench.ev("x")).unwrap();
    bench.put("a");
    let cleared = bench.handle.clear_and_put(bench.ev("E"), ClearScope::All).unwrap();
    assert_eq!(cleared.count, 2);
    bench.run();
    bench.log.is(&["not_run a Preempted", "not_run x Preempted", "run E"]);
    assert!(!bench.handle.cancel(&"x".into()));
}

#[test]
fn c12_a_preempted_event_that_answers_nothing_still_answers() {
    let bench = Bench::new();
    let (reply, answer) = Reply::<u8>::pair();
    let asks = bench.ev("asks").runs(move |_| {
        reply.send(1);
        Ok(())
    });
    bench.handle.put(asks).unwrap();
    clear(&bench.handle, bench.ev("E"));
    assert_eq!(answer.wait(), Err(Abandoned));
}

#[test]
fn c13_a_barrier_within_a_barriers_callback_preempts_the_outer_one() {
    let mut bench = Bench::new();
    let (handle, e2) = (bench.handle.clone(), bench.ev("E2"));
    let a = bench.ev("a").otherwise(move |_| {
        clear(&handle, e2);
    });
    bench.handle.put(a).unwrap();
    bench.put("b");
    clear(&bench.handle, bench.ev("E1"));
    bench.run();
    bench.log.is(&["not_run a Preempted", "not_run E1 Preempted", "not_run b Preempted", "run E2"]);
    bench.is_conserved();
}

#[test]
fn s3_6_a_barrier_reaches_what_the_loop_has_already_fetched() {
    let mut bench = Bench::new();
    for name in ["first", "fetched"] {
        bench.put(name);
    }
    assert_eq!(bench.event_loop.step(), Step::Ran);
    bench.put("pushed");
    assert_eq!(clear(&bench.handle, bench.ev("E")), 2);
    bench.run();
    bench.log.is(&["run first", "not_run fetched Preempted", "not_run pushed Preempted", "run E"]);
}

#[test]
fn s3_9_a_callback_that_panics_stops_neither_the_others_nor_the_barrier() {
    let mut bench = Bench::new();
    bench.handle.put(bench.ev("a").otherwise(|_| panic!("on purpose"))).unwrap();
    let b = bench.put("b");
    assert_eq!(clear(&bench.handle, bench.ev("E")), 2);
    bench.run();
    bench.log.is(&["not_run a Preempted", "not_run b Preempted", "run E"]);
    assert_eq!(b.outcome(), Some(Outcome::NotRun(NotRun::Preempted)));
    assert_eq!(bench.handle.stats().preempt_panics, 1);
}
