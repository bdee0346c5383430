//! The owner of an exchange, as its manager calls it.

use crate::verdict::Verdict;

/// What an owner is told and asked (Flink: `HeartbeatListener`). Called on the owner's own loop, so it may change the
/// owner's state, and must not block.
pub trait HeartbeatListener<K, N> {
    /// What comes in with a heartbeat.
    type Input;
    /// What goes out with one.
    type Output;

    /// A target was silent for the whole timeout.
    fn notify_heartbeat_timeout(&mut self, verdict: &Verdict<K, N>);

    /// Too many calls in a row to a target were refused.
    fn notify_target_unreachable(&mut self, verdict: &Verdict<K, N>);

    /// A heartbeat brought something. Answers of senders that are not monitored are reported too, so unknown ids must be
    /// borne.
    fn report_payload(&mut self, id: &K, payload: Self::Input);

    /// What to send to this target, and to no other. `None` sends an empty heartbeat: whatever cannot be made in time is
    /// left out, for a payload must never cost the heartbeat.
    fn retrieve_payload(&mut self, id: &K) -> Option<Self::Output>;
}
