//! What is counted, measured and shown.

use super::*;
use runtime_core::metrics::{HistogramSnapshot, Observe, Visit};

#[derive(Default)]
struct Shown {
    values: Vec<(String, String, f64)>,
    histograms: Vec<(String, String, HistogramSnapshot)>,
}

fn text(labels: &[(&str, &str)]) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value};")).collect()
}

impl Visit for Shown {
    fn counter(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], value: u64) {
        self.values.push((name.to_owned(), text(labels), value as f64));
    }

    fn gauge(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], value: f64) {
        self.values.push((name.to_owned(), text(labels), value));
    }

    fn histogram(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], snapshot: &HistogramSnapshot) {
        self.histograms.push((name.to_owned(), text(labels), snapshot.clone()));
    }
}

fn shown(handle: &Handle<Ev>) -> Shown {
    let mut shown = Shown::default();
    handle.observe(&mut shown);
    shown
}

pub(super) fn histogram(handle: &Handle<Ev>, name: &str) -> HistogramSnapshot {
    shown(handle).histograms.into_iter().find(|(shown, ..)| shown == name).unwrap().2
}

pub(super) fn state_times(handle: &Handle<Ev>, state: &str) -> HistogramSnapshot {
    let label = format!("state={state};");
    shown(handle).histograms.into_iter().find(|(_, labels, _)| labels.contains(&label)).unwrap().2
}

fn value(handle: &Handle<Ev>, name: &str, label: &str) -> f64 {
    let found = shown(handle).values.into_iter().find(|(n, labels, _)| n == name && labels.contains(label));
    found.unwrap().2
}

#[test]
fn a03_the_timed_states_are_shown_under_their_metric_and_the_others_not() {
    let bench = Bench::new();
    let timed: Vec<_> = shown(&bench.handle)
        .histograms
        .into_iter()
        .filter(|(name, ..)| name == "event_rate_and_time_nanoseconds")
        .map(|(_, labels, _)| labels)
        .collect();
    assert_eq!(
        timed,
        [
            "loop=controller;state=Change;metric=ChangeRateAndTimeMs;",
            "loop=controller;state=Election;metric=LeaderElectionRateAndTimeMs;"
        ]
    );
}

#[test]
fn a04_b08_a_state_without_a_metric_is_processed_all_the_same() {
    let mut bench = Bench::new();
    for state in [Doing::Idle, Doing::Untimed] {
        let event = bench.ev("x").state(state).runs(move |cx| {
            assert_eq!(cx.handle().state(), state);
            Ok(())
        });
        bench.handle.put(event).unwrap();
    }
    assert_eq!(bench.run(), 2);
    assert_eq!(bench.handle.stats().done, 2);
    assert_eq!(histogram(&bench.handle, "event_queue_time_nanoseconds").count(), 2);
    assert_eq!(state_times(&bench.handle, "Change").count(), 0);
}

#[test]
fn f01_time_in_the_queue_ends_where_the_handler_starts() {
    let mut bench = Bench::new();
    let clock = bench.clock.clone();
    let slow = bench.ev("slow").runs(move |_| {
        clock.advance(Duration::from_millis(500));
        Ok(())
    });
    bench.handle.put(slow).unwrap();
    bench.put("next");
    bench.run();
    let waited = histogram(&bench.handle, "event_queue_time_nanoseconds");
    assert_eq!((waited.count(), waited.sum(), waited.max()), (2, 500_000_000, 500_000_000));
}

#[test]
fn f04_the_running_event_is_not_in_the_queue_but_in_the_total() {
    let mut bench = Bench::new();
    let gate = bench.gate(|handle| {
        let stats = handle.stats();
        assert_eq!((stats.queued, handle.len(), stats.total, handle.is_idle()), (2, 2, 3, false));
        assert_eq!(value(handle, "event_queue_size", ""), 2.0);
        assert_eq!(value(handle, "controller_state", ""), 1.0);
    });
    bench.put("a");
    bench.put("b");
    bench.run();
    assert_eq!(gate.outcome(), Some(Outcome::Done));
    assert!(bench.handle.is_idle());
}

