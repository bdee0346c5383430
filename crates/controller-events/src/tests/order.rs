//! The order in which events run, and the deadlines they may miss.

use super::*;

#[test]
fn b01_events_run_in_the_order_they_were_put() {
    let mut bench = Bench::new();
    let handle = bench.handle.clone();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for n in 0..1000 {
        let seen = Arc::clone(&seen);
        let event = bench.ev("e").runs(move |_| {
            seen.lock().unwrap().push(n);
            Ok(())
        });
        handle.put(event).unwrap();
    }
    assert_eq!(bench.run(), 1000);
    assert!(seen.lock().unwrap().iter().copied().eq(0..1000));
}

#[test]
fn b03_time_before_the_start_counts_as_time_in_the_queue() {
    let mut bench = Bench::new();
    bench.put("a");
    bench.put("b");
    bench.clock.advance(Duration::from_millis(700));
    bench.log.is(&[]);
    bench.run();
    bench.log.is(&["run a", "run b"]);
    let waited = figures::histogram(&bench.handle, "event_queue_time_nanoseconds");
    assert_eq!((waited.count(), waited.sum()), (2, 1_400_000_000));
}

#[test]
fn b04_the_state_is_seen_while_the_event_runs_and_idle_after_it() {
    let mut bench = Bench::new();
    let gate = bench.ev("gate").state(Doing::Election).runs(|cx| {
        assert_eq!(cx.handle().state(), Doing::Election);
        Ok(())
    });
    let ticket = bench.handle.put(gate).unwrap();
    bench.run();
    assert_eq!(ticket.outcome(), Some(Outcome::Done));
    assert_eq!(bench.handle.state(), Doing::Idle);
}

#[test]
fn b09_a_loop_that_has_not_started_is_idle_by_state_but_not_idle() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.put(name);
    }
    assert_eq!((bench.handle.len(), bench.handle.state(), bench.handle.is_idle()), (3, Doing::Idle, false));
}

#[test]
fn g01_a_prepended_event_runs_first_and_a_deadline_ahead_changes_nothing() {
    let mut bench = Bench::new();
    bench.handle.put_with(bench.ev("2"), until(ms(60_000))).unwrap();
    bench.put("3");
    bench.handle.prepend(bench.ev("1")).unwrap();
    bench.run();
    bench.handle.put_with(bench.ev("4"), until(ms(60_000))).unwrap();
    bench.run();
    bench.log.is(&["run 1", "run 2", "run 3", "run 4"]);
}

#[test]
fn g02_of_two_prepended_events_the_later_one_runs_first() {
    let mut bench = Bench::new();
    bench.put("p1");
    bench.put("p2");
    bench.handle.prepend(bench.ev("a")).unwrap();
    bench.handle.prepend(bench.ev("b")).unwrap();
    bench.run();
    bench.log.is(&["run b", "run a", "run p1", "run p2"]);
}

#[test]
fn g03_an_event_whose_deadline_passes_while_another_runs_times_out() {
    let mut bench = Bench::new();
    bench.put("1");
    let clock = bench.clock.clone();
    let second = bench.ev("2").runs(move |_| {
        clock.advance(Duration::from_millis(1));
        Ok(())
    });
    bench.handle.put(second).unwrap();
    let third = bench.handle.put_with(bench.ev("3"), until(Tick::from_nanos(1))).unwrap();
    bench.put("4");
    assert_eq!(bench.run(), 3);
    bench.log.is(&["run 1", "run 2", "not_run 3 TimedOut", "run 4"]);
    assert_eq!(third.outcome(), Some(Outcome::NotRun(NotRun::TimedOut)));
}

#[test]
fn g04_the_moment_of_the_deadline_is_too_late() {
    let mut bench = Bench::new();
    bench.handle.put_with(bench.ev("x"), until(Tick::from_nanos(5))).unwrap();
    bench.handle.put_with(bench.ev("y"), until(Tick::from_nanos(6))).unwrap();
    bench.clock.advance(Duration::from_nanos(5));
    bench.run();
    bench.log.is(&["not_run x TimedOut", "run y"]);
}

