//! All monitors of one manager: the core that both kinds of manager show.
//!
//! What is known of a target lies in four places, by how often it is touched: its stamp, which every heartbeat writes; its
//! name, which a heartbeat that comes by name is compared with; its timer, which the wheel moves; and the rest. All four have
//! the same number, the target's place, which the index finds by the id. A heartbeat by name touches three cache lines, and
//! once it has the first, the index's, the other two are fetched side by side. A target has one timer, armed for whichever is first of its next request, the end of its timeout and the moment
//! at which it becomes a suspect. A heartbeat moves no timer: one that finds a newer stamp is armed again for the remainder.
//!
//! Cost: a heartbeat is one look-up and one store; a target's timer is touched once or twice an interval; and a verdict
//! costs nothing but itself, except that under `hold` the first of many walks over all targets once.

mod answer;
mod effect;
mod look;
mod show;
mod targets;

pub use answer::{Monitored, Received};
pub use effect::Effect;

use crate::correlated::CorrelatedLoss;
use crate::detector::{Detector, Gaps};
use crate::frame::LivenessFrame;
use crate::health::LocalHealth;
use crate::index::Index;
use crate::metrics::HeartbeatMetrics;
use crate::monitor::HeartbeatMonitor;
use crate::options::HeartbeatOptions;
use crate::outcome::{CallEnd, RpcOutcome};
use crate::spread::Spread;
use crate::stall::OwnStallGuard;
use crate::stamp::{HeartbeatHandle, Stamp, Stamps};
use crate::verdict::{Reason, Verdict};
use crate::wheel::Wheel;
use runtime_core::{EpochMillis, Tick};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use targets::{Extra, Known, Rest, Targets};

/// What a manager is made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) peer: &'static str,
    /// Whether it asks, or only answers.
    pub(crate) asks: bool,
    pub(crate) threshold: Option<u32>,
    pub(crate) options: HeartbeatOptions,
}

impl Terms {
    fn suspect_after(&self) -> Duration {
        // Between 1.5 intervals, the longest silence of a healthy target (its first request and its second may be so far
        // apart), and 2, when a second answer would be missing.
        self.options.interval / 4 * 7
    }

    fn stuck_timeout(&self) -> Duration {
        self.options.stuck_timeout.unwrap_or(self.options.timeout)
    }
}

#[derive(Debug)]
pub(crate) struct Watch<K, N> {
    terms: Terms,
    index: Index,
    targets: Targets<K, N>,
    stamps: Stamps,
    wheel: Wheel,
    spread: Spread,
    guard: Option<OwnStallGuard>,
    loss: Option<CorrelatedLoss>,
    health: LocalHealth,
    /// When the interval began whose end lowers the score of `health`.
    round: Tick,
    running: usize,
    suspects: usize,
    stopped: bool,
    /// One moment on both clocks, to show the one as the other.
    anchor: (Tick, EpochMillis),
    metrics: Arc<HeartbeatMetrics>,
}

impl<K: Clone + Eq + Hash, N: Clone + Eq> Watch<K, N> {
    pub(crate) fn new(terms: Terms, metrics: Arc<HeartbeatMetrics>) -> Self {
        let HeartbeatOptions { interval, timeout, .. } = terms.options;
        Self {
            terms,
            index: Index::new(),
            targets: Targets::new(),
            stamps: Stamps::default(),
            wheel: Wheel::new(),
            spread: Spread::default(),
            guard: terms.options.own_stall_guard.then(|| OwnStallGuard::new(interval, timeout)),
            loss: terms.options.hold.then(|| CorrelatedLoss::new(interval, timeout)),
            health: LocalHealth::default(),
            round: Tick::ZERO,
            running: 0,
            suspects: 0,
            stopped: false,
            anchor: (Tick::ZERO, EpochMillis(0)),
            metrics,
        }
    }

