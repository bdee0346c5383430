//! Scheduled events, tags, and what replaces and cancels them.

use super::*;

fn schedule(bench: &Bench, tag: &'static str, when: When, name: &'static str) -> Ticket {
    bench.handle.schedule(Some(tag.into()), when, bench.ev(name)).unwrap()
}

#[test]
fn h01_a_timer_runs_when_it_is_due_and_not_before() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(1)), bench.ev("timer")).unwrap();
    bench.put("p");
    bench.run();
    bench.log.is(&["run p"]);
    bench.advance(1);
    bench.log.is(&["run p", "run timer"]);
}

#[test]
fn h02_a_new_moment_may_be_computed_from_the_old_one() {
    let mut bench = Bench::new();
    let hour = Duration::from_secs(3600);
    let old = schedule(&bench, "foo", When::At(Tick::ZERO + hour), "old");
    let earlier = When::With(Box::new(move |previous| previous.unwrap() - hour));
    schedule(&bench, "foo", earlier, "new");
    bench.run();
    bench.log.is(&["not_run old Replaced", "run new"]);
    assert_eq!(old.outcome(), Some(Outcome::NotRun(NotRun::Replaced)));
}

#[test]
fn h03_events_put_after_a_timer_became_due_run_behind_it() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(2)), bench.ev("timer")).unwrap();
    bench.put("a");
    bench.run();
    bench.clock.advance(Duration::from_millis(2));
    bench.put("b");
    bench.run();
    bench.log.is(&["run a", "run timer", "run b"]);
}

#[test]
fn h04_earliest_keeps_the_earlier_moment_and_runs_the_newer_event() {
    let mut bench = Bench::new();
    schedule(&bench, "t", When::At(ms(100)), "old");
    schedule(&bench, "t", When::Earliest(ms(200)), "new");
    bench.advance(100);
    bench.log.is(&["not_run old Replaced", "run new"]);
}

#[test]
fn h05_latest_moves_to_the_later_moment() {
    let mut bench = Bench::new();
    schedule(&bench, "t", When::At(ms(100)), "old");
    schedule(&bench, "t", When::Latest(ms(200)), "new");
    bench.advance(100);
    bench.log.is(&["not_run old Replaced"]);
    bench.advance(100);
    bench.log.is(&["not_run old Replaced", "run new"]);
}

#[test]
fn h06_timers_of_one_moment_all_run_at_it_in_the_order_of_their_scheduling() {
    let mut bench = Bench::new();
    for name in ["1", "2", "3", "4", "5"] {
        bench.handle.schedule(None, When::At(Tick::from_nanos(100)), bench.ev(name)).unwrap();
    }
    bench.clock.advance(Duration::from_nanos(100));
    assert_eq!(bench.run(), 5);
    bench.log.is(&["run 1", "run 2", "run 3", "run 4", "run 5"]);
}

#[test]
fn h07_two_timers_at_the_end_of_time_never_run() {
    let mut bench = Bench::new();
    for name in ["1", "2"] {
        bench.handle.schedule(None, When::At(Tick::MAX), bench.ev(name)).unwrap();
    }
    bench.clock.advance(Duration::from_nanos(u64::MAX - 1));
    assert_eq!(bench.run(), 0);
    assert_eq!(bench.handle.stats().total, 2);
}

#[test]
fn h08_timers_without_a_tag_do_not_replace_each_other() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(2)), bench.ev("late")).unwrap();
    bench.handle.schedule(None, When::At(ms(1)), bench.ev("soon")).unwrap();
    bench.advance(2);
    bench.log.is(&["run soon", "run late"]);
}

#[test]
fn h09_a_tag_in_line_is_replaced_at_the_end_of_the_line() {
    let mut bench = Bench::new();
    bench.handle.put_with(bench.ev("a"), tagged("t")).unwrap();
    bench.put("m");
    bench.handle.put_with(bench.ev("a2"), tagged("t")).unwrap();
    assert_eq!(bench.handle.len(), 2);
    bench.run();
    bench.log.is(&["not_run a Replaced", "run m", "run a2"]);
    bench.is_conserved();
}

