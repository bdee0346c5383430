//! All monitors of one manager: the core that both kinds of manager show.
//!
//! Targets lie in a slab, found by id through a map and by their timers through the place in the slab. One wheel
//! serves deadlines and requests. A timer never outlives its target: it is cancelled with it, so that registering and
//! leaving in quick succession holds no memory.

use crate::metrics::HeartbeatMetrics;
use crate::monitor::{HeartbeatMonitor, Judgement, LastHeartbeat, Liveness, MonitorState};
use crate::outcome::RpcOutcome;
use crate::spread::{Spread, following};
use crate::verdict::{Reason, Verdict};
use runtime_core::timer::{TimerKey, TimerWheel};
use runtime_core::{EpochMillis, Tick};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the owner has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<K, N> {
    /// Ask this target for a heartbeat, and report the outcome of the call.
    Request {
        /// The target.
        id: K,
        /// Which of its lives; the outcome is reported with it.
        incarnation: N,
    },
    /// React to the loss of a target, and stop monitoring it.
    Verdict(Verdict<K, N>),
}

/// What became of the wish to monitor a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monitored {
    /// It is monitored from now on.
    New,
    /// This life of it is monitored already, or was judged; nothing changed.
    Known,
    /// Another life of it was monitored; this one has taken its place and starts anew.
    Replaced,
    /// The manager is stopped; nothing changed.
    Stopped,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// The target's timeout starts anew.
    Applied,
    /// The target was judged before: noted for display, nothing revived.
    Settled,
    /// Its sender is not monitored: counted, not applied.
    UnknownTarget,
    /// Another life of its sender is monitored: counted, not applied.
    OtherIncarnation,
    /// The manager is stopped.
    Stopped,
}

/// What a manager is made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) peer: &'static str,
    pub(crate) timeout: Duration,
    pub(crate) threshold: Option<u32>,
    /// `None` for a manager that only answers.
    pub(crate) interval: Option<Duration>,
}

#[derive(Debug)]
struct Watched<K, N> {
    id: K,
    incarnation: N,
    monitor: HeartbeatMonitor,
    deadline: Option<TimerKey>,
    request: Option<TimerKey>,
}

/// What a timer is for, with the target's place in the slab.
#[derive(Debug, Clone, Copy)]
enum Due {
    Deadline(usize),
    FirstRequest(usize),
    Request { target: usize, at: Tick },
}

#[derive(Debug)]
pub(crate) struct Watch<K, N> {
    terms: Terms,
    by_id: BTreeMap<K, usize>,
    targets: Vec<Option<Watched<K, N>>>,
    free: Vec<usize>,
    wheel: TimerWheel<Due>,
    spread: Spread,
    stopped: bool,
    metrics: Arc<HeartbeatMetrics>,
}

