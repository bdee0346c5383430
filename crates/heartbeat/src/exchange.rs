//! A manager together with its targets and its owner.
//!
//! The managers alone say *when*; an exchange also says *what to whom*: it keeps a target for each id, fetches payloads
//! from the listener and hands it those that come in, and brings it the verdicts. It still has no task: the calls it makes
//! are returned as futures, which the owner awaits where it likes, and whose outcomes it reports back.
//!
//! A callback that panics costs what it was called for and nothing else: the panic is caught and counted, and the other
//! targets are judged and asked all the same (in the original one such error ends the heartbeats of all).

use crate::frame::LivenessFrame;
use crate::listener::HeartbeatListener;
use crate::liveness::Liveness;
use crate::manager::{HeartbeatManager, HeartbeatManagerSender};
use crate::metrics::HeartbeatMetrics;
use crate::monitor::LastHeartbeat;
use crate::outcome::CallEnd;
use crate::stamp::HeartbeatHandle;
use crate::target::{Delivery, HeartbeatTarget};
use crate::verdict::{Reason, Verdict};
use crate::watch::{Effect, Monitored, Received, Watch};
use runtime_core::{EpochMillis, Incarnation, Tick};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A call on its way to a target. The owner awaits `delivery` and reports its outcome with
/// [`HeartbeatExchange::rpc_outcome`].
pub struct Call<K, N> {
    /// The target.
    pub id: K,
    /// Which of its lives.
    pub incarnation: N,
    /// Ends with what became of the call.
    pub delivery: Delivery,
}

impl<K: fmt::Debug, N: fmt::Debug> fmt::Debug for Call<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}

/// A manager of either kind with its targets `T` and its listener `L` (Flink: a `HeartbeatManager` as its owners use it,
/// being itself a `HeartbeatTarget` for what comes in).
#[derive(Debug)]
pub struct HeartbeatExchange<K, L, T, N = Incarnation> {
    own_id: K,
    watch: Watch<K, N>,
    targets: HashMap<K, T>,
    listener: L,
}