#[test]
fn g05_a_timeout_is_told_on_the_loops_thread_before_older_events_run() {
    let mut bench = Bench::new();
    let here = std::thread::current().id();
    bench.put("p1");
    let x = bench.ev("x").otherwise(move |_| assert_eq!(std::thread::current().id(), here));
    bench.handle.put_with(x, until(ms(1))).unwrap();
    bench.put("p2");
    bench.clock.advance(Duration::from_millis(2));
    bench.run();
    bench.log.is(&["not_run x TimedOut", "run p1", "run p2"]);
    assert_eq!(bench.handle.stats().preempt_panics, 0);
}

#[test]
fn g06_due_timers_go_before_prepended_events_and_those_before_the_line() {
    let mut bench = Bench::new();
    bench.put("a");
    bench.handle.prepend(bench.ev("p")).unwrap();
    bench.handle.schedule(None, When::At(ms(0)), bench.ev("timer")).unwrap();
    bench.run();
    bench.log.is(&["run timer", "run p", "run a"]);
}

#[test]
fn g07_a_handler_that_runs_past_its_deadline_is_done() {
    let mut bench = Bench::new();
    bench.clock.advance(Duration::from_millis(5));
    let clock = bench.clock.clone();
    let x = bench.ev("x").runs(move |_| {
        clock.advance(Duration::from_millis(20));
        Ok(())
    });
    let ticket = bench.handle.put_with(x, until(ms(10))).unwrap();
    bench.run();
    assert_eq!(ticket.outcome(), Some(Outcome::Done));
}

#[test]
fn g08_requests_whose_deadline_passes_are_all_answered_and_none_is_started() {
    let mut bench = Bench::new();
    let answers: Vec<_> = (0..8)
        .map(|_| {
            let (reply, answer) = Reply::<NotRun>::pair();
            let request = bench.ev("request").otherwise(move |why| reply.send(why));
            bench.handle.put_with(request, until(ms(0))).unwrap();
            answer
        })
        .collect();
    bench.clock.advance(Duration::from_nanos(1));
    bench.run();
    assert!(answers.into_iter().all(|answer| answer.wait() == Ok(NotRun::TimedOut)));
    let stats = bench.handle.stats();
    assert_eq!((stats.timed_out, stats.started), (8, 0));
}

#[test]
fn s9_5_timers_that_reschedule_themselves_for_now_do_not_starve_the_line() {
    fn again(log: Log) -> Ev {
        let next = log.clone();
        let run = move |cx: &mut Cx<'_, Ev>| {
            cx.handle().schedule(None, When::At(cx.now()), again(next)).unwrap();
            Ok(())
        };
        Ev { name: "t", state: Doing::Change, log, on_run: Some(Box::new(run)), on_not_run: None }
    }
    let mut bench = Bench::with(|options| options.timer_burst = 3, |_| {});
    bench.handle.schedule(None, When::At(ms(0)), again(bench.log.clone())).unwrap();
    bench.put("a");
    bench.put("b");
    for _ in 0..9 {
        assert_eq!(bench.event_loop.step(), Step::Ran);
    }
    bench.log.is(&["run t", "run t", "run t", "run a", "run t", "run t", "run t", "run b", "run t"]);
}

#[test]
fn j08_events_of_another_epoch_are_not_run() {
    let mut bench = Bench::new();
    let epoch = |n| PutOptions { epoch: Some(runtime_core::Epoch(n)), ..PutOptions::default() };
    for (name, n) in [("five", 5), ("six", 6)] {
        let lead = bench.ev("lead").runs(move |cx| {
            cx.set_epoch(runtime_core::Epoch(n));
            Ok(())
        });
        bench.handle.put(lead).unwrap();
        bench.handle.put_with(bench.ev(name), epoch(n)).unwrap();
    }
    bench.handle.put_with(bench.ev("old"), epoch(5)).unwrap();
    bench.handle.put_with(bench.ev("new"), epoch(6)).unwrap();
    bench.run();
    bench.log.is(&["run lead", "run five", "run lead", "run six", "not_run old Preempted", "run new"]);
    let stats = bench.handle.stats();
    assert_eq!((stats.stale, stats.preempted), (1, 1));
    bench.is_conserved();
}
