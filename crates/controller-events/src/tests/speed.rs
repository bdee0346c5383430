//! End to end beside the classic queue's shape: slow, and a measurement.
//!
//! `cargo test --release -p controller-events --lib m01 -- --ignored --nocapture`. With `CLASSIC_QUEUE` naming the Java class
//! path of a `ClassicQueue`, that is the other side; without, its shape is built here of what Rust has.

use super::*;
use std::collections::VecDeque;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar};
use std::time::Instant;

const EVENTS: u64 = 4_000_000;
const ROUNDS: usize = 5;

struct NoOp(&'static AtomicU64);

impl Event for NoOp {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Change
    }

    fn name(&self) -> &'static str {
        "no-op"
    }

    fn not_run(self, _why: NotRun) {}
}

struct Counts;

impl Processor for Counts {
    type Event = NoOp;

    fn process(&mut self, NoOp(ran): NoOp, _cx: &mut Cx<'_, NoOp>) -> Result<(), Fault> {
        ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Release);
        Ok(())
    }
}

/// Events a second, from the first put to the last run.
// A measurement: it reads the machine's clock.
#[allow(clippy::disallowed_methods)]
fn rate(producers: u64, ran: &AtomicU64, put: impl Fn() + Sync) -> f64 {
    let (go, before) = (Barrier::new(usize::try_from(producers).unwrap() + 1), ran.load(Ordering::Acquire));
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                go.wait();
                (0..EVENTS / producers).for_each(|_| put());
            });
        }
        go.wait();
        let begun = Instant::now();
        while ran.load(Ordering::Acquire) - before < EVENTS {
            std::thread::park_timeout(Duration::from_micros(200));
        }
        EVENTS as f64 / begun.elapsed().as_secs_f64()
    })
}

fn ours(producers: u64) -> f64 {
    let ran: &'static AtomicU64 = Box::leak(Box::default());
    let running =
        EventLoop::new(Counts, LoopOptions::new(Arc::new(MonotonicClock::start()))).start().unwrap();
    let handle = running.handle();
    let rate = rate(producers, ran, || handle.post(NoOp(ran)).unwrap());
    running.close().unwrap();
    rate
}

/// A lock around a put, a queue with a lock of its own and one event a take, the time read at both ends and two
/// histograms an event: the classic queue without its garbage collector.
fn classic(producers: u64) -> f64 {
    struct Queue {
        put: Mutex<()>,
        events: Mutex<VecDeque<(Box<NoOp>, Tick)>>,
        not_empty: Condvar,
        closed: AtomicBool,
    }
    let ran: &'static AtomicU64 = Box::leak(Box::default());
    let (clock, figures) =
        (MonotonicClock::start(), [(); 2].map(|()| runtime_core::metrics::Histogram::new()));
    let queue = Queue {
        put: Mutex::default(),
        events: Mutex::default(),
        not_empty: Condvar::new(),
        closed: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let mut events = queue.events.lock().unwrap();
                while events.is_empty() {
                    if queue.closed.load(Ordering::Acquire) {
                        return;
                    }
                    events = queue.not_empty.wait_timeout(events, Duration::from_millis(10)).unwrap().0;
                }
                let (event, put) = events.pop_front().unwrap();
                drop(events);
                let begun = clock.now();
                figures[0].record_duration(begun.since(put));
                ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Release);
                drop(event);
                figures[1].record_duration(clock.now().since(begun));
            }
        });
        let rate = rate(producers, ran, || {
            let _put = queue.put.lock().unwrap();
            queue.events.lock().unwrap().push_back((Box::new(NoOp(ran)), clock.now()));
            queue.not_empty.notify_one();
        });
        queue.closed.store(true, Ordering::Release);
        rate
    })
}

fn java(class_path: &str, producers: u64) -> f64 {
    let arguments = ["-Xms4g", "-Xmx4g", "-XX:+UseParallelGC", "-cp", class_path, "ClassicQueue", "burst"];
    let mut java = Command::new("java");
    java.args(arguments).args([producers.to_string(), EVENTS.to_string()]).env("REPS", "1");
    let text = String::from_utf8(java.output().unwrap().stdout).unwrap();
    let rate = text.split("\"events_per_s\":").nth(1).and_then(|rest| rest.split(',').next());
    rate.and_then(|rate| rate.parse().ok()).unwrap_or_else(|| panic!("no rate: {text}"))
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
#[ignore = "a minute of measuring, which says nothing without optimisation"]
fn m01_no_op_events_go_through_faster_than_through_the_classic_shape() {
    let class_path = std::env::var("CLASSIC_QUEUE").ok();
    for producers in [1, 4, 8] {
        let (mut by_us, mut by_them) = (Vec::new(), Vec::new());
        // By turns, so that a slow minute of the machine hits both.
        for _ in 0..ROUNDS {
            by_us.push(ours(producers));
            by_them
                .push(class_path.as_ref().map_or_else(|| classic(producers), |path| java(path, producers)));
        }
        let (us, them) = (median(by_us), median(by_them));
        println!("M01: {producers} producers: {us:.0} events/s, classic {them:.0}, ratio {:.2}", us / them);
        assert!(us >= them, "{producers} producers: {us:.0} events/s, and {them:.0} in the classic shape");
    }
}
