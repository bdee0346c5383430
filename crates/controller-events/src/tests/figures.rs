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

/// The histogram of this name, of any loop.
pub(super) fn histogram_of(observed: &impl Observe, name: &str) -> HistogramSnapshot {
    let mut shown = Shown::default();
    observed.observe(&mut shown);
    shown.histograms.into_iter().find(|(shown, ..)| shown == name).unwrap().2
}

pub(super) fn histogram(handle: &Handle<Ev>, name: &str) -> HistogramSnapshot {
    shown(handle).histograms.into_iter().find(|(shown, ..)| shown == name).unwrap().2
}

pub(super) fn state_times(handle: &Handle<Ev>, state: &str) -> HistogramSnapshot {
    let label = format!("state={state};");
    let is_it =
        |name: &str, labels: &str| name == "event_rate_and_time_nanoseconds" && labels.contains(&label);
    shown(handle).histograms.into_iter().find(|(name, labels, _)| is_it(name, labels)).unwrap().2
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
fn a04_a_state_without_a_metric_is_processed_all_the_same() {
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
fn b08_an_event_whose_state_is_not_timed_runs_once_and_times_nothing() {
    let mut bench = Bench::new();
    bench.handle.put(bench.ev("x").state(Doing::Untimed)).unwrap();
    assert_eq!(bench.run(), 1);
    assert_eq!(histogram(&bench.handle, "event_queue_time_nanoseconds").count(), 1);
    assert_eq!(histogram(&bench.handle, "event_queue_processing_time_nanoseconds").count(), 1);
    let timed = ["Change", "Election"].map(|state| state_times(&bench.handle, state).count());
    assert_eq!(timed, [0, 0]);
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
fn f02_f03_after_a_long_time_without_an_event_the_times_in_the_queue_are_forgotten() {
    let mut bench = Bench::new();
    let waited = |bench: &Bench| histogram(&bench.handle, "event_queue_time_nanoseconds");
    bench.put("a");
    bench.run();
    bench.advance(299_999);
    assert_eq!(waited(&bench).count(), 1);
    bench.advance(1);
    assert_eq!((waited(&bench).count(), waited(&bench).min(), waited(&bench).max()), (0, 0, 0));
    bench.put("b");
    bench.run();
    assert_eq!(waited(&bench).count(), 1);
}

#[test]
fn f02_the_time_until_they_are_forgotten_can_be_chosen() {
    let mut bench = Bench::with(|options| options.idle_reset = Some(Duration::from_millis(1)), |_| {});
    bench.put("a");
    bench.put("b");
    bench.run();
    bench.advance(1);
    let waited = histogram(&bench.handle, "event_queue_time_nanoseconds");
    assert_eq!((waited.count(), waited.min(), waited.max()), (0, 0, 0));
}

#[test]
fn f03_a_busy_loop_forgets_nothing() {
    let mut bench = Bench::new();
    for n in 1..=10 {
        bench.put("a");
        bench.advance(299_999);
        assert_eq!(histogram(&bench.handle, "event_queue_time_nanoseconds").count(), n);
    }
}

#[test]
fn f08_the_idle_ratio_is_the_share_of_the_time_without_an_event() {
    let mut bench = Bench::new();
    bench.advance(60);
    let clock = bench.clock.clone();
    let busy = bench.ev("busy").runs(move |_| {
        clock.advance(Duration::from_millis(40));
        Ok(())
    });
    bench.handle.put(busy).unwrap();
    bench.event_loop.step();
    let stats = bench.handle.stats();
    assert!((stats.idle_ratio - 0.6).abs() <= 0.001, "{}", stats.idle_ratio);
    assert_eq!(stats.idle, Duration::from_millis(60));
    assert_eq!(value(&bench.handle, "event_queue_avg_idle_ratio", ""), stats.idle_ratio);
    bench.run();
    bench.advance(100);
    assert!((bench.handle.stats().idle_ratio - 0.8).abs() <= 0.001, "the present wait counts");
}

#[test]
fn f08_an_old_hour_does_not_hide_a_busy_minute() {
    let mut bench = Bench::new();
    bench.advance(3_600_000);
    let _ = bench.handle.stats();
    bench.advance(60_000);
    let _ = bench.handle.stats();
    let clock = bench.clock.clone();
    let busy = bench.ev("busy").runs(move |_| {
        clock.advance(Duration::from_secs(60));
        Ok(())
    });
    bench.handle.put(busy).unwrap();
    bench.event_loop.step();
    assert!(bench.handle.stats().idle_ratio <= 0.51, "{}", bench.handle.stats().idle_ratio);
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
    let slowest = SlowestEvent { name: "x", took: Duration::from_millis(2_000) };
    assert_eq!(bench.handle.stats().slowest, Some(slowest));
    assert_eq!(value(&bench.handle, "event_queue_slowest_event_seconds", "event=x;"), 2.0);
    bench.advance(60_000);
    assert_eq!(bench.handle.stats().slowest, None);
    bench.put("quick");
    bench.run();
    assert_eq!(bench.handle.stats().slowest.map(|slowest| slowest.name), Some("quick"));
}

#[test]
fn f09_every_slow_event_of_a_window_is_counted() {
    let mut bench = Bench::new();
    for millis in [5_000, 2_000, 1_000, 3_000] {
        let clock = bench.clock.clone();
        let x = bench.ev("x").runs(move |_| {
            clock.advance(Duration::from_millis(millis));
            Ok(())
        });
        bench.handle.put(x).unwrap();
    }
    bench.run();
    assert_eq!(bench.handle.stats().slow_events, 3);
    assert_eq!(bench.handle.stats().slowest.unwrap().took, Duration::from_millis(5_000));
}

#[test]
fn time_in_the_queue_is_told_by_state() {
    let mut bench = Bench::new();
    bench.handle.put(bench.ev("a").state(Doing::Election)).unwrap();
    bench.advance(3);
    let by_state = |state: &str| {
        let label = format!("state={state};");
        let all = shown(&bench.handle).histograms;
        let found = all.into_iter().find(|(name, labels, _)| {
            name == "event_queue_time_by_state_nanoseconds" && labels.contains(&label)
        });
        found.map(|(_, _, snapshot)| snapshot.max())
    };
    assert_eq!((by_state("Election"), by_state("Change")), (Some(3_000_000), None));
}

#[test]
fn commits_are_a_series_of_their_own() {
    let mut bench = Bench::new();
    let clock = bench.clock.clone();
    let write = bench.ev("write").runs(move |cx| {
        clock.advance(Duration::from_millis(7));
        cx.committed(cx.now());
        Ok(())
    });
    bench.handle.put(write).unwrap();
    bench.run();
    assert_eq!(histogram(&bench.handle, "event_commit_time_nanoseconds").sum(), 7_000_000);
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
