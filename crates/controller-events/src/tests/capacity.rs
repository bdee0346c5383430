//! How much may wait, and who is exempt.

use super::*;

fn bounded(capacity: usize) -> Bench {
    Bench::with(|options| options.capacity = Some(capacity), |_| {})
}

#[test]
fn k01_a_full_line_gives_the_event_back() {
    let mut bench = bounded(3);
    for name in ["a", "b", "c"] {
        bench.put(name);
    }
    let refused = bench.handle.put(bench.ev("d")).unwrap_err();
    assert!(matches!(refused, PutError::Overloaded { depth: 3, capacity: 3, .. }), "{refused:?}");
    bench.event_loop.step();
    bench.handle.put(refused.into_event()).unwrap();
    bench.run();
    bench.log.is(&["run a", "run b", "run c", "run d"]);
    assert_eq!(bench.handle.stats().rejected_overload, 1);
    bench.is_conserved();
}

#[test]
fn k02_barriers_and_prepended_events_are_let_into_a_full_line() {
    let mut bench = bounded(1);
    bench.put("a");
    bench.handle.prepend(bench.ev("p")).unwrap();
    assert_eq!(bench.handle.len(), 2);
    bench.handle.clear_and_put(bench.ev("E"), ClearScope::Fifo).unwrap();
    bench.run();
    bench.log.is(&["not_run p Preempted", "not_run a Preempted", "run E"]);
}

#[test]
fn a_handler_is_let_into_its_own_full_line() {
    let mut bench = bounded(1);
    let [x, y] = ["x", "y"].map(|name| bench.ev(name));
    let a = bench.ev("a").runs(move |cx| {
        cx.handle().put(x).map_err(|error| error.reason())?;
        cx.handle().put_with(y, tagged("y")).map_err(|error| error.reason())?;
        Ok(())
    });
    bench.handle.put(a).unwrap();
    bench.run();
    bench.log.is(&["run a", "run x", "run y"]);
}

#[test]
fn lanes_change_who_is_let_in_and_never_the_order() {
    let mut bench = bounded(2);
    let lane = |lane| PutOptions { lane, ..PutOptions::default() };
    bench.put("a");
    assert!(bench.handle.put_with(bench.ev("low"), lane(Lane::Low)).unwrap_err().is_overloaded());
    bench.put("b");
    bench.handle.put_with(bench.ev("control"), lane(Lane::Control)).unwrap();
    assert!(bench.handle.put_with(bench.ev("d"), lane(Lane::Normal)).unwrap_err().is_overloaded());
    bench.run();
    bench.log.is(&["run a", "run b", "run control"]);
}

#[test]
fn requests_may_be_refused_where_facts_never_are() {
    let mut bench = Bench::with(|options| options.low_watermark = Some(2), |_| {});
    let low = || PutOptions { lane: Lane::Low, ..PutOptions::default() };
    bench.handle.put_with(bench.ev("request"), low()).unwrap();
    bench.put("fact");
    let refused = bench.handle.put_with(bench.ev("refused"), low()).unwrap_err();
    assert!(matches!(refused, PutError::Overloaded { depth: 2, capacity: 2, .. }), "{refused:?}");
    bench.put("fact");
    bench.run();
    bench.handle.put_with(bench.ev("request"), low()).unwrap();
    bench.run();
    bench.log.is(&["run request", "run fact", "run fact", "run request"]);
}

#[test]
fn scheduled_events_have_a_limit_of_their_own_and_replacing_one_needs_no_room() {
    let bench = Bench::with(|options| options.timer_capacity = Some(1), |_| {});
    let at = || When::At(ms(1));
    bench.handle.schedule(Some("t".into()), at(), bench.ev("a")).unwrap();
    assert!(bench.handle.schedule(None, at(), bench.ev("b")).unwrap_err().is_overloaded());
    bench.handle.schedule(Some("t".into()), at(), bench.ev("c")).unwrap();
    bench.log.is(&["not_run a Replaced"]);
}

#[test]
fn k03_a_put_waits_for_room_until_its_moment_and_never_inside_the_loop() {
    let mut bench = bounded(1);
    bench.put("a");
    std::thread::scope(|scope| {
        let (handle, x) = (bench.handle.clone(), bench.ev("x"));
        let waiting = scope.spawn(move || handle.put_wait(x, ms(100)));
        bench.clock.advance(Duration::from_millis(50));
        // However far the waiting thread is: room is room.
        assert_eq!(bench.event_loop.step(), Step::Ran);
        assert!(waiting.join().unwrap().is_ok());

        let (handle, y) = (bench.handle.clone(), bench.ev("y"));
        let waiting = scope.spawn(move || handle.put_wait(y, ms(100)));
        bench.clock.advance(Duration::from_millis(50));
        let refused = waiting.join().unwrap().unwrap_err();
        assert!(matches!(refused, PutError::Overloaded { depth: 1, capacity: 1, .. }), "{refused:?}");
    });
    let z = bench.ev("z");
    let inside = bench.ev("inside").runs(move |cx| {
        cx.put(Ev { log: z.log.clone(), ..z }).map_err(|error| error.reason())?;
        Ok(())
    });
    bench.run();
    bench.handle.put(inside).unwrap();
    let late = bench.ev("late");
    let asks = bench.ev("asks").runs(move |cx| {
        let refused = cx.handle().put_wait(late, ms(1_000)).unwrap_err();
        assert!(matches!(refused, PutError::WouldDeadlock(_)), "{refused:?}");
        Ok(())
    });
    bench.handle.prepend(asks).unwrap();
    bench.run();
    bench.log.is(&["run a", "run x", "run asks", "run inside", "run z"]);
    assert_eq!((bench.handle.stats().failed, bench.handle.stats().rejected_overload), (0, 1));
    bench.is_conserved();
}

#[test]
fn a_put_that_waits_for_room_hears_of_the_end() {
    let bench = bounded(1);
    bench.put("a");
    let (handle, x) = (bench.handle.clone(), bench.ev("x"));
    let waiting = std::thread::spawn(move || handle.put_wait(x, Tick::MAX).map(drop));
    bench.handle.begin_close();
    assert!(matches!(waiting.join().unwrap(), Err(PutError::Closed(_))));
}
