//! What can be shown of the targets. Nothing here changes how they are judged.

use super::Watch;
use crate::health::LocalHealth;
use crate::liveness::Liveness;
use crate::monitor::LastHeartbeat;
use crate::stamp::Stamp;
use runtime_core::{EpochMillis, Tick};
use std::hash::Hash;

impl<K: Clone + Eq + Hash, N: Clone + Eq> Watch<K, N> {
    pub(crate) const fn health(&self) -> LocalHealth {
        self.health
    }

    pub(crate) fn is_suspect(&self, id: &K) -> bool {
        self.place(id)
            .and_then(|place| self.targets.rest(place))
            .is_some_and(|rest| rest.monitor.is_suspect())
    }

    pub(crate) fn last_heartbeat(&self, id: &K) -> LastHeartbeat {
        let stamp = self.place(id).and_then(|place| self.stamps.get(place));
        stamp.map_or(LastHeartbeat::NotMonitored, |stamp| self.last_of(stamp))
    }

    fn last_of(&self, stamp: &Stamp) -> LastHeartbeat {
        if !stamp.is_heard() {
            return LastHeartbeat::NotYet;
        }
        // Whole milliseconds on both clocks, so that what is shown does not flicker.
        let millis = |tick: Tick| i64::try_from(tick.as_millis()).unwrap_or(i64::MAX);
        let (at, EpochMillis(wall)) = self.anchor;
        LastHeartbeat::At(EpochMillis(wall + millis(stamp.last_seen()) - millis(at)))
    }

    pub(crate) fn anchor(&mut self, now: Tick, wall: EpochMillis) {
        self.anchor = (now, wall);
    }

    pub(crate) fn liveness(&self, id: &K, now: Tick) -> Option<Liveness> {
        let place = self.place(id)?;
        let (rest, stamp) = (self.targets.rest(place)?, self.stamps.get(place)?);
        let silent_for = now.since(stamp.last_seen());
        let extra = rest.extra.as_deref();
        Some(Liveness {
            state: rest.monitor.state(),
            suspect: rest.monitor.is_suspect(),
            last_heartbeat: self.last_of(stamp),
            silent_for,
            consecutive_failures: rest.monitor.consecutive_failures(),
            last_error: extra.and_then(|extra| extra.last_error.clone()),
            main_loop_age: stamp.main_loop_age(),
            phi: extra.and_then(|extra| extra.gaps.as_ref()).map(|gaps| gaps.phi(silent_for)),
        })
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = (&K, &N)> + '_ {
        self.targets.iter().map(|(_, known, _)| (&known.id, &known.incarnation))
    }
}