#[test]
fn h10_a_handler_may_schedule_its_own_tag_again() {
    fn tick(log: Log) -> Ev {
        let next = log.clone();
        let run = move |cx: &mut Cx<'_, Ev>| {
            let at = cx.now() + Duration::from_millis(10);
            cx.handle().schedule(Some("t".into()), When::At(at), tick(next)).unwrap();
            Ok(())
        };
        Ev { name: "t", state: Doing::Change, log, on_run: Some(Box::new(run)), on_not_run: None }
    }
    let mut bench = Bench::new();
    bench.handle.schedule(Some("t".into()), When::At(ms(10)), tick(bench.log.clone())).unwrap();
    for _ in 0..3 {
        bench.advance(10);
        assert_eq!(bench.handle.stats().total, 1);
    }
    bench.log.is(&["run t", "run t", "run t"]);
}

#[test]
fn h13_a_tagged_event_in_line_can_be_cancelled() {
    let mut bench = Bench::new();
    let a = bench.handle.put_with(bench.ev("a"), tagged("t")).unwrap();
    assert!(bench.handle.cancel(&"t".into()));
    assert!(!bench.handle.cancel(&"t".into()));
    bench.run();
    bench.log.is(&["not_run a Cancelled"]);
    assert_eq!(a.outcome(), Some(Outcome::NotRun(NotRun::Cancelled)));
    assert_eq!(bench.handle.stats().total, 0);
}

#[test]
fn s7_8_an_event_that_has_started_is_no_longer_found_under_its_tag() {
    let mut bench = Bench::new();
    let a = bench.ev("a").runs(|cx| {
        assert!(!cx.handle().cancel(&"t".into()));
        Ok(())
    });
    let ticket = bench.handle.put_with(a, tagged("t")).unwrap();
    bench.run();
    assert_eq!(ticket.outcome(), Some(Outcome::Done));
}

#[test]
fn s9_3_a_moment_that_cannot_be_computed_changes_nothing() {
    let mut bench = Bench::new();
    schedule(&bench, "t", When::At(ms(5)), "old");
    let handle = bench.handle.clone();
    let new = bench.ev("new");
    let broken = move || {
        let when = When::With(Box::new(|_| panic!("on purpose")));
        handle.schedule(Some("t".into()), when, new).map(drop)
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(broken)).is_err());
    bench.advance(5);
    bench.log.is(&["run old"]);
    bench.is_conserved();
}

#[test]
fn tags_with_different_keys_are_different_tags() {
    let mut bench = Bench::new();
    for key in [1, 2] {
        bench.handle.schedule(Some(Tag::keyed("slot", key)), When::At(ms(1)), bench.ev("slot")).unwrap();
    }
    assert!(bench.handle.cancel(&Tag::keyed("slot", 2)));
    bench.advance(1);
    bench.log.is(&["not_run slot Cancelled", "run slot"]);
}

#[test]
fn l02_the_next_timer_is_told_only_when_nothing_else_is_to_do() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(10)), bench.ev("timer")).unwrap();
    assert_eq!(bench.handle.next_timer_if_idle(), Some(ms(10)));
    bench.gate(|handle| assert_eq!(handle.next_timer_if_idle(), None));
    assert_eq!(bench.handle.next_timer_if_idle(), None);
    bench.run();
    assert_eq!(bench.handle.next_timer_if_idle(), Some(ms(10)));
}

#[test]
fn cancelling_and_putting_again_behind_a_long_handler_does_not_grow_the_line() {
    let mut bench = Bench::new();
    bench.put("first");
    for _ in 0..10_000 {
        bench.handle.put_with(bench.ev("x"), tagged("t")).unwrap();
    }
    assert_eq!(bench.handle.len(), 2);
    assert_eq!(bench.run(), 2);
    assert_eq!(bench.handle.stats().replaced, 9_999);
    bench.is_conserved();
}
