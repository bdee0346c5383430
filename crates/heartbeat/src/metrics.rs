//! What a manager counts.

use crate::outcome::RpcOutcome;
use crate::verdict::Reason;
use runtime_core::metrics::{Counter, Gauge, Histogram, Observe, Visit};

/// The counts of one manager, or of several that count together; every metric carries the label `peer`, what its targets are.
#[derive(Debug)]
pub struct HeartbeatMetrics {
    peer: &'static str,
    /// Targets monitored now.
    pub targets: Gauge,
    /// Suspects among them.
    pub suspects: Gauge,
    /// Heartbeats that were applied. They are counted when their target is next looked at, a timeout later at most: a
    /// heartbeat itself touches nothing that targets share.
    pub received: Counter,
    /// Heartbeats dropped because their sender is not monitored.
    pub from_unknown: Counter,
    /// Heartbeats and call outcomes dropped because they belong to another life of their sender.
    pub from_other_incarnation: Counter,
    /// Liveness frames dropped because a newer one had come.
    pub old_sequence: Counter,
    /// Between two heartbeats of one target, in nanoseconds: the longest since it was looked at before.
    pub gap: Histogram,
    /// From a request to the end of its call, in nanoseconds.
    pub rtt: Histogram,
    /// Requests that came due.
    pub requests: Counter,
    /// Calls that were delivered.
    pub delivered: Counter,
    /// Calls that were refused.
    pub refused: Counter,
    /// Calls that failed otherwise.
    pub failed: Counter,
    /// Targets that became suspects: they missed an answer or refused a call.
    pub missed: Counter,
    /// Verdicts for silence.
    pub timeouts: Counter,
    /// Verdicts for refused calls.
    pub unreachables: Counter,
    /// Verdicts for a loop that does not turn.
    pub stucks: Counter,
    /// Targets replaced by another life of them.
    pub replaced: Counter,
    /// Targets let go without a verdict.
    pub graceful: Counter,
    /// Times that verdicts were held because many fell silent together.
    pub holds: Counter,
    /// Stalls of the watcher itself.
    pub own_stalls: Counter,
    /// Their length, in milliseconds.
    pub own_stall_millis: Counter,
    /// Panics of the owner's callbacks, which were caught.
    pub panics: Counter,
}

impl HeartbeatMetrics {
    /// Counts that begin at 0. `peer` is what the targets are. Only for managers that are to count together
    /// ([`HeartbeatServices::counted_by`](crate::HeartbeatServices::counted_by)); any other has its own.
    #[must_use]
    pub fn new(peer: &'static str) -> Self {
        Self {
            peer,
            targets: Gauge::new(),
            suspects: Gauge::new(),
            received: Counter::new(),
            from_unknown: Counter::new(),
            from_other_incarnation: Counter::new(),
            old_sequence: Counter::new(),
            gap: Histogram::new(),
            rtt: Histogram::new(),
            requests: Counter::new(),
            delivered: Counter::new(),
            refused: Counter::new(),
            failed: Counter::new(),
            missed: Counter::new(),
            timeouts: Counter::new(),
            unreachables: Counter::new(),
            stucks: Counter::new(),
            replaced: Counter::new(),
            graceful: Counter::new(),
            holds: Counter::new(),
            own_stalls: Counter::new(),
            own_stall_millis: Counter::new(),
            panics: Counter::new(),
        }
    }

    /// What the targets are.
    #[must_use]
    pub const fn peer(&self) -> &'static str {
        self.peer
    }

    pub(crate) fn outcome(&self, outcome: RpcOutcome) {
        match outcome {
            RpcOutcome::Delivered => self.delivered.increment(),
            RpcOutcome::Unreachable => self.refused.increment(),
            RpcOutcome::Other => self.failed.increment(),
        }
    }

    pub(crate) fn verdict(&self, reason: Reason) {
        match reason {
            Reason::Timeout => self.timeouts.increment(),
            Reason::Unreachable => self.unreachables.increment(),
            Reason::Stuck => self.stucks.increment(),
        }
    }
}

impl Observe for HeartbeatMetrics {
    fn observe(&self, visit: &mut dyn Visit) {
        let peer = ("peer", self.peer);
        visit.gauge("heartbeat_targets", "Targets monitored now.", &[peer], self.targets.get() as f64);
        visit.gauge(
            "heartbeat_suspects",
            "Targets that are suspects now.",
            &[peer],
            self.suspects.get() as f64,
        );
        visit.counter("heartbeat_received", "Heartbeats applied.", &[peer], self.received.get());
        let ignored = "Heartbeats and call outcomes dropped.";
        for (why, count) in [
            ("unknown", &self.from_unknown),
            ("other_incarnation", &self.from_other_incarnation),
            ("old_sequence", &self.old_sequence),
        ] {
            visit.counter("heartbeat_ignored", ignored, &[peer, ("reason", why)], count.get());
        }
        visit.counter("heartbeat_requests", "Requests that came due.", &[peer], self.requests.get());
        for (outcome, count) in
            [("delivered", &self.delivered), ("unreachable", &self.refused), ("other", &self.failed)]
        {
            visit.counter("heartbeat_calls", "Calls by outcome.", &[peer, ("outcome", outcome)], count.get());
        }
        let missed = "Targets that became suspects.";
        visit.counter("heartbeat_missed", missed, &[peer], self.missed.get());
        for (reason, count) in [
            (Reason::Timeout.as_str(), &self.timeouts),
            (Reason::Unreachable.as_str(), &self.unreachables),
            (Reason::Stuck.as_str(), &self.stucks),
            ("replaced", &self.replaced),
            ("graceful", &self.graceful),
        ] {
            let ended = "Targets no longer monitored: declared dead, replaced, or let go.";
            visit.counter("heartbeat_verdicts", ended, &[peer, ("reason", reason)], count.get());
        }
        let holds = "Times that verdicts were held as a correlated loss.";
        visit.counter("heartbeat_holds", holds, &[peer], self.holds.get());
        let stalls = "Stalls of the watcher itself.";
        visit.counter("heartbeat_own_stalls", stalls, &[peer], self.own_stalls.get());
        let length = "Length of the stalls of the watcher itself.";
        visit.counter("heartbeat_own_stall_milliseconds", length, &[peer], self.own_stall_millis.get());
        let panics = "Panics of the owner's callbacks.";
        visit.counter("heartbeat_callback_panics", panics, &[peer], self.panics.get());
        let gap = "Between two heartbeats of one target.";
        visit.histogram("heartbeat_gap_nanoseconds", gap, &[peer], &self.gap.snapshot());
        let rtt = "From a request to the end of its call.";
        visit.histogram("heartbeat_rtt_nanoseconds", rtt, &[peer], &self.rtt.snapshot());
    }
}