impl<K: Clone + Ord, N: Clone + Eq> Watch<K, N> {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            by_id: BTreeMap::new(),
            targets: Vec::new(),
            free: Vec::new(),
            wheel: TimerWheel::new(),
            spread: Spread::default(),
            stopped: false,
            metrics: Arc::new(HeartbeatMetrics::new(terms.peer)),
        }
    }

    pub(crate) fn monitor_target(&mut self, id: K, incarnation: N, now: Tick) -> Monitored {
        if self.stopped {
            return Monitored::Stopped;
        }
        let known = self.watched(&id).map(|watched| watched.incarnation == incarnation);
        if known == Some(true) {
            return Monitored::Known;
        }
        self.unmonitor_target(&id);
        let target = self.free.pop().unwrap_or(self.targets.len());
        let deadline = Some(self.wheel.insert(now + self.terms.timeout, Due::Deadline(target)));
        let request = self.terms.interval.map(|_| self.wheel.insert(now, Due::FirstRequest(target)));
        let monitor = HeartbeatMonitor::new(now);
        let watched = Some(Watched { id: id.clone(), incarnation, monitor, deadline, request });
        match self.targets.get_mut(target) {
            Some(place) => *place = watched,
            None => self.targets.push(watched),
        }
        self.by_id.insert(id, target);
        self.metrics.targets.add(1);
        if known.is_some() { Monitored::Replaced } else { Monitored::New }
    }

    pub(crate) fn unmonitor_target(&mut self, id: &K) -> bool {
        let Some(target) = self.by_id.remove(id) else { return false };
        if let Some(mut watched) = self.targets.get_mut(target).and_then(Option::take) {
            watched.monitor.cancel();
            disarm(&mut self.wheel, &mut watched);
        }
        self.free.push(target);
        self.metrics.targets.add(-1);
        true
    }

    pub(crate) fn unmonitor_incarnation(&mut self, id: &K, incarnation: &N) -> bool {
        let same = self.watched(id).is_some_and(|watched| watched.incarnation == *incarnation);
        same && self.unmonitor_target(id)
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.metrics.targets.set(0);
        self.by_id = BTreeMap::new();
        self.targets = Vec::new();
        self.free = Vec::new();
        self.wheel = TimerWheel::new();
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn receive_heartbeat(
        &mut self,
        id: &K,
        incarnation: &N,
        now: Tick,
        wall: EpochMillis,
    ) -> Received {
        if self.stopped {
            return Received::Stopped;
        }
        let Some(watched) = watched_mut(&self.by_id, &mut self.targets, id) else {
            self.metrics.from_unknown.increment();
            return Received::UnknownTarget;
        };
        if watched.incarnation != *incarnation {
            self.metrics.from_other_incarnation.increment();
            return Received::OtherIncarnation;
        }
        watched.monitor.receive_heartbeat(now, wall);
        if watched.monitor.state() != MonitorState::Running {
            return Received::Settled;
        }
        self.metrics.received.increment();
        Received::Applied
    }

    pub(crate) fn rpc_outcome(
        &mut self,
        id: &K,
        incarnation: &N,
        outcome: RpcOutcome,
        now: Tick,
    ) -> Option<Verdict<K, N>> {
        let watched = watched_mut(&self.by_id, &mut self.targets, id)?;
        if watched.incarnation != *incarnation {
            self.metrics.from_other_incarnation.increment();
            return None;
        }
        self.metrics.outcome(outcome);
        if !watched.monitor.rpc_outcome(outcome, self.terms.threshold) {
            return None;
        }
        disarm(&mut self.wheel, watched);
        self.metrics.verdict(Reason::Unreachable);
        Some(verdict(self.terms.peer, watched, Reason::Unreachable, now))
    }

    pub(crate) fn advance(&mut self, now: Tick) -> Vec<Effect<K, N>> {
        let mut effects = Vec::new();
        while let Some(due) = self.wheel.pop_due(now) {
            effects.extend(match due {
                Due::Deadline(target) => self.judge(target, now).map(Effect::Verdict),
                Due::FirstRequest(target) => self.request(target, None, now),
                Due::Request { target, at } => self.request(target, Some(at), now),
            });
        }
        effects
    }

    pub(crate) fn next_wakeup(&self) -> Option<Tick> {
        self.wheel.next_wakeup()
    }

    pub(crate) fn last_heartbeat(&self, id: &K) -> LastHeartbeat {
        self.watched(id).map_or(LastHeartbeat::NotMonitored, |watched| watched.monitor.last_heartbeat())
    }

    pub(crate) fn liveness(&self, id: &K, now: Tick) -> Option<Liveness> {
        self.watched(id).map(|watched| watched.monitor.liveness(now))
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = (&K, &N)> + '_ {
        self.by_id.values().filter_map(|target| {
            self.targets.get(*target)?.as_ref().map(|watched| (&watched.id, &watched.incarnation))
        })
    }

    pub(crate) fn metrics(&self) -> Arc<HeartbeatMetrics> {
        Arc::clone(&self.metrics)
    }

    fn watched(&self, id: &K) -> Option<&Watched<K, N>> {
        self.targets.get(*self.by_id.get(id)?)?.as_ref()
    }

    /// Looks at a deadline that has come. A heartbeat in between has only moved `last_seen`; the timer moves here.
    fn judge(&mut self, target: usize, now: Tick) -> Option<Verdict<K, N>> {
        let watched = self.targets.get_mut(target)?.as_mut()?;
        watched.deadline = None;
        match watched.monitor.judge(now, self.terms.timeout) {
            Judgement::AliveUntil(at) => {
                watched.deadline = Some(self.wheel.insert(at, Due::Deadline(target)));
                None
            }
            Judgement::TimedOut => {
                disarm(&mut self.wheel, watched);
                self.metrics.verdict(Reason::Timeout);
                Some(verdict(self.terms.peer, watched, Reason::Timeout, now))
            }
            Judgement::Settled => None,
        }
    }

    fn request(&mut self, target: usize, due: Option<Tick>, now: Tick) -> Option<Effect<K, N>> {
        let interval = self.terms.interval?;
        let watched = self.targets.get_mut(target)?.as_mut()?;
        let at = match due {
            None => self.spread.second(now, interval),
            Some(due) => following(due, now, interval),
        };
        // At the end of time there is no later moment, and a timer at the present would fire for ever.
        watched.request = (at > now).then(|| self.wheel.insert(at, Due::Request { target, at }));
        self.metrics.requests.increment();
        Some(Effect::Request { id: watched.id.clone(), incarnation: watched.incarnation.clone() })
    }
}

fn watched_mut<'a, K: Ord, N>(
    by_id: &BTreeMap<K, usize>,
    targets: &'a mut [Option<Watched<K, N>>],
    id: &K,
) -> Option<&'a mut Watched<K, N>> {
    targets.get_mut(*by_id.get(id)?)?.as_mut()
}

fn disarm<K, N>(wheel: &mut TimerWheel<Due>, watched: &mut Watched<K, N>) {
    for timer in [watched.deadline.take(), watched.request.take()].into_iter().flatten() {
        wheel.cancel(timer);
    }
}

fn verdict<K: Clone, N: Clone>(
    peer: &'static str,
    watched: &Watched<K, N>,
    reason: Reason,
    now: Tick,
) -> Verdict<K, N> {
    Verdict {
        peer,
        id: watched.id.clone(),
        incarnation: watched.incarnation.clone(),
        reason,
        last_seen_age: watched.monitor.last_seen().map(|seen| now.since(seen)),
        monitored_for: now.since(watched.monitor.monitored_since()),
        consecutive_failures: watched.monitor.consecutive_failures(),
    }
}
