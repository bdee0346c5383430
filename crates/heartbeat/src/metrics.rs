//! What a manager counts.

use crate::outcome::RpcOutcome;
use crate::verdict::Reason;
use runtime_core::metrics::{Counter, Gauge, Observe, Visit};

/// The counts of one manager; every metric carries the label `peer`, what its targets are.
#[derive(Debug)]
pub struct HeartbeatMetrics {
    peer: &'static str,
    /// Targets monitored now.
    pub targets: Gauge,
    /// Heartbeats that were applied.
    pub received: Counter,
    /// Heartbeats dropped because their sender is not monitored.
    pub from_unknown: Counter,
    /// Heartbeats and call outcomes dropped because they belong to another life of their sender.
    pub from_other_incarnation: Counter,
    /// Requests that came due.
    pub requests: Counter,
    /// Calls that were delivered.
    pub delivered: Counter,
    /// Calls that were refused.
    pub refused: Counter,
    /// Calls that failed otherwise.
    pub failed: Counter,
    /// Verdicts for silence.
    pub timeouts: Counter,
    /// Verdicts for refused calls.
    pub unreachables: Counter,
}

impl HeartbeatMetrics {
    pub(crate) const fn new(peer: &'static str) -> Self {
        Self {
            peer,
            targets: Gauge::new(),
            received: Counter::new(),
            from_unknown: Counter::new(),
            from_other_incarnation: Counter::new(),
            requests: Counter::new(),
            delivered: Counter::new(),
            refused: Counter::new(),
            failed: Counter::new(),
            timeouts: Counter::new(),
            unreachables: Counter::new(),
        }
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
        }
    }
}

impl Observe for HeartbeatMetrics {
    fn observe(&self, visit: &mut dyn Visit) {
        let peer = ("peer", self.peer);
        visit.gauge("heartbeat_targets", "Targets monitored now.", &[peer], self.targets.get() as f64);
        visit.counter("heartbeat_received", "Heartbeats applied.", &[peer], self.received.get());
        let ignored = "Heartbeats and call outcomes dropped.";
        for (why, count) in
            [("unknown", &self.from_unknown), ("other_incarnation", &self.from_other_incarnation)]
        {
            visit.counter("heartbeat_ignored", ignored, &[peer, ("reason", why)], count.get());
        }
        visit.counter("heartbeat_requests", "Requests that came due.", &[peer], self.requests.get());
        for (outcome, count) in
            [("delivered", &self.delivered), ("unreachable", &self.refused), ("other", &self.failed)]
        {
            visit.counter("heartbeat_calls", "Calls by outcome.", &[peer, ("outcome", outcome)], count.get());
        }
        for (reason, count) in [(Reason::Timeout, &self.timeouts), (Reason::Unreachable, &self.unreachables)]
        {
            let labels = [peer, ("reason", reason.as_str())];
            visit.counter("heartbeat_verdicts", "Targets declared dead.", &labels, count.get());
        }
    }
}
