//! Handlers and hooks that fail.

use super::*;

fn failing(bench: &Bench, name: &'static str) -> Ev {
    bench.ev(name).runs(|_| Err(Fault::new("on purpose")))
}

#[test]
fn b06_a_failing_handler_is_timed_and_counted_and_the_loop_goes_on() {
    let mut bench = Bench::new();
    bench.handle.put(failing(&bench, "a").state(Doing::Election)).unwrap();
    bench.put("b");
    bench.run();
    bench.log.is(&["run a", "run b"]);
    assert_eq!(figures::state_times(&bench.handle, "Election").count(), 1);
    assert_eq!(figures::state_times(&bench.handle, "Change").count(), 1);
    assert_eq!((bench.handle.stats().failed, bench.handle.state()), (1, Doing::Idle));
}

#[test]
fn a_panic_is_caught_and_fails_over_unless_going_on_was_chosen() {
    for (policy, expected) in [
        (None, ["run a", "failover", "run b"].as_slice()),
        (Some(FaultAction::Continue), &["run a", "run b"]),
        (Some(FaultAction::Stop), &["run a", "not_run b LoopDied", "stop Died"]),
    ] {
        let choose =
            |options: &mut LoopOptions| options.panic_policy = policy.unwrap_or(options.panic_policy);
        let mut bench = Bench::with(choose, |_| {});
        let a = bench.handle.put(bench.ev("a").runs(|_| panic!("on purpose"))).unwrap();
        bench.put("b");
        bench.run();
        bench.log.is(expected);
        assert_eq!(a.outcome(), Some(Outcome::Failed));
        assert_eq!((bench.handle.stats().panicked, bench.handle.stats().failed), (1, 1));
        bench.is_conserved();
    }
}

#[test]
fn a_fault_that_stops_the_loop_tells_everyone_and_refuses_what_follows() {
    let stop = |recorder: &mut Recorder| recorder.on_fault = Some(Box::new(|_| FaultAction::Stop));
    let mut bench = Bench::with(|_| {}, stop);
    bench.handle.put(failing(&bench, "a")).unwrap();
    let b = bench.put("b");
    bench.handle.schedule(None, When::At(ms(1)), bench.ev("timer")).unwrap();
    bench.run();
    bench.log.is(&["run a", "not_run b LoopDied", "not_run timer LoopDied", "stop Died"]);
    assert_eq!(b.wait_started(), Err(WaitError::NotRun(NotRun::LoopDied)));
    assert!(matches!(bench.handle.put(bench.ev("x")), Err(PutError::Dead(_))));
    bench.is_conserved();
}

#[test]
fn e08_an_event_that_cannot_name_itself_does_not_end_the_loop() {
    let mut bench = Bench::new();
    bench.handle.put(failing(&bench, "unspeakable")).unwrap();
    bench.put("y");
    bench.run();
    bench.log.is(&["run unspeakable", "run y"]);
    assert_eq!(bench.handle.state(), Doing::Idle);
}

#[test]
fn i05_hooks_that_panic_do_not_end_the_loop() {
    let hooks = |recorder: &mut Recorder| {
        let mut first = true;
        recorder.on_fault = Some(Box::new(move |_| {
            assert!(!std::mem::take(&mut first), "on purpose");
            FaultAction::Continue
        }));
        recorder.after_each = Some(Box::new(|| panic!("on purpose")));
    };
    let mut bench = Bench::with(|options| options.panic_policy = FaultAction::Continue, hooks);
    bench.handle.put(failing(&bench, "1")).unwrap();
    bench.handle.put(failing(&bench, "2")).unwrap();
    bench.put("3");
    assert_eq!(bench.run(), 3);
    assert_eq!(bench.handle.stats().hook_panics, 4);
    bench.is_conserved();
}

#[test]
fn the_cause_of_a_fault_is_kept() {
    let io = || std::io::Error::other("disk full");
    let fault = Fault::caused_by("cannot store the epoch", io());
    assert_eq!(fault.to_string(), "cannot store the epoch: disk full");
    assert!(fault.cause().is_some() && !fault.is_panic());
    let fault: Fault = io().into();
    assert_eq!((fault.message(), fault.cause().is_some()), ("disk full", true));
}
