//! What happens when a target's timer fires: it is judged, doubted, asked, and armed again.

use super::targets::Rest;
use super::{Effect, Watch};
use crate::correlated::Held;
use crate::spread::following;
use crate::stall::OwnStallGuard;
use crate::verdict::{OthersInTrouble, Reason, Verdict};
use runtime_core::Tick;
use std::hash::Hash;
use std::time::Duration;

/// How often a suspect is looked at in an interval: it may be heard through a handle, which tells nobody.
const LOOKS_AT_SUSPECT: u32 = 8;

/// How much later than its deadline a target is looked at again before it is judged, where own stalls are guarded against.
const SECOND_LOOK: Duration = Duration::from_millis(10);

/// What is to become of a target after it was looked at.
enum Look {
    /// It is gone, or was judged before.
    Settled,
    /// It is judged now.
    Dead { reason: Reason, held_for: Option<Duration> },
    /// It is alive until then at least.
    Alive(Tick),
}

impl<K: Clone + Eq + Hash, N: Clone + Eq> Watch<K, N> {
    pub(crate) fn advance(&mut self, now: Tick) -> Vec<Effect<K, N>> {
        let mut effects = Vec::new();
        self.look_at_oneself(now, &mut effects);
        while let Some(place) = self.wheel.pop_due(now) {
            match self.look(place, now, &mut effects) {
                Look::Settled => {}
                Look::Dead { reason, held_for } => {
                    effects.extend(self.verdict(place, reason, held_for, now).map(Effect::Verdict));
                }
                Look::Alive(until) => {
                    self.doubt(place, now, &mut effects);
                    self.ask(place, until, now, &mut effects);
                }
            }
        }
        effects
    }

    fn look_at_oneself(&mut self, now: Tick, effects: &mut Vec<Effect<K, N>>) {
        let Some(stall) = self.guard.as_mut().map(|guard| guard.turn(now)) else { return };
        if let Some(stall) = stall {
            self.note_stall(stall);
            self.round = now;
            effects.push(Effect::OwnStall(stall));
        } else if now.since(self.round) >= self.terms.options.interval {
            self.round = now;
            self.health.clean_round();
        }
    }

    /// Judges a target whose timer has fired. Everything that a heartbeat left to be done is done here.
    fn look(&mut self, place: usize, now: Tick, effects: &mut Vec<Effect<K, N>>) -> Look {
        let (Some(rest), Some(stamp)) = (self.targets.rest_mut(place), self.stamps.get(place)) else {
            return Look::Settled;
        };
        if !rest.monitor.is_running() {
            return Look::Settled;
        }
        let seen = stamp.last_seen();
        let (beats, gap) = stamp.take_beats();
        self.metrics.received.add(u64::from(beats));
        if let Some(gap) = gap {
            self.metrics.gap.record_duration(gap);
            if let Some(gaps) = rest.extra.as_mut().and_then(|extra| extra.gaps.as_mut()) {
                // What comes right behind another is the other half of one answer, and tells of no silence. The gap has ended
                // with the first half, a little before the second was seen.
                let options = &self.terms.options;
                let stalled = set_aside(self.guard.as_ref(), seen - gap - options.interval / 4, seen);
                if stalled.is_zero() && (options.interval / 4..=options.timeout).contains(&gap) {
                    gaps.record(gap);
                }
            }
        }
        let silence = now.since(seen).saturating_sub(set_aside(self.guard.as_ref(), seen, now));
        let limit = rest.limit(self.terms.options.timeout);
        let stuck = stamp.main_loop_age().is_some_and(|age| age >= self.terms.stuck_timeout());
        let reason = if rest.monitor.refused(self.terms.threshold) {
            Reason::Unreachable
        } else if silence >= limit {
            // Too short a stall to be seen as one leaves heartbeats unread too. So the owner first goes on for as long as it
            // is late, and a little; on time, that is the little.
            if self.guard.is_some() && !std::mem::replace(&mut rest.monitor.overdue, true) {
                return Look::Alive(now + (silence - limit) + SECOND_LOOK);
            }
            Reason::Timeout
        } else if stuck {
            Reason::Stuck
        } else {
            rest.monitor.overdue = false;
            return Look::Alive(self.next_look(limit, silence, now));
        };
        self.hold(place, reason, now, effects)
    }

    /// When a target that is alive has to be looked at again, requests apart.
    fn next_look(&self, limit: Duration, silence: Duration, now: Tick) -> Tick {
        let options = &self.terms.options;
        let mut next = limit - silence;
        if options.suspicion {
            let suspicious = self.health.lengthen(self.terms.suspect_after());
            let doubt = suspicious.checked_sub(silence).filter(|rest| !rest.is_zero());
            next = next.min(doubt.unwrap_or(options.interval / LOOKS_AT_SUSPECT));
        }
        now + next
    }

    /// Whether a verdict falls now.
    fn hold(&mut self, place: usize, reason: Reason, now: Tick, effects: &mut Vec<Effect<K, N>>) -> Look {
        if let Some(until) = self.guard.as_ref().map(OwnStallGuard::held_until).filter(|until| *until > now) {
            return Look::Alive(until);
        }
        // A refusal and a loop that says that it stands are evidence that the network works.
        if reason != Reason::Timeout {
            return Look::Dead { reason, held_for: None };
        }
        let wants_count = self.loss.as_ref().is_some_and(|loss| loss.wants_count(now));
        let dying = if wants_count { self.dying(now) } else { 0 };
        let held = self.loss.as_mut().map_or(Held::No(None), |loss| loss.ask(now, dying, self.running));
        match held {
            Held::No(held_for) => Look::Dead { reason, held_for },
            Held::Until { until, began } => {
                if began {
                    self.metrics.holds.increment();
                    effects.push(Effect::CorrelatedLoss { dying, of: self.running, until });
                }
                // A target whose verdict waits is asked more often: if the network comes back during the hold, it shall
                // be heard before the end.
                if let Some(rest) = self.targets.rest_mut(place).filter(|_| self.terms.asks) {
                    rest.request_at = rest.request_at.min(now + self.terms.options.interval / 4);
                }
                // Sooner than the end, for a probe may end the hold.
                Look::Alive(until.min(now + self.terms.options.interval / LOOKS_AT_SUSPECT))
            }
        }
    }

