//! What `/metrics` shows of the workers.

use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::metrics::{Counter, Gauge, Observe, Visit};

/// The counts of a pool of workers.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    pub(crate) running: Gauge,
    pub(crate) pending: Gauge,
    pub(crate) missing_slots: Gauge,
    pub(crate) starts: Counter,
    pub(crate) start_failures: Counter,
    pub(crate) ends: Counter,
    pub(crate) stops: Counter,
    pub(crate) rejected: Counter,
    failures_per_second: AtomicU64,
}

impl WorkerMetrics {
    pub(crate) fn set_failures_per_second(&self, rate: f64) {
        // Relaxed: a metric orders nothing else.
        self.failures_per_second.store(rate.to_bits(), Ordering::Relaxed);
    }
}

impl Observe for WorkerMetrics {
    fn observe(&self, visit: &mut dyn Visit) {
        visit.gauge("workers_running", "Workers that have registered.", &[], self.running.get() as f64);
        let pending = "Workers that are wanted and have not registered yet.";
        visit.gauge("workers_pending", pending, &[], self.pending.get() as f64);
        let missing = "Slots that jobs need and do not have.";
        visit.gauge("worker_slots_missing", missing, &[], self.missing_slots.get() as f64);
        visit.counter("worker_starts", "Workers that were begun to be started.", &[], self.starts.get());
        let failed = "Workers that could not be started, or ended or were given up before they had settled.";
        visit.counter("worker_start_failures", failed, &[], self.start_failures.get());
        let rate = f64::from_bits(self.failures_per_second.load(Ordering::Relaxed));
        let help = "Failed starts of the last minute, by the second.";
        visit.gauge("worker_start_failures_per_second", help, &[], rate);
        visit.counter("worker_stops", "Workers that were stopped.", &[], self.stops.get());
        visit.counter("worker_ends", "Workers that have ended, stopped or not.", &[], self.ends.get());
        let rejected = "Registrations rejected because nobody here has started that task executor.";
        visit.counter("worker_registrations_rejected", rejected, &[], self.rejected.get());
    }
}
