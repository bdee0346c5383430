//! Whom to start and whom to stop, so that there is what jobs need.

use runtime_core::{ResourceId, Tick};

use super::{Phase, PoolEffect, StopReason, WorkerPool};

impl WorkerPool {
    /// Brings the workers on their way to the number that is needed.
    pub(super) fn balance(&mut self, now: Tick) {
        if let Some(until) = self.recovering(now) {
            // Who has not come back by then does not count.
            self.check_by(until);
        }
        let told = self.full.take();
        let (wanted, coming) = (self.wanted(), self.coming(now));
        if coming > wanted {
            self.release(coming - wanted, now);
        } else if wanted > coming {
            self.request(wanted - coming, coming, now);
        }
        // Said once for each state of things, however often it is looked at.
        if let Some(text) = self.full.clone().filter(|text| told.as_ref() != Some(text)) {
            self.effects.push(PoolEffect::Full(text));
        }
    }

    /// How many workers should be on their way.
    fn wanted(&self) -> u32 {
        let demand = &self.demand;
        let needed = demand.in_use || demand.missing > 0;
        let reserve = if needed { self.options.redundant.saturating_mul(self.options.slots) } else { 0 };
        let short = demand.missing.saturating_add(reserve).saturating_sub(demand.free);
        short.div_ceil(self.options.slots.max(1))
    }

    /// How many are.
    fn coming(&self, now: Tick) -> u32 {
        let recovering = self.recovering(now).is_some();
        self.count(|phase| match phase {
            Phase::Requested | Phase::Allocated { .. } => true,
            Phase::Recovered { .. } => recovering,
            _ => false,
        })
    }

    fn recovering(&self, now: Tick) -> Option<Tick> {
        let any = self.workers.values().any(|phase| matches!(phase, Phase::Recovered { .. }));
        self.recovering_until.filter(|until| any && *until > now)
    }

    fn request(&mut self, short: u32, coming: u32, now: Tick) {
        if self.recovering(now).is_some() {
            return;
        }
        if let Some(at) = self.pace.paused_until(now) {
            self.check_by(at);
            return;
        }
        let room = self.room(coming);
        for _ in 0..short.min(room) {
            self.named += 1;
            // A name of letters and numbers is one.
            let Ok(id) = format!("{}-{}", self.name, self.named).parse::<ResourceId>() else { return };
            self.workers.insert(id.clone(), Phase::Requested);
            self.effects.push(PoolEffect::Start(id));
        }
        if room < short {
            self.full = Some(self.no_room(short - room));
        }
    }

    /// How many more there may be.
    fn room(&self, coming: u32) -> u32 {
        let options = &self.options;
        let workers = options.max.saturating_sub(self.count(|_| true));
        let slots = options.max_slots.map_or(u32::MAX, |most| {
            let taken = self.demand.total.saturating_add(coming.saturating_mul(options.slots));
            most.saturating_sub(taken) / options.slots.max(1)
        });
        workers.min(slots)
    }

    fn no_room(&self, short: u32) -> String {
        let options = &self.options;
        let limit = if self.count(|_| true) >= options.max {
            format!("worker.max ({}) workers run", options.max)
        } else {
            format!("another would bring more than slots.max ({}) slots", options.max_slots.unwrap_or(0))
        };
        format!(
            "jobs lack {} slots, which is {short} workers of {} slots, and {limit}; raise the limit, make room with \
             `tidegate cancel`, or run the job with a lower parallelism",
            self.demand.missing, options.slots
        )
    }

    /// Stops what was started for nothing: those that are not allocated, then those that have not registered, the youngest
    /// first. Nobody else (C-136).
    fn release(&mut self, surplus: u32, now: Tick) {
        let order = |phase: &Phase| match phase {
            Phase::Requested => Some(Tick::MAX),
            Phase::Allocated { since } => Some(*since),
            _ => None,
        };
        let mut unneeded: Vec<(Tick, ResourceId)> =
            self.workers.iter().filter_map(|(id, phase)| Some((order(phase)?, id.clone()))).collect();
        unneeded.sort_by(|a, b| b.cmp(a));
        for (_, id) in unneeded.into_iter().take(surplus as usize) {
            self.stop(&id, StopReason::NotNeeded, now);
        }
    }

    pub(super) fn registration_deadline(&self, phase: Phase) -> Option<Tick> {
        match phase {
            Phase::Allocated { since } | Phase::Recovered { since } | Phase::Left { since } => {
                Some(since + self.options.registration_timeout)
            }
            _ => None,
        }
    }

    /// Stops those that were due to register (C-131).
    pub(super) fn stop_unregistered(&mut self, now: Tick) {
        let late = |phase: &Phase| self.registration_deadline(*phase).is_some_and(|at| at <= now);
        let late: Vec<(ResourceId, Phase)> = self
            .workers
            .iter()
            .filter(|(_, phase)| late(phase))
            .map(|(id, phase)| (id.clone(), *phase))
            .collect();
        let within = self.options.registration_timeout;
        for (id, phase) in late {
            if matches!(phase, Phase::Allocated { .. }) {
                self.failed(format!("worker {id} has not registered within {within:?}"), now);
            }
            self.stop(&id, StopReason::NotRegistered(within), now);
        }
    }

    /// Those without a job, the one that has been so for longest first, and how many of them are kept.
    fn idle(&self) -> (Vec<(Tick, &ResourceId)>, usize) {
        let since = |phase: &Phase| match phase {
            Phase::Registered { idle, .. } => *idle,
            _ => None,
        };
        let mut idle: Vec<_> =
            self.workers.iter().filter_map(|(id, phase)| Some((since(phase)?, id))).collect();
        idle.sort();
        let kept = if self.demand.in_use || self.demand.missing > 0 { self.options.redundant } else { 0 };
        (idle, kept as usize)
    }

    pub(super) fn next_idle(&self) -> Option<Tick> {
        let (idle, kept) = self.idle();
        idle.first().filter(|_| idle.len() > kept).map(|(since, _)| *since + self.options.idle_timeout)
    }

    pub(super) fn stop_idle(&mut self, now: Tick) {
        let timeout = self.options.idle_timeout;
        let (idle, kept) = self.idle();
        let surplus = idle.len().saturating_sub(kept);
        let over = idle.into_iter().take(surplus).filter(|(since, _)| *since + timeout <= now);
        let over: Vec<ResourceId> = over.map(|(_, id)| id.clone()).collect();
        for id in over {
            self.stop(&id, StopReason::Idle(timeout), now);
        }
    }
}