    /// How many targets would be declared dead within an interval if they stayed silent.
    fn dying(&self, now: Tick) -> usize {
        let options = &self.terms.options;
        let dying = |place: usize, rest: &Rest| {
            let Some(stamp) = self.stamps.get(place) else { return false };
            let seen = stamp.last_seen();
            let silence = now.since(seen).saturating_sub(set_aside(self.guard.as_ref(), seen, now));
            rest.monitor.is_running() && silence + options.interval >= rest.limit(options.timeout)
        };
        self.targets.iter().filter(|(place, _, rest)| dying(*place, rest)).count()
    }

    /// Raises a suspicion, or drops it.
    fn doubt(&mut self, place: usize, now: Tick, effects: &mut Vec<Effect<K, N>>) {
        if !self.terms.options.suspicion {
            return;
        }
        let (Some(rest), Some(stamp)) = (self.targets.rest_mut(place), self.stamps.get(place)) else {
            return;
        };
        let seen = stamp.last_seen();
        let silence = now.since(seen).saturating_sub(set_aside(self.guard.as_ref(), seen, now));
        let failures = rest.monitor.consecutive_failures();
        let suspicious = failures > 0 || silence >= self.health.lengthen(self.terms.suspect_after());
        if !rest.monitor.suspect(suspicious) {
            return;
        }
        stamp.watch_closely(suspicious);
        let Some(known) = self.targets.known(place) else { return };
        let (id, incarnation) = (known.id.clone(), known.incarnation.clone());
        if suspicious {
            self.suspects += 1;
            self.metrics.suspects.add(1);
            self.metrics.missed.increment();
            let silent_for = now.since(seen);
            effects.push(Effect::Suspect { id, incarnation, silent_for, consecutive_failures: failures });
        } else {
            self.cleared(true);
            effects.push(Effect::Alive { id, incarnation });
        }
    }

    /// Asks a target if that is due, and arms its timer.
    fn ask(&mut self, place: usize, until: Tick, now: Tick, effects: &mut Vec<Effect<K, N>>) {
        let Some(rest) = self.targets.rest_mut(place) else { return };
        let mut request_at = rest.request_at;
        if request_at <= now {
            let interval = self.terms.options.interval;
            request_at = if rest.monitor.asked {
                following(request_at, now, interval)
            } else {
                self.spread.second(now, interval)
            };
            rest.request_at = request_at;
            rest.monitor.asked = true;
            self.metrics.requests.increment();
            if let Some(known) = self.targets.known(place) {
                let (id, incarnation) = (known.id.clone(), known.incarnation.clone());
                effects.push(Effect::Request { id, incarnation });
            }
        }
        let next = until.min(request_at);
        // At the end of time there is no later moment, and a timer at the present would fire for ever.
        if next > now {
            self.wheel.arm(place, next);
        }
    }

    /// Takes a target out of RUNNING, with the evidence.
    pub(super) fn verdict(
        &mut self,
        place: usize,
        reason: Reason,
        held_for: Option<Duration>,
        now: Tick,
    ) -> Option<Verdict<K, N>> {
        let (rest, stamp) = (self.targets.rest_mut(place)?, self.stamps.get(place)?);
        let was_suspect = rest.monitor.is_suspect();
        if !rest.monitor.leave(reason.state()) {
            return None;
        }
        stamp.watch_closely(true);
        self.metrics.verdict(reason);
        self.running -= 1;
        // As `cleared` does, which cannot be called while the target is looked at.
        self.suspects -= usize::from(was_suspect);
        self.metrics.suspects.add(-i64::from(was_suspect));
        self.metrics.received.add(u64::from(stamp.take_beats().0));
        let seen = stamp.last_seen();
        let own_stall = set_aside(self.guard.as_ref(), seen, now);
        let others = OthersInTrouble { suspects: self.suspects, of: self.running };
        let (known, rest) = (self.targets.known(place)?, self.targets.rest(place)?);
        let verdict = Verdict {
            peer: self.terms.peer,
            id: known.id.clone(),
            incarnation: known.incarnation.clone(),
            reason,
            last_seen_age: stamp.is_heard().then(|| now.since(seen)),
            silent_for: now.since(seen),
            consecutive_failures: rest.monitor.consecutive_failures(),
            last_error: rest.extra.as_ref().and_then(|extra| extra.last_error.clone()),
            own_stall,
            others_in_trouble: self.terms.options.suspicion.then_some(others),
            held_for,
            main_loop_age: stamp.main_loop_age(),
        };
        self.disarm(place);
        Some(verdict)
    }
}

impl Rest {
    /// The silence after which this target is dead.
    fn limit(&self, timeout: Duration) -> Duration {
        let gaps = self.extra.as_ref().and_then(|extra| extra.gaps.as_ref());
        gaps.map_or(timeout, |gaps| gaps.limit(timeout))
    }
}

fn set_aside(guard: Option<&OwnStallGuard>, from: Tick, to: Tick) -> Duration {
    guard.map_or(Duration::ZERO, |guard| guard.set_aside(from, to))
}
