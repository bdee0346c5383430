//! The two kinds of manager: the passive one answers, the active one also asks.

use crate::frame::LivenessFrame;
use crate::health::LocalHealth;
use crate::liveness::Liveness;
use crate::metrics::HeartbeatMetrics;
use crate::monitor::LastHeartbeat;
use crate::outcome::CallEnd;
use crate::stamp::HeartbeatHandle;
use crate::verdict::Verdict;
use crate::watch::{Effect, Monitored, Received, Watch};
use runtime_core::{EpochMillis, Incarnation, Tick};
use std::hash::Hash;
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
        impl<K: Clone + Eq + Hash, N: Clone + Eq> $manager<K, N> {
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

            /// What stamps this life of the target from any thread, without the manager and without a look-up. `None`
            /// if it is not monitored.
            #[must_use]
            pub fn handle(&self, id: &K) -> Option<HeartbeatHandle> {
                self.watch.handle(id)
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

            /// Notes a liveness frame: a sign of life that tells how the target's main loop is. One of another life, or
            /// one that is not newer than those before it, is counted and not applied.
            pub fn receive_frame(&mut self, id: &K, frame: &LivenessFrame<N>, now: Tick) -> Received {
                self.watch.receive_frame(id, frame, now)
            }

            /// Notes what became of a call to a target, an [`RpcOutcome`](crate::RpcOutcome) or a [`CallEnd`] that tells
            /// more. The verdict if that was one refused call too many. What belongs to a target that is not monitored,
            /// or to another life of it, is ignored.
            #[must_use = "a verdict is said once"]
            pub fn rpc_outcome(
                &mut self,
                id: &K,
                incarnation: &N,
                end: impl Into<CallEnd>,
                now: Tick,
            ) -> Option<Verdict<K, N>> {
                self.watch.rpc_outcome(id, incarnation, end.into(), now)
            }

            /// What is due by `now`, in order: targets to ask (where this manager asks), targets that are lost, that
            /// are suspects or no longer are, and what the owner should know of itself.
            #[must_use = "a verdict is said once"]
            pub fn advance(&mut self, now: Tick) -> Vec<Effect<K, N>> {
                self.watch.advance(now)
            }

            /// When to advance next: never later than the next thing that is due. `None`: nothing is monitored.
            #[must_use]
            pub fn next_wakeup(&self) -> Option<Tick> {
                self.watch.next_wakeup()
            }

            /// The owner stood still between the two, as is known by other means than a late
            /// [`advance`](Self::advance): a machine was suspended whose monotonic clock stood still too. Without
            /// `own_stall_guard` it changes nothing.
            pub fn stood_still(&mut self, from: Tick, to: Tick) {
                self.watch.stood_still(from, to);
            }

            /// The owner has probed something neutral, a store or another peer: if that is reachable, verdicts that
            /// are held as a correlated loss fall.
            pub fn probed(&mut self, reachable: bool, now: Tick) {
                self.watch.probed(reachable, now);
            }

            /// How well the owner itself has been of late.
            #[must_use]
            pub const fn local_health(&self) -> LocalHealth {
                self.watch.health()
            }

            /// Whether the target is alive with a doubt: it is to be given nothing new.
            #[must_use]
            pub fn is_suspect(&self, id: &K) -> bool {
                self.watch.is_suspect(id)
            }

            /// When a target was last heard (Flink: `getLastHeartbeatFrom`).
            #[must_use]
            pub fn last_heartbeat(&self, id: &K) -> LastHeartbeat {
                self.watch.last_heartbeat(id)
            }

            /// Says what the wall clock shows at `now`, for what is displayed. Only an owner that stamps through
            /// handles alone needs to.
            pub fn set_wall_clock(&mut self, now: Tick, wall: EpochMillis) {
                self.watch.anchor(now, wall);
            }

            /// What can be shown of a target; `None` if it is not monitored.
            #[must_use]
            pub fn liveness(&self, id: &K, now: Tick) -> Option<Liveness> {
                self.watch.liveness(id, now)
            }

            /// The targets in no particular order, those that were judged and not yet dropped included.
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
