//! The owner of an exchange, as its manager calls it.

use crate::verdict::Verdict;
use runtime_core::Tick;
use std::time::Duration;

/// What an owner is told and asked (Flink: `HeartbeatListener`). Called on the owner's own loop, so it may change the
/// owner's state, and must not block. One that panics costs what it was called for and nothing else.
pub trait HeartbeatListener<K, N> {
    /// What comes in with a heartbeat.
    type Input;
    /// What goes out with one.
    type Output;

    /// A target was silent for the whole timeout.
    fn notify_heartbeat_timeout(&mut self, verdict: &Verdict<K, N>);

    /// Too many calls in a row to a target were refused.
    fn notify_target_unreachable(&mut self, verdict: &Verdict<K, N>);

    /// A target's process answers, but its main loop has not turned for too long. A stuck component has to look dead, so
    /// this is a timeout unless the owner says otherwise.
    fn notify_target_stuck(&mut self, verdict: &Verdict<K, N>) {
        self.notify_heartbeat_timeout(verdict);
    }

    /// A target missed an answer or refused a call: it is to be given nothing new.
    fn notify_suspect(&mut self, _id: &K, _incarnation: &N) {}

    /// A suspect was heard again.
    fn notify_alive(&mut self, _id: &K, _incarnation: &N) {}

    /// The owner itself stood still for this long; it counts as nobody's silence.
    fn notify_own_stall(&mut self, _length: Duration) {}

    /// So many of the targets would be declared dead within an interval; the verdicts are held until then.
    fn notify_correlated_loss(&mut self, _dying: usize, _of: usize, _until: Tick) {}

    /// A heartbeat brought something. Answers of senders that are not monitored are reported too, so unknown ids must be
    /// borne.
    fn report_payload(&mut self, id: &K, payload: Self::Input);

    /// What to send to this target, and to no other. `None` sends an empty heartbeat: whatever cannot be made in time is
    /// left out, for a payload must never cost the heartbeat.
    fn retrieve_payload(&mut self, id: &K) -> Option<Self::Output>;
}
