//! The two ways to end a loop, and what is said to whom.

use super::*;

#[test]
fn e03_a_loop_that_never_started_preempts_what_waits() {
    let bench = Bench::new();
    bench.put("a");
    bench.put("b");
    assert_eq!(bench.handle.close(), CloseOutcome::Begun);
    bench.log.is(&["not_run a Preempted", "not_run b Preempted"]);
    assert_eq!(bench.event_loop.start().map(drop).unwrap_err().to_string(), StartError::Closed.to_string());
}

#[test]
fn e04_a_handler_may_close_its_loop() {
    let mut bench = Bench::new();
    let a = bench.ev("a").runs(|cx| {
        assert_eq!(cx.handle().close(), CloseOutcome::Begun);
        Ok(())
    });
    let a = bench.handle.put(a).unwrap();
    bench.put("b");
    bench.run();
    bench.log.is(&["run a", "not_run b Preempted", "stop Closed"]);
    assert_eq!(a.outcome(), Some(Outcome::Done));
    assert!(bench.handle.has_ended());
    assert_eq!(bench.handle.close(), CloseOutcome::Ended);
}

#[test]
fn e05_a_callback_that_panics_does_not_stop_a_close() {
    let bench = Bench::new();
    bench.handle.put(bench.ev("a").otherwise(|_| panic!("on purpose"))).unwrap();
    bench.put("b");
    let handle = bench.handle.clone();
    bench.event_loop.close();
    bench.log.is(&["not_run a Preempted", "not_run b Preempted", "stop Closed"]);
    assert_eq!((handle.stats().preempt_panics, handle.has_ended()), (1, true));
}

#[test]
fn s5_7_a_close_preempts_the_line_and_shuts_down_what_is_scheduled() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(5)), bench.ev("timer")).unwrap();
    bench.put("a");
    bench.handle.close();
    bench.run();
    bench.log.is(&["not_run a Preempted", "not_run timer ShuttingDown", "stop Closed"]);
    bench.is_conserved();
}

#[test]
fn i01_a_drain_does_not_wait_for_timers() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(3_600_000)), bench.ev("timer")).unwrap();
    bench.handle.begin_drain();
    assert_eq!(bench.event_loop.step(), Step::Stopped(StopReason::Drained));
    bench.log.is(&["not_run timer ShuttingDown", "stop Drained"]);
}

#[test]
fn i02_a_closed_loop_gives_every_event_back() {
    let bench = Bench::new();
    bench.handle.close();
    let h = &bench.handle;
    assert!(matches!(h.put(bench.ev("x")), Err(PutError::Closed(Ev { name: "x", .. }))));
    assert!(matches!(h.post(bench.ev("x")), Err(PutError::Closed(_))));
    assert!(matches!(h.prepend(bench.ev("x")), Err(PutError::Closed(_))));
    assert!(matches!(h.put_with(bench.ev("x"), tagged("t")), Err(PutError::Closed(_))));
    assert!(matches!(h.clear_and_put(bench.ev("x"), ClearScope::All), Err(PutError::Closed(_))));
    assert!(matches!(h.schedule(None, When::At(ms(1)), bench.ev("x")), Err(PutError::Closed(_))));
    bench.log.is(&[]);
    assert_eq!(h.stats().rejected_closed, 6);
}

#[test]
fn i03_a_drain_runs_what_waits_and_a_second_one_changes_nothing() {
    let mut bench = Bench::new();
    bench.gate(|handle| {
        handle.begin_drain();
        handle.begin_drain();
    });
    for name in ["a", "b", "c"] {
        bench.put(name);
    }
    bench.run();
    bench.log.is(&["run gate", "run a", "run b", "run c", "stop Drained"]);
    bench.is_conserved();
}

#[test]
fn i04_a_handler_that_puts_during_a_drain_gets_its_event_back() {
    let mut bench = Bench::new();
    let r = bench.ev("r");
    let a = bench.ev("a").runs(move |cx| {
        cx.handle().begin_drain();
        assert!(matches!(cx.handle().put(r), Err(PutError::Closed(_))));
        Ok(())
    });
    let a = bench.handle.put(a).unwrap();
    bench.run();
    assert_eq!(a.outcome(), Some(Outcome::Done));
    bench.log.is(&["run a", "stop Drained"]);
}

#[test]
fn s9_8_a_drain_runs_timers_that_are_due_and_deadlines_that_have_not_passed() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(1)), bench.ev("due")).unwrap();
    bench.handle.schedule(None, When::At(ms(2)), bench.ev("not due")).unwrap();
    bench.handle.put_with(bench.ev("in time"), until(ms(2))).unwrap();
    bench.clock.advance(Duration::from_millis(1));
    bench.handle.begin_drain();
    bench.run();
    bench.log.is(&["not_run not due ShuttingDown", "run due", "run in time", "stop Drained"]);
}

#[test]
fn a_close_during_a_drain_preempts_what_is_left() {
    let mut bench = Bench::new();
    bench.put("a");
    bench.put("b");
    bench.handle.begin_drain();
    bench.event_loop.step();
    bench.handle.close();
    bench.run();
    bench.log.is(&["run a", "not_run b Preempted", "stop Closed"]);
}

#[test]
fn a_dropped_loop_tells_what_waits_and_refuses_what_follows() {
    let bench = Bench::new();
    let a = bench.put("a");
    let (handle, log, x) = (bench.handle.clone(), bench.log.clone(), bench.ev("x"));
    drop(bench.event_loop);
    log.is(&["not_run a Preempted"]);
    assert_eq!(a.outcome(), Some(Outcome::NotRun(NotRun::Preempted)));
    assert!(handle.put(x).is_err() && handle.has_ended());
}

#[test]
fn s7_11_a_drain_as_kafkas_gives_up_what_still_has_time() {
    let mut bench = Bench::with(|options| options.reject_deadlined_on_drain = true, |_| {});
    bench.put("plain");
    bench.handle.put_with(bench.ev("in time"), until(ms(2))).unwrap();
    bench.handle.put_with(bench.ev("too late"), until(ms(1))).unwrap();
    bench.handle.put_with(bench.ev("tagged"), tagged("t")).unwrap();
    bench.clock.advance(Duration::from_millis(1));
    bench.handle.begin_drain();
    bench.run();
    bench.log.is(&[
        "not_run in time ShuttingDown",
        "not_run too late TimedOut",
        "run plain",
        "run tagged",
        "stop Drained",
    ]);
    bench.is_conserved();
}

#[test]
fn a_loop_that_died_gives_every_event_back() {
    let mut bench = Bench::with(|_| {}, |recorder| recorder.on_fault = Some(Box::new(|_| FaultAction::Stop)));
    let fatal = bench.ev("fatal").runs(|_| Err(Fault::new("fatal")));
    bench.handle.put(fatal).unwrap();
    bench.run();
    let name = |refused: PutError<Ev>| match refused {
        PutError::Dead(event) => event.name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(bench.handle.put(bench.ev("put")).unwrap_err()), "put");
    assert_eq!(name(bench.handle.put_with(bench.ev("with"), tagged("t")).unwrap_err()), "with");
    assert_eq!(name(bench.handle.prepend(bench.ev("first")).unwrap_err()), "first");
    assert_eq!(name(bench.handle.clear_and_put(bench.ev("all"), ClearScope::All).unwrap_err()), "all");
    assert_eq!(name(bench.handle.schedule(None, When::At(ms(1)), bench.ev("later")).unwrap_err()), "later");
    assert_eq!(bench.handle.stats().rejected_closed, 5);
    bench.is_conserved();
}