impl<K, L, T, N> HeartbeatExchange<K, L, T, N>
where
    K: Clone + Eq + Hash,
    N: Clone + Eq,
    L: HeartbeatListener<K, N>,
    T: HeartbeatTarget<K, L::Output>,
{
    /// The passive side, in the name of `own_id`.
    #[must_use]
    pub fn answering(own_id: K, manager: HeartbeatManager<K, N>, listener: L) -> Self {
        Self { own_id, watch: manager.into_watch(), targets: HashMap::new(), listener }
    }

    /// The active side, in the name of `own_id`.
    #[must_use]
    pub fn asking(own_id: K, manager: HeartbeatManagerSender<K, N>, listener: L) -> Self {
        Self { own_id, watch: manager.into_watch(), targets: HashMap::new(), listener }
    }

    /// The owner.
    #[must_use]
    pub const fn listener(&self) -> &L {
        &self.listener
    }

    /// The owner, to be changed.
    pub const fn listener_mut(&mut self) -> &mut L {
        &mut self.listener
    }

    /// Starts to monitor a target. For a life that is monitored already nothing changes, and `target` is dropped; another
    /// life brings its own target with it.
    pub fn monitor_target(&mut self, id: K, incarnation: N, target: T, now: Tick) -> Monitored {
        let monitored = self.watch.monitor_target(id.clone(), incarnation, now);
        if matches!(monitored, Monitored::New | Monitored::Replaced) {
            self.targets.insert(id, target);
        }
        monitored
    }

    /// Stops to monitor a target: no verdict will come. Says whether it was monitored.
    pub fn unmonitor_target(&mut self, id: &K) -> bool {
        self.targets.remove(id);
        self.watch.unmonitor_target(id)
    }

    /// A peer asks: notes the sign of life, reports what it brought, and answers. A request of somebody unknown, or of
    /// another life, is dropped: no report, no answer.
    #[must_use = "the answer is sent when its future is awaited"]
    pub fn request_heartbeat(
        &mut self,
        origin: &K,
        incarnation: &N,
        payload: Option<L::Input>,
        now: Tick,
        wall: EpochMillis,
    ) -> Option<Call<K, N>> {
        let received = self.watch.receive_heartbeat(origin, incarnation, now, wall);
        if !matches!(received, Received::Applied | Received::Settled) {
            return None;
        }
        if let Some(payload) = payload {
            self.shielded(|listener| listener.report_payload(origin, payload));
        }
        let answer = self.shielded(|listener| listener.retrieve_payload(origin)).flatten();
        let delivery = self.targets.get(origin)?.receive_heartbeat(&self.own_id, answer);
        Some(Call { id: origin.clone(), incarnation: incarnation.clone(), delivery })
    }

    /// A peer answers: notes the sign of life and reports what it brought, also from somebody unknown (the owner may know
    /// more than its manager), but not from another life.
    pub fn receive_heartbeat(
        &mut self,
        origin: &K,
        incarnation: &N,
        payload: Option<L::Input>,
        now: Tick,
        wall: EpochMillis,
    ) -> Received {
        let received = self.watch.receive_heartbeat(origin, incarnation, now, wall);
        let heard = matches!(received, Received::Applied | Received::Settled | Received::UnknownTarget);
        if let Some(payload) = payload.filter(|_| heard) {
            self.shielded(|listener| listener.report_payload(origin, payload));
        }
        received
    }

    /// A liveness frame came in: notes the sign of life and how the peer's main loop is.
    pub fn receive_frame(&mut self, origin: &K, frame: &LivenessFrame<N>, now: Tick) -> Received {
        self.watch.receive_frame(origin, frame, now)
    }

    /// What stamps this life of the target from any thread; `None` if it is not monitored.
    #[must_use]
    pub fn handle(&self, id: &K) -> Option<HeartbeatHandle> {
        self.watch.handle(id)
    }

    /// Notes what became of a [`Call`]; tells the listener if that was one refused call too many.
    pub fn rpc_outcome(&mut self, id: &K, incarnation: &N, end: impl Into<CallEnd>, now: Tick) {
        if let Some(verdict) = self.watch.rpc_outcome(id, incarnation, end.into(), now) {
            self.notify(&verdict);
        }
    }

    /// Does what is due by `now`: tells the listener who is lost, and returns the requests to be sent. Who is lost stays
    /// known until the owner calls [`unmonitor_target`](Self::unmonitor_target).
    #[must_use = "requests are sent when their futures are awaited"]
    pub fn advance(&mut self, now: Tick) -> Vec<Call<K, N>> {
        let mut calls = Vec::new();
        for effect in self.watch.advance(now) {
            match effect {
                Effect::Verdict(verdict) => self.notify(&verdict),
                Effect::Request { id, incarnation } => {
                    let payload = self.shielded(|listener| listener.retrieve_payload(&id)).flatten();
                    let Some(target) = self.targets.get(&id) else { continue };
                    let delivery = target.request_heartbeat(&self.own_id, payload);
                    calls.push(Call { id, incarnation, delivery });
                }
                Effect::Suspect { id, incarnation, .. } => {
                    self.shielded(|listener| listener.notify_suspect(&id, &incarnation));
                }
                Effect::Alive { id, incarnation } => {
                    self.shielded(|listener| listener.notify_alive(&id, &incarnation));
                }
                Effect::OwnStall(length) => {
                    self.shielded(|listener| listener.notify_own_stall(length));
                }
                Effect::CorrelatedLoss { dying, of, until } => {
                    self.shielded(|listener| listener.notify_correlated_loss(dying, of, until));
                }
            }
        }
        calls
    }

    /// The owner has probed something neutral; see [`HeartbeatManager::probed`].
    pub fn probed(&mut self, reachable: bool, now: Tick) {
        self.watch.probed(reachable, now);
    }

    /// Whether the target is alive with a doubt.
    #[must_use]
    pub fn is_suspect(&self, id: &K) -> bool {
        self.watch.is_suspect(id)
    }

    /// When to advance next.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        self.watch.next_wakeup()
    }

    /// When a target was last heard.
    #[must_use]
    pub fn last_heartbeat(&self, id: &K) -> LastHeartbeat {
        self.watch.last_heartbeat(id)
    }

    /// What can be shown of a target; `None` if it is not monitored.
    #[must_use]
    pub fn liveness(&self, id: &K, now: Tick) -> Option<Liveness> {
        self.watch.liveness(id, now)
    }

    /// The counts, shared: they can be shown while the owner works.
    #[must_use]
    pub fn metrics(&self) -> Arc<HeartbeatMetrics> {
        self.watch.metrics()
    }

    /// Forgets every target, for good.
    pub fn stop(&mut self) {
        self.watch.stop();
        self.targets.clear();
    }

    fn notify(&mut self, verdict: &Verdict<K, N>) {
        self.shielded(|listener| match verdict.reason {
            Reason::Timeout => listener.notify_heartbeat_timeout(verdict),
            Reason::Unreachable => listener.notify_target_unreachable(verdict),
            Reason::Stuck => listener.notify_target_stuck(verdict),
        });
    }

    /// Calls the listener; `None` if it panicked.
    fn shielded<R>(&mut self, call: impl FnOnce(&mut L) -> R) -> Option<R> {
        let listener = &mut self.listener;
        // What the listener left half done is its own; nothing here is touched while it runs.
        let result = catch_unwind(AssertUnwindSafe(|| call(listener)));
        if result.is_err() {
            self.watch.metrics().panics.increment();
        }
        result.ok()
    }
}
