//! The figures as an observer sees them: the classic names in snake case, each with the loop's name as a label.

use super::{Metrics, REASONS, index};
use crate::stats::Stats;
use runtime_core::Tick;
use runtime_core::metrics::{Counter, Histogram, Visit};

impl Metrics {
    /// Shows everything.
    pub(crate) fn observe(&self, stats: &Stats, state: u8, now: Tick, visit: &mut dyn Visit) {
        let label = [("loop", &*self.loop_name)];
        for (name, help, value) in [
            ("event_queue_size", "Events in line, without the one that runs.", stats.queued as f64),
            ("event_queue_deferred_size", "Events scheduled for later.", stats.scheduled as f64),
            (
                "event_queue_oldest_age_seconds",
                "How long the first event in line waits.",
                stats.oldest_age.as_secs_f64(),
            ),
            ("controller_state", "What the loop is doing; 0 is idle.", f64::from(state)),
            ("event_queue_avg_idle_ratio", "Share of the last minutes without an event.", stats.idle_ratio),
        ] {
            visit.gauge(name, help, &label, value);
        }
        for (name, help, value) in [
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
        ] {
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
        if let Some(slowest) = stats.slowest {
            let labels = [("loop", &*self.loop_name), ("event", slowest.name)];
            let help = "The slowest event of the window, by name.";
            visit.gauge("event_queue_slowest_event_seconds", help, &labels, slowest.took.as_secs_f64());
        }
        self.observe_times(now, visit);
    }

    fn observe_times(&self, now: Tick, visit: &mut dyn Visit) {
        let label = [("loop", &*self.loop_name)];
        let help = "From the put, or from being due, to the start of the handler.";
        visit.histogram("event_queue_time_nanoseconds", help, &label, &self.waiting(now));
        let help = "Time in handlers.";
        visit.histogram("event_queue_processing_time_nanoseconds", help, &label, &self.handling());
        if let Some(commits) = self.commits.get() {
            let help = "From the start of an event to the commit of what it wrote.";
            visit.histogram("event_commit_time_nanoseconds", help, &label, &commits.snapshot());
        }
        let forgotten = self.was_idle_for_long(now);
        for times in self.states.iter().flatten() {
            if let Some(waiting) = times.waiting.get().filter(|_| !forgotten) {
                let labels = [("loop", &*self.loop_name), ("state", times.state)];
                let help = "Time in the queue by the state of the event.";
                visit.histogram("event_queue_time_by_state_nanoseconds", help, &labels, &waiting.snapshot());
            }
            if let Some(metric) = times.metric {
                let labels = [("loop", &*self.loop_name), ("state", times.state), ("metric", metric)];
                let help = "Time in handlers by state, with the state's rate-and-time metric.";
                let handling = times.handling.get().map(Histogram::snapshot).unwrap_or_default();
                visit.histogram("event_rate_and_time_nanoseconds", help, &labels, &handling);
            }
        }
    }
}
