//! The two kinds of manager: the passive one answers, the active one also asks.

use crate::metrics::HeartbeatMetrics;
use crate::monitor::{LastHeartbeat, Liveness};
use crate::outcome::RpcOutcome;
use crate::verdict::Verdict;
use crate::watch::{Effect, Monitored, Received, Watch};
use runtime_core::{EpochMillis, Incarnation, Tick};
use std::sync::Arc;

/// Watches targets that ask for heartbeats (Flink: `HeartbeatManagerImpl`). It never starts a call: its owner answers
/// what comes in, reports the outcomes of the answers, and is told who is lost.
///
/// `K` names a target, `N` tells its lives apart. Made by
/// [`HeartbeatServices::create_heartbeat_manager`](crate::HeartbeatServices::create_heartbeat_manager).
///
/// ```
/// use heartbeat::{HeartbeatServices, RpcOutcome, Received};
/// use runtime_core::{EpochMillis, Tick};
///
/// let services = HeartbeatServices::new(Default::default())?;
/// let mut masters = services.create_heartbeat_manager("job master");
/// masters.monitor_target("jm-1", 1, Tick::ZERO);
///
/// // A request came in: note it, answer, and report what became of the answer.
/// let now = Tick::from_millis(10);
/// assert_eq!(masters.receive_heartbeat(&"jm-1", &1, now, EpochMillis(10)), Received::Applied);
/// assert_eq!(masters.rpc_outcome(&"jm-1", &1, RpcOutcome::Unreachable, now), None);
/// let verdict = masters.rpc_outcome(&"jm-1", &1, RpcOutcome::Unreachable, now);
/// assert_eq!(
///     verdict.map(|v| v.to_string()).as_deref(),
///     Some("job master jm-1 is no longer reachable: 2 failed calls, last heard 0.0 s ago"),
/// );
/// # Ok::<(), heartbeat::OptionError>(())
/// ```
#[derive(Debug)]
pub struct HeartbeatManager<K, N = Incarnation> {
    watch: Watch<K, N>,
}

/// Watches targets by asking them (Flink: `HeartbeatManagerSenderImpl`): all that [`HeartbeatManager`] does, and says
/// when to ask whom.
///
/// A target is asked first at the next [`advance`](Self::advance) and then once an interval, at a place in it of its own. An
/// owner that comes late asks each target once and makes up for nothing, and leaves at least half an interval to the next request.
///
/// Made by
/// [`HeartbeatServices::create_heartbeat_manager_sender`](crate::HeartbeatServices::create_heartbeat_manager_sender).
#[derive(Debug)]
pub struct HeartbeatManagerSender<K, N = Incarnation> {
    watch: Watch<K, N>,
}

macro_rules! what_both_do {
    ($manager:ident) => {
        impl<K: Clone + Ord, N: Clone + Eq> $manager<K, N> {
            pub(crate) const fn new(watch: Watch<K, N>) -> Self {
                Self { watch }
            }

            pub(crate) fn into_watch(self) -> Watch<K, N> {
                self.watch
            }

            /// Starts to monitor a target; its timeout runs from `now`. For the same life of a target that is
            /// monitored it changes nothing, also if that was judged; another life takes the place of the old.
            pub fn monitor_target(&mut self, id: K, incarnation: N, now: Tick) -> Monitored {
                self.watch.monitor_target(id, incarnation, now)
            }

            /// Stops to monitor a target, whichever life of it: no verdict will come. Says whether it was monitored.
            pub fn unmonitor_target(&mut self, id: &K) -> bool {
                self.watch.unmonitor_target(id)
            }

            /// The same for this life of the target only, so that a late good-bye of an old life does not end the
            /// monitoring of the new one.
            pub fn unmonitor_incarnation(&mut self, id: &K, incarnation: &N) -> bool {
                self.watch.unmonitor_incarnation(id, incarnation)
            }

            /// Notes a sign of life, a request or an answer, at `now`; `wall` is for display. Queued heartbeats are to
            /// be noted before [`advance`](Self::advance) is called, for it judges by what it knows.
            pub fn receive_heartbeat(
                &mut self,
                id: &K,
                incarnation: &N,
                now: Tick,
                wall: EpochMillis,
            ) -> Received {
                self.watch.receive_heartbeat(id, incarnation, now, wall)
            }

            /// Notes what became of a call to a target. The verdict if that was one refused call too many. What belongs to
            /// a target that is not monitored, or to another life of it, is ignored.
            #[must_use = "a verdict is said once"]
            pub fn rpc_outcome(
                &mut self,
                id: &K,
                incarnation: &N,
                outcome: RpcOutcome,
                now: Tick,
            ) -> Option<Verdict<K, N>> {
                self.watch.rpc_outcome(id, incarnation, outcome, now)
            }

            /// When to advance next: never later than the next thing that is due. `None`: nothing is monitored.
            #[must_use]
            pub fn next_wakeup(&self) -> Option<Tick> {
                self.watch.next_wakeup()
            }

            /// When a target was last heard (Flink: `getLastHeartbeatFrom`).
            #[must_use]
            pub fn last_heartbeat(&self, id: &K) -> LastHeartbeat {
                self.watch.last_heartbeat(id)
            }

            /// What can be shown of a target; `None` if it is not monitored.
            #[must_use]
            pub fn liveness(&self, id: &K, now: Tick) -> Option<Liveness> {
                self.watch.liveness(id, now)
            }

            /// The targets by id, those that were judged and not yet dropped included.
            pub fn targets(&self) -> impl Iterator<Item = (&K, &N)> + '_ {
                self.watch.targets()
            }

            /// The counts, shared: they can be shown while the owner works.
            #[must_use]
            pub fn metrics(&self) -> Arc<HeartbeatMetrics> {
                self.watch.metrics()
            }

            /// Forgets every target, for good: later calls change nothing, and no verdict comes any more.
            pub fn stop(&mut self) {
                self.watch.stop();
            }

            /// Whether it was stopped.
            #[must_use]
            pub const fn is_stopped(&self) -> bool {
                self.watch.is_stopped()
            }
        }
    };
}

what_both_do!(HeartbeatManager);
what_both_do!(HeartbeatManagerSender);

impl<K: Clone + Ord, N: Clone + Eq> HeartbeatManager<K, N> {
    /// The targets whose timeout has come by `now`, by deadline.
    #[must_use = "a verdict is said once"]
    pub fn advance(&mut self, now: Tick) -> Vec<Verdict<K, N>> {
        let verdict = |effect| match effect {
            Effect::Verdict(verdict) => Some(verdict),
            // A manager without an interval has no requests.
            Effect::Request { .. } => None,
        };
        self.watch.advance(now).into_iter().filter_map(verdict).collect()
    }
}

impl<K: Clone + Ord, N: Clone + Eq> HeartbeatManagerSender<K, N> {
    /// What is due by `now`, in order: targets to ask, and targets that are lost.
    #[must_use = "a verdict is said once"]
    pub fn advance(&mut self, now: Tick) -> Vec<Effect<K, N>> {
        self.watch.advance(now)
    }
}