    pub(crate) fn monitor_target(&mut self, id: K, incarnation: N, now: Tick) -> Monitored {
        if self.stopped {
            return Monitored::Stopped;
        }
        let known = self.known(&id).map(|known| known.incarnation == incarnation);
        if known == Some(true) {
            return Monitored::Known;
        }
        if known == Some(false) {
            self.drop_target(&id, true);
        }
        if self.wheel.is_empty()
            && let Some(guard) = &mut self.guard
        {
            guard.begin(now);
        }
        let hash = self.index.hash(&id);
        let adaptive = self.terms.options.detector == Detector::Adaptive;
        let gaps = adaptive.then(|| Gaps::new(self.terms.options.interval));
        let extra = gaps.map(|gaps| Box::new(Extra { gaps: Some(gaps), ..Extra::default() }));
        let request_at = if self.terms.asks { now } else { Tick::MAX };
        let rest = Rest { request_at, extra, monitor: HeartbeatMonitor::new() };
        let place = self.targets.insert(Known { id, incarnation }, rest);
        self.index.insert(hash, place);
        self.stamps.reach(place);
        if let Some(stamp) = self.stamps.get(place) {
            stamp.renew(now);
        }
        self.wheel.reach(place);
        // What is due first is seen when it is looked at, at once where it asks.
        self.wheel.arm(place, if self.terms.asks { now } else { now + self.first_look() });
        self.running += 1;
        self.metrics.targets.add(1);
        if known.is_some() { Monitored::Replaced } else { Monitored::New }
    }

    fn first_look(&self) -> Duration {
        let timeout = self.terms.options.timeout;
        if self.terms.options.suspicion { timeout.min(self.terms.suspect_after()) } else { timeout }
    }

    pub(crate) fn unmonitor_target(&mut self, id: &K) -> bool {
        self.drop_target(id, false)
    }

