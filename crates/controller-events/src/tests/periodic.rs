//! Work that comes back.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A processor event that begins a chain of ticks named `name`, of which those in `fail` fail.
fn begins(bench: &Bench, millis: u64, fail: &'static [usize]) {
    let log = bench.log.clone();
    let start = bench.ev("start").runs(move |cx| {
        let made = Arc::new(AtomicUsize::new(0));
        cx.periodic("p", Duration::from_millis(millis), move || {
            let n = made.fetch_add(1, Ordering::SeqCst);
            let tick =
                Ev { name: "tick", state: Doing::Change, log: log.clone(), on_run: None, on_not_run: None };
            tick.runs(move |_| if fail.contains(&n) { Err(Fault::new("on purpose")) } else { Ok(()) })
        })
        .unwrap();
        Ok(())
    });
    bench.handle.put(start).unwrap();
}

fn ticks(bench: &Bench) -> usize {
    bench.log.lines().iter().filter(|line| *line == "run tick").count()
}

#[test]
fn h14_a_failing_tick_does_not_end_its_chain_and_at_most_one_waits() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[0]);
    bench.run();
    bench.advance(100);
    assert_eq!(ticks(&bench), 1);
    bench.advance(59_999);
    assert_eq!(ticks(&bench), 1, "a failed chain comes back after a minute");
    for _ in 0..10_000 {
        bench.advance(100);
        assert_eq!(bench.handle.stats().scheduled, 1);
    }
    assert_eq!(ticks(&bench), 1 + 10_000);
    bench.is_conserved();
}

#[test]
fn s9_18_ticks_come_at_the_moments_of_the_schedule_and_missed_ones_are_left_out() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[]);
    bench.run();
    bench.advance(130);
    assert_eq!(bench.handle.next_timer_if_idle(), Some(ms(200)));
    bench.advance(1_000);
    assert_eq!((ticks(&bench), bench.handle.next_timer_if_idle()), (2, Some(ms(1_200))));
}

#[test]
fn s9_18_a_chain_ends_with_its_tag_and_is_not_begun_again_by_a_failure() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[]);
    bench.run();
    assert!(bench.handle.cancel(&"p".into()));
    bench.advance(10_000);
    assert_eq!(ticks(&bench), 0);
    bench.log.is(&["run start", "not_run tick Cancelled"]);
}

#[test]
fn s9_18_an_event_that_takes_the_tag_ends_the_chain() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[]);
    bench.run();
    bench.handle.schedule(Some("p".into()), When::At(ms(50)), bench.ev("once")).unwrap();
    bench.advance(10_000);
    bench.log.is(&["run start", "not_run tick Replaced", "run once"]);
}

#[test]
fn s9_18_a_new_epoch_ends_every_chain() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[]);
    bench.run();
    let elected = bench.ev("elected").runs(|cx| {
        cx.set_epoch(runtime_core::Epoch(7));
        Ok(())
    });
    bench.handle.put(elected).unwrap();
    bench.run();
    bench.advance(10_000);
    bench.log.is(&["run start", "run elected", "not_run tick Cancelled"]);
    bench.is_conserved();
}

#[test]
fn s9_18_a_drain_and_a_close_end_a_chain() {
    for close in [false, true] {
        let mut bench = Bench::new();
        begins(&bench, 100, &[]);
        bench.run();
        if close {
            bench.handle.begin_close();
        } else {
            bench.handle.begin_drain();
        }
        bench.run();
        assert_eq!(bench.log.lines()[..2], ["run start", "not_run tick ShuttingDown"]);
        bench.is_conserved();
    }
}

#[test]
fn a_chain_begun_again_is_one_chain() {
    let mut bench = Bench::new();
    begins(&bench, 100, &[]);
    begins(&bench, 300, &[]);
    bench.run();
    bench.advance(300);
    assert_eq!((ticks(&bench), bench.handle.stats().scheduled, bench.handle.stats().replaced), (1, 1, 1));
}
