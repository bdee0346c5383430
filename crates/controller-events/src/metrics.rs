//! What a loop counts and measures, without a lock.

use crate::event::{EventState, NotRun};
use crate::put::PutError;
use crate::stats::Stats;
use runtime_core::metrics::{Counter, Histogram, Visit};
use std::borrow::Cow;
use std::time::Duration;

/// Counters and histograms of one loop. Durations are recorded in nanoseconds.
pub(crate) struct Metrics {
    loop_name: Cow<'static, str>,
    pub(crate) started: Counter,
    pub(crate) done: Counter,
    pub(crate) failed: Counter,
    pub(crate) panicked: Counter,
    pub(crate) slow: Counter,
    pub(crate) stale: Counter,
    pub(crate) callback_panics: Counter,
    pub(crate) hook_panics: Counter,
    not_run: [Counter; 6],
    rejected_overload: Counter,
    rejected_closed: Counter,
    queue_time: Histogram,
    processing_time: Histogram,
    /// By the value of the state; `None` for states that are not timed.
    states: Vec<Option<StateTimes>>,
}

struct StateTimes {
    state: &'static str,
    metric: &'static str,
    times: Histogram,
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
    pub(crate) fn new<S: EventState>(loop_name: Cow<'static, str>) -> Self {
        let mut states: Vec<Option<StateTimes>> = Vec::new();
        for state in S::ALL {
            let index = usize::from(state.value());
            if states.len() <= index {
                states.resize_with(index + 1, || None);
            }
            if let Some(slot) = states.get_mut(index) {
                *slot = state.rate_metric().map(|metric| StateTimes {
                    state: state.name(),
                    metric,
                    times: Histogram::new(),
                });
            }
        }
        Self {
            loop_name,
            started: Counter::new(),
            done: Counter::new(),
            failed: Counter::new(),
            panicked: Counter::new(),
            slow: Counter::new(),
            stale: Counter::new(),
            callback_panics: Counter::new(),
            hook_panics: Counter::new(),
            not_run: [const { Counter::new() }; 6],
            rejected_overload: Counter::new(),
            rejected_closed: Counter::new(),
            queue_time: Histogram::new(),
            processing_time: Histogram::new(),
            states,
        }
    }

    pub(crate) fn waited(&self, time: Duration) {
        self.started.increment();
        self.queue_time.record_duration(time);
    }

    pub(crate) fn processed(&self, state: u8, time: Duration) {
        self.processing_time.record_duration(time);
        if let Some(Some(state)) = self.states.get(usize::from(state)) {
            state.times.record_duration(time);
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
        }
    }

    /// Fills in what is counted here.
    pub(crate) fn stats(&self, stats: &mut Stats) {
        let not_run = |why| self.not_run.get(index(why)).map_or(0, Counter::get);
        stats.started = self.started.get();
        stats.done = self.done.get();
        stats.failed = self.failed.get();
        stats.panicked = self.panicked.get();
        stats.slow_events = self.slow.get();
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

    /// Shows everything. The classic names in snake case, each with the loop's name as a label.
    pub(crate) fn observe(&self, stats: &Stats, state: u8, visit: &mut dyn Visit) {
        let label = [("loop", &*self.loop_name)];
        visit.gauge(
            "event_queue_size",
            "Events in line, without the one that runs.",
            &label,
            stats.queued as f64,
        );
        visit.gauge(
            "event_queue_deferred_size",
            "Events scheduled for later.",
            &label,
            stats.scheduled as f64,
        );
        let oldest = stats.oldest_age.as_secs_f64();
        visit.gauge(
            "event_queue_oldest_age_seconds",
            "How long the first event in line waits.",
            &label,
            oldest,
        );
        visit.gauge("controller_state", "What the loop is doing; 0 is idle.", &label, f64::from(state));
        let counters = [
            ("event_queue_operations_accepted", "Events accepted.", stats.accepted),
            ("event_queue_operations_started", "Events whose handler was called.", stats.started),
            ("event_queue_operations_done", "Events whose handler succeeded.", stats.done),
            ("event_queue_operations_failed", "Events whose handler failed or panicked.", stats.failed),
            ("event_queue_operations_panicked", "Events whose handler panicked.", stats.panicked),
            ("event_queue_slow_events", "Handlers that took longer than the limit.", stats.slow_events),
            ("event_queue_stale_events", "Events of a past epoch, not run.", stats.stale),
            (
                "event_queue_preempt_panics",
                "Panics in the callbacks of events not run.",
                stats.preempt_panics,
            ),
            ("event_queue_hook_panics", "Panics in the processor's hooks.", stats.hook_panics),
        ];
        for (name, help, value) in counters {
            visit.counter(name, help, &label, value);
        }
        for why in REASONS {
            let labels = [("loop", &*self.loop_name), ("reason", why.as_str())];
            let value = self.not_run.get(index(why)).map_or(0, Counter::get);
            visit.counter(
                "event_queue_operations_not_run",
                "Accepted events that did not run.",
                &labels,
                value,
            );
        }
        for (reason, value) in [("overload", stats.rejected_overload), ("closed", stats.rejected_closed)] {
            let labels = [("loop", &*self.loop_name), ("reason", reason)];
            visit.counter("event_queue_operations_rejected", "Events not accepted.", &labels, value);
        }
        self.observe_times(visit);
    }

    fn observe_times(&self, visit: &mut dyn Visit) {
        let label = [("loop", &*self.loop_name)];
        let help = "From the put, or from being due, to the start of the handler.";
        visit.histogram("event_queue_time_nanoseconds", help, &label, &self.queue_time.snapshot());
        let help = "Time in handlers.";
        let times = self.processing_time.snapshot();
        visit.histogram("event_queue_processing_time_nanoseconds", help, &label, &times);
        for state in self.states.iter().flatten() {
            let labels = [("loop", &*self.loop_name), ("state", state.state), ("metric", state.metric)];
            let help = "Time in handlers by state, with the state's rate-and-time metric.";
            visit.histogram("event_rate_and_time_nanoseconds", help, &labels, &state.times.snapshot());
        }
    }
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