    fn drop_target(&mut self, id: &K, replaced: bool) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.index.remove(self.index.hash(id), place);
        self.disarm(place);
        if let Some(stamp) = self.stamps.get(place) {
            self.metrics.received.add(u64::from(stamp.take_beats().0));
            stamp.renew(Tick::ZERO);
        }
        if let Some(monitor) = self.targets.remove(place)
            && monitor.is_running()
        {
            self.cleared(monitor.is_suspect());
            self.running -= 1;
            if replaced { self.metrics.replaced.increment() } else { self.metrics.graceful.increment() }
        }
        self.metrics.targets.add(-1);
        true
    }

    /// One suspect fewer, if it was one.
    fn cleared(&mut self, was_suspect: bool) {
        self.suspects -= usize::from(was_suspect);
        self.metrics.suspects.add(-i64::from(was_suspect));
    }

    /// Takes a target's timer away. With the last one nobody is waited for, and no turn of the loop is late.
    fn disarm(&mut self, place: usize) {
        self.wheel.disarm(place);
        if self.wheel.is_empty()
            && let Some(guard) = &mut self.guard
        {
            guard.rest();
        }
    }

    pub(crate) fn unmonitor_incarnation(&mut self, id: &K, incarnation: &N) -> bool {
        let same = self.known(id).is_some_and(|known| known.incarnation == *incarnation);
        same && self.unmonitor_target(id)
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.uncount();
        // Handles of targets keep their stamps alive: they stamp no more.
        for (place, ..) in self.targets.iter() {
            if let Some(stamp) = self.stamps.get(place) {
                stamp.renew(Tick::ZERO);
            }
        }
        self.index = Index::new();
        self.targets = Targets::new();
        self.stamps = Stamps::default();
        self.wheel = Wheel::new();
        (self.running, self.suspects) = (0, 0);
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn handle(&self, id: &K) -> Option<HeartbeatHandle> {
        self.stamps.handle(self.place(id)?)
    }

    #[inline]
    pub(crate) fn receive_heartbeat(
        &mut self,
        id: &K,
        incarnation: &N,
        now: Tick,
        wall: EpochMillis,
    ) -> Received {
        self.anchor = (now, wall);
        self.stamp(id, incarnation, now, |stamp| {
            stamp.heard(now);
            true
        })
    }

    pub(crate) fn receive_frame(&mut self, id: &K, frame: &LivenessFrame<N>, now: Tick) -> Received {
        self.stamp(id, &frame.incarnation, now, |stamp| {
            stamp.heard_frame(frame.sequence, frame.main_loop_age, now)
        })
    }

    #[inline]
    fn stamp(&mut self, id: &K, incarnation: &N, now: Tick, write: impl FnOnce(&Stamp) -> bool) -> Received {
        let place = self.place(id);
        let found =
            place.and_then(|place| Some((place, self.targets.known(place)?, self.stamps.get(place)?)));
        let Some((place, known, stamp)) = found else { return self.unknown_sender() };
        if known.incarnation != *incarnation {
            self.metrics.from_other_incarnation.increment();
            return Received::OtherIncarnation;
        }
        if !write(stamp) {
            self.metrics.old_sequence.increment();
            return Received::OldSequence;
        }
        if stamp.is_watched_closely() {
            return self.heard_at_last(place, now);
        }
        Received::Applied
    }

    #[cold]
    fn unknown_sender(&self) -> Received {
        if self.stopped {
            return Received::Stopped;
        }
        self.metrics.from_unknown.increment();
        Received::UnknownTarget
    }

    /// A suspect or somebody who was judged is heard.
    #[cold]
    fn heard_at_last(&mut self, place: usize, now: Tick) -> Received {
        let Some(rest) = self.targets.rest(place).filter(|rest| rest.monitor.is_running()) else {
            return Received::Settled;
        };
        if rest.monitor.is_suspect() {
            // It is to be known at once that it is back.
            self.wheel.arm(place, now);
        }
        Received::Applied
    }

    pub(crate) fn rpc_outcome(
        &mut self,
        id: &K,
        incarnation: &N,
        end: CallEnd,
        now: Tick,
    ) -> Option<Verdict<K, N>> {
        let place = self.place(id)?;
        if self.targets.known(place)?.incarnation != *incarnation {
            self.metrics.from_other_incarnation.increment();
            return None;
        }
        let rest = self.targets.rest_mut(place)?;
        self.metrics.outcome(end.outcome);
        if let Some(took) = end.took {
            self.metrics.rtt.record_duration(took);
        }
        if end.outcome == RpcOutcome::Delivered {
            if let Some(extra) = &mut rest.extra {
                extra.last_error = None;
            }
        } else if end.error.is_some() {
            rest.extra.get_or_insert_default().last_error = end.error;
        }
        rest.monitor.count(end.outcome);
        if !rest.monitor.is_running() {
            return None;
        }
        let doubt = rest.monitor.consecutive_failures() > 0;
        let enough = end.outcome == RpcOutcome::Unreachable && rest.monitor.refused(self.terms.threshold);
        let held = self.guard.as_ref().is_some_and(|guard| guard.held_until() > now);
        if enough && !held {
            return self.verdict(place, Reason::Unreachable, None, now);
        }
        let changes = self.terms.options.suspicion && rest.monitor.is_suspect() != doubt;
        if changes || enough {
            self.wheel.arm(place, now);
        }
        None
    }

    pub(crate) fn next_wakeup(&self) -> Option<Tick> {
        let due = self.wheel.next_wakeup()?;
        let turn = self.guard.as_ref().and_then(OwnStallGuard::next_turn);
        Some(turn.map_or(due, |turn| due.min(turn)))
    }

    pub(crate) fn stood_still(&mut self, from: Tick, to: Tick) {
        let Some(guard) = &mut self.guard else { return };
        guard.stood_still(from, to);
        self.note_stall(to.since(from));
    }

    fn note_stall(&mut self, length: Duration) {
        self.health.worsen();
        self.metrics.own_stalls.increment();
        self.metrics.own_stall_millis.add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    }

    pub(crate) fn probed(&mut self, reachable: bool, now: Tick) {
        if !reachable {
            self.health.worsen();
        }
        if let Some(loss) = &mut self.loss {
            loss.probed(reachable, now);
        }
    }

    pub(crate) fn metrics(&self) -> Arc<HeartbeatMetrics> {
        Arc::clone(&self.metrics)
    }

    #[inline]
    fn place(&self, id: &K) -> Option<usize> {
        let is = |place| self.targets.known(place).is_some_and(|known| known.id == *id);
        self.index.find(self.index.hash(id), is)
    }

    fn known(&self, id: &K) -> Option<&Known<K, N>> {
        self.targets.known(self.place(id)?)
    }
}

impl<K, N> Watch<K, N> {
    /// Takes out of the gauges what this manager has added: others may count with it.
    fn uncount(&self) {
        self.metrics.targets.add(-(self.targets.iter().count() as i64));
        self.metrics.suspects.add(-(self.suspects as i64));
    }
}

impl<K, N> Drop for Watch<K, N> {
    fn drop(&mut self) {
        self.uncount();
    }
}