#[test]
fn f05_a_loop_is_not_idle_before_the_hook_after_the_event_has_returned() {
    let idle = Arc::new(Mutex::new(Vec::new()));
    let (clock, log) = (MockClock::new(), Log::default());
    let seen = Arc::new(Mutex::new(None::<Handle<Ev>>));
    let hook = {
        let (idle, seen) = (Arc::clone(&idle), Arc::clone(&seen));
        move || idle.lock().unwrap().push(seen.lock().unwrap().as_ref().unwrap().is_idle())
    };
    let recorder = Recorder { log: log.clone(), after_each: Some(Box::new(hook)), ..Recorder::default() };
    let mut event_loop = EventLoop::new(recorder, LoopOptions::mocked(&clock));
    let handle = event_loop.handle();
    *seen.lock().unwrap() = Some(handle.clone());
    handle.put(Ev { name: "x", state: Doing::Change, log, on_run: None, on_not_run: None }).unwrap();
    event_loop.run_until_idle();
    assert_eq!((idle.lock().unwrap().as_slice(), handle.is_idle()), ([false].as_slice(), true));
}

#[test]
fn f06_a_scheduled_event_waits_from_the_moment_it_is_due() {
    let mut bench = Bench::new();
    bench.handle.schedule(None, When::At(ms(60_000)), bench.ev("timer")).unwrap();
    bench.advance(60_005);
    assert_eq!(histogram(&bench.handle, "event_queue_time_nanoseconds").max(), 5_000_000);
}

#[test]
fn f07_time_in_the_handler_is_apart_from_time_in_the_queue() {
    let mut bench = Bench::new();
    let clock = bench.clock.clone();
    let x = bench.ev("x").runs(move |_| {
        clock.advance(Duration::from_millis(7));
        Ok(())
    });
    bench.handle.put(x).unwrap();
    bench.run();
    assert_eq!(histogram(&bench.handle, "event_queue_processing_time_nanoseconds").sum(), 7_000_000);
    let waited = histogram(&bench.handle, "event_queue_time_nanoseconds");
    assert_eq!((waited.count(), waited.sum()), (1, 0));
}

#[test]
fn f09_only_handlers_that_reach_the_limit_are_slow() {
    let mut bench = Bench::new();
    for millis in [1_999, 2_000] {
        let clock = bench.clock.clone();
        let x = bench.ev("x").runs(move |_| {
            clock.advance(Duration::from_millis(millis));
            Ok(())
        });
        bench.handle.put(x).unwrap();
    }
    bench.run();
    assert_eq!(bench.handle.stats().slow_events, 1);
}

#[test]
fn f10_every_outcome_is_counted_once() {
    let mut bench = Bench::with(|options| options.capacity = Some(140), |_| {});
    for _ in 0..10 {
        bench.handle.put_with(bench.ev("late"), until(ms(0))).unwrap();
    }
    bench.run();
    for key in 0..5 {
        bench.handle.schedule(Some(Tag::keyed("c", key)), When::At(ms(9)), bench.ev("c")).unwrap();
        bench.handle.schedule(Some(Tag::keyed("r", key)), When::At(ms(9)), bench.ev("r")).unwrap();
    }
    for key in 0..5 {
        assert!(bench.handle.cancel(&Tag::keyed("c", key)));
        bench.handle.schedule(Some(Tag::keyed("r", key)), When::At(ms(1)), bench.ev("r")).unwrap();
    }
    (0..20).for_each(|_| drop(bench.put("x")));
    bench.handle.clear_and_put(bench.ev("E"), ClearScope::Fifo).unwrap();
    (0..100).for_each(|_| drop(bench.put("x")));
    let refused = (0..42).filter(|_| bench.handle.put(bench.ev("x")).is_err()).count();
    bench.advance(1);
    let stats = bench.handle.stats();
    assert_eq!(refused, 3);
    assert_eq!((stats.timed_out, stats.cancelled, stats.replaced, stats.preempted), (10, 5, 5, 20));
    assert_eq!((stats.rejected_overload, stats.done, stats.total), (3, 1 + 100 + 39 + 5, 0));
    assert_eq!(value(&bench.handle, "event_queue_operations_not_run", "reason=replaced"), 5.0);
    bench.is_conserved();
}

#[test]
fn the_age_of_the_oldest_event_is_shown() {
    let bench = Bench::new();
    bench.put("a");
    bench.clock.advance(Duration::from_secs(3));
    bench.put("b");
    assert_eq!(bench.handle.stats().oldest_age, Duration::from_secs(3));
    assert_eq!(value(&bench.handle, "event_queue_oldest_age_seconds", ""), 3.0);
}
