//! What a loop counts and measures, without a lock.
//!
//! What happens in the loop is written by whoever drives it, one thread at a time, so that recording is a load and a
//! store; a locked addition for each of ten figures would cost more than the queue. What happens elsewhere (refusals,
//! callbacks) is added atomically. Times are kept by state, and the times of all states are their sum.

mod idle;
mod show;
mod slowest;

use crate::event::{EventState, NotRun};
use crate::options::LoopOptions;
use crate::put::PutError;
use crate::stats::Stats;
use idle::Idle;
use runtime_core::Tick;
use runtime_core::metrics::{Counter, Histogram, HistogramSnapshot};
use slowest::Slowest;
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter with one writer at a time.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    fn add(&self, by: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters and histograms of one loop. Durations are recorded in nanoseconds.
pub(crate) struct Metrics {
    loop_name: Cow<'static, str>,
    pub(crate) started: Tally,
    pub(crate) done: Tally,
    pub(crate) failed: Tally,
    pub(crate) panicked: Tally,
    pub(crate) stale: Tally,
    pub(crate) hook_panics: Tally,
    pub(crate) callback_panics: Counter,
    not_run: [Counter; 6],
    rejected_overload: Counter,
    rejected_closed: Counter,
    pub(crate) slowest: Slowest,
    pub(crate) idle: Idle,
    idle_reset: Option<Duration>,
    commits: OnceLock<Histogram>,
    /// By the value of the state.
    states: Vec<Option<StateTimes>>,
    /// Of states that `ALL` does not name.
    unknown: StateTimes,
}

/// The times of one state; a state that never comes costs nothing.
#[derive(Default)]
struct StateTimes {
    state: &'static str,
    metric: Option<&'static str>,
    waiting: OnceLock<Histogram>,
    handling: OnceLock<Histogram>,
}

const REASONS: [NotRun; 6] = [
    NotRun::Preempted,
    NotRun::TimedOut,
    NotRun::Replaced,
    NotRun::Cancelled,
    NotRun::ShuttingDown,
    NotRun::LoopDied,
];

impl Metrics {
    pub(crate) fn new<S: EventState>(options: &LoopOptions, now: Tick) -> Self {
        let mut states: Vec<Option<StateTimes>> = Vec::new();
        for state in S::ALL {
            let index = usize::from(state.value());
            if states.len() <= index {
                states.resize_with(index + 1, || None);
            }
            if let Some(slot) = states.get_mut(index) {
                *slot = Some(StateTimes {
                    state: state.name(),
                    metric: state.rate_metric(),
                    ..StateTimes::default()
                });
            }
        }
        Self {
            loop_name: options.name.clone(),
            slowest: Slowest::new(options.name.clone(), options.slow_event, options.slow_window, now),
            idle_reset: options.idle_reset,
            started: Tally::default(),
            done: Tally::default(),
            failed: Tally::default(),
            panicked: Tally::default(),
            stale: Tally::default(),
            hook_panics: Tally::default(),
            callback_panics: Counter::new(),
            not_run: [const { Counter::new() }; 6],
            rejected_overload: Counter::new(),
            rejected_closed: Counter::new(),
            idle: Idle::new(now),
            commits: OnceLock::new(),
            states,
            unknown: StateTimes::default(),
        }
    }

    /// An event of this state is about to start, and has waited so many nanoseconds.
    #[inline]
    pub(crate) fn starts(&self, state: u8, waited: u64) {
        self.started.increment();
        self.of_state(state).waiting.get_or_init(Histogram::new).record_alone(waited);
    }

    /// As [`starts`](Self::starts), for an event whose waiting says nothing about the queue.
    pub(crate) fn starts_unmeasured(&self) {
        self.started.increment();
    }

    /// A handler and what follows it have taken so many nanoseconds.
    #[inline]
    pub(crate) fn handled(&self, state: u8, name: &'static str, took: u64, now: Tick) {
        if self.slowest.is_over(now) {
            let handling = self.handling();
            self.slowest.roll(now, handling.count(), handling.sum());
        }
        self.of_state(state).handling.get_or_init(Histogram::new).record_alone(took);
        self.slowest.ended(name, took);
    }

    /// From the start of an event to the commit of what it wrote.
    pub(crate) fn committed(&self, took: Duration) {
        self.commits.get_or_init(Histogram::new).record_alone(nanos(took));
    }

    /// There is something to do. After a long time without, the times in the queue are of the past.
    #[inline]
    pub(crate) fn busy_from(&self, now: Tick) {
        if self.idle.since().is_none() {
            return;
        }
        if self.was_idle_for_long(now) {
            self.forget_waiting();
        }
        self.idle.ends(now);
    }

    fn was_idle_for_long(&self, now: Tick) -> bool {
        let idle_for = self.idle.since().map(|since| now.since(since));
        self.idle_reset.zip(idle_for).is_some_and(|(reset, idle_for)| idle_for >= reset)
    }

    fn forget_waiting(&self) {
        for times in self.all_times() {
            if let Some(waiting) = times.waiting.get() {
                waiting.reset();
            }
        }
    }

    pub(crate) fn not_run(&self, why: NotRun) {
        if let Some(counter) = self.not_run.get(index(why)) {
            counter.increment();
        }
    }

    pub(crate) fn refused<E>(&self, error: &PutError<E>) {
        match error {
            PutError::Overloaded { .. } => self.rejected_overload.increment(),
            PutError::Closed(_) | PutError::Dead(_) => self.rejected_closed.increment(),
            PutError::WouldDeadlock(_) => {}
        }
    }

    /// Fills in what is counted here.
    pub(crate) fn stats(&self, now: Tick, stats: &mut Stats) {
        let not_run = |why| self.not_run.get(index(why)).map_or(0, Counter::get);
        stats.started = self.started.get();
        stats.done = self.done.get();
        stats.failed = self.failed.get();
        stats.panicked = self.panicked.get();
        stats.slow_events = self.slowest.count();
        stats.slowest = self.slowest.of_window(now);
        stats.idle = self.idle.total(now);
        stats.idle_ratio = self.idle.ratio(now);
        stats.stale = self.stale.get();
        stats.preempt_panics = self.callback_panics.get();
        stats.hook_panics = self.hook_panics.get();
        stats.preempted = not_run(NotRun::Preempted);
        stats.timed_out = not_run(NotRun::TimedOut);
        stats.replaced = not_run(NotRun::Replaced);
        stats.cancelled = not_run(NotRun::Cancelled);
        stats.shut_down = not_run(NotRun::ShuttingDown);
        stats.loop_died = not_run(NotRun::LoopDied);
        stats.rejected_overload = self.rejected_overload.get();
        stats.rejected_closed = self.rejected_closed.get();
    }

    /// The times in the queue of all states together.
    pub(crate) fn waiting(&self, now: Tick) -> HistogramSnapshot {
        if self.was_idle_for_long(now) {
            return HistogramSnapshot::default();
        }
        sum(self.all_times().filter_map(|times| times.waiting.get()))
    }

    fn handling(&self) -> HistogramSnapshot {
        sum(self.all_times().filter_map(|times| times.handling.get()))
    }

    fn of_state(&self, state: u8) -> &StateTimes {
        match self.states.get(usize::from(state)) {
            Some(Some(times)) => times,
            _ => &self.unknown,
        }
    }

    fn all_times(&self) -> impl Iterator<Item = &StateTimes> {
        self.states.iter().flatten().chain([&self.unknown])
    }
}

fn sum<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> HistogramSnapshot {
    let mut sum = HistogramSnapshot::default();
    histograms.for_each(|histogram| sum.merge(&histogram.snapshot()));
    sum
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const fn index(why: NotRun) -> usize {
    match why {
        NotRun::Preempted => 0,
        NotRun::TimedOut => 1,
        NotRun::Replaced => 2,
        NotRun::Cancelled => 3,
        NotRun::ShuttingDown => 4,
        NotRun::LoopDied => 5,
    }
}
