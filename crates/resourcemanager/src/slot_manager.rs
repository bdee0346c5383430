//! Which job gets which slot: a pure state machine.
//!
//! Flink: `DeclarativeSlotManager`. Jobs declare how many slots they need in all, task executors report what they have,
//! and after each change the two are matched anew. A slot is *pending* from the moment it is promised to a job until
//! its task executor confirms; what is pending counts as acquired, so that nothing is promised twice.

mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::SmallRng;
use runtime_core::{AllocationId, Epoch, InstanceId, JobId, ResourceId, Tick};

use crate::workers::Demand;
pub use report::{ReportedSlot, ReportedState};

/// A slot of a task executor as the resource manager sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Nobody's.
    Free,
    /// Promised; the task executor has not yet confirmed.
    Pending {
        /// The promise.
        allocation: AllocationId,
        /// To whom.
        job: JobId,
    },
    /// The job's.
    Allocated {
        /// The promise.
        allocation: AllocationId,
        /// Whose.
        job: JobId,
    },
}

impl SlotState {
    fn owner(self) -> Option<(AllocationId, JobId)> {
        match self {
            Self::Free => None,
            Self::Pending { allocation, job } | Self::Allocated { allocation, job } => {
                Some((allocation, job))
            }
        }
    }
}

/// A task executor with its slots.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its registration.
    pub instance: InstanceId,
    /// Its slots by index.
    pub slots: Vec<SlotState>,
    /// Whether it is under suspicion: it keeps what it has and gets nothing new.
    pub suspect: bool,
}

impl Worker {
    fn free(&self) -> usize {
        self.slots.iter().filter(|s| **s == SlotState::Free).count()
    }

    /// Whether no slot is a job's.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.free() == self.slots.len()
    }
}

/// What a job needs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needs {
    slots: u32,
    version: u64,
    job_master: JobMasterAddress,
    missing_since: Option<Tick>,
    told: bool,
    /// Its master is gone: what it needs stands for the next one, but nobody would take a slot now.
    masterless: bool,
}

/// Where a job's master is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMasterAddress {
    /// Its address.
    pub address: String,
    /// Its term.
    pub epoch: Epoch,
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask a task executor for a slot; answer with [`SlotManager::slot_requested`].
    RequestSlot {
        /// Whom.
        task_executor: ResourceId,
        /// Which of its registrations.
        instance: InstanceId,
        /// Which slot.
        index: u32,
        /// The promise.
        allocation: AllocationId,
        /// For whom.
        job: JobId,
        /// Whom the task executor is to offer it to.
        job_master: JobMasterAddress,
    },
    /// Tell a task executor that the job is over: slots in which nothing runs are to be freed.
    FreeInactiveSlots {
        /// Whom.
        task_executor: ResourceId,
        /// The job.
        job: JobId,
    },
    /// Tell a job that it will not get what it needs.
    NotEnoughResources {
        /// The job.
        job: JobId,
        /// What it needs.
        required: u32,
        /// What it has.
        acquired: u32,
    },
}

/// The slots of a cluster.
#[derive(Debug)]
pub struct SlotManager {
    workers: BTreeMap<ResourceId, Worker>,
    jobs: BTreeMap<JobId, Needs>,
    ids: SmallRng,
    effects: Vec<Effect>,
}

impl SlotManager {
    /// A cluster without task executors and jobs. `ids` draws the allocation ids.
    #[must_use]
    pub fn new(ids: SmallRng) -> Self {
        Self { workers: BTreeMap::new(), jobs: BTreeMap::new(), ids, effects: Vec::new() }
    }

    /// What is to be done now. Empties the list.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Forgets a task executor; what it held is to be found elsewhere. Says whether this registration was known.
    pub fn remove_worker(&mut self, task_executor: &ResourceId, instance: InstanceId, now: Tick) -> bool {
        if self.workers.get(task_executor).is_none_or(|w| w.instance != instance) {
            return false;
        }
        self.workers.remove(task_executor);
        self.check(now);
        true
    }

    /// Whether nothing new is to be placed there.
    pub fn set_suspect(&mut self, task_executor: &ResourceId, suspect: bool, now: Tick) {
        if let Some(worker) = self.workers.get_mut(task_executor) {
            worker.suspect = suspect;
            self.check(now);
        }
    }

    /// A job says all that it needs. An older declaration than the last one is void; a repeated one changes nothing.
    pub fn declare(&mut self, job: JobId, job_master: JobMasterAddress, version: u64, slots: u32, now: Tick) {
        if let Some(known) = self.jobs.get_mut(&job) {
            let same_term = known.job_master.epoch == job_master.epoch;
            if known.job_master.epoch > job_master.epoch || (same_term && known.version >= version) {
                if same_term && known.version == version && std::mem::take(&mut known.masterless) {
                    self.check(now);
                }
                return;
            }
        }
        if slots == 0 {
            self.forget_job(job);
        } else {
            let needs =
                Needs { slots, version, job_master, missing_since: None, told: false, masterless: false };
            self.jobs.insert(job, needs);
        }
        self.check(now);
    }

    /// A job's master is gone, the job perhaps not: nothing is promised to it until a master declares again. Otherwise
    /// its slots, freed because nobody takes them, would be promised to it again and again.
    pub fn job_master_gone(&mut self, job: JobId) {
        if let Some(needs) = self.jobs.get_mut(&job) {
            needs.masterless = true;
            needs.missing_since = None;
        }
    }

    /// A job is over: it needs nothing, and what it holds unused comes back.
    pub fn job_ended(&mut self, job: JobId, now: Tick) {
        self.forget_job(job);
        self.check(now);
    }

    fn forget_job(&mut self, job: JobId) {
        self.jobs.remove(&job);
        for (task_executor, worker) in &self.workers {
            if worker.slots.iter().any(|s| s.owner().is_some_and(|(_, owner)| owner == job)) {
                self.effects.push(Effect::FreeInactiveSlots { task_executor: task_executor.clone(), job });
            }
        }
    }

    /// A job has had no job master for as long as it may: if it still has none, it is taken to be over.
    /// Says whether it was.
    pub fn job_timed_out(&mut self, job: JobId, now: Tick) -> bool {
        let over = self.jobs.get(&job).is_some_and(|needs| needs.masterless);
        if over {
            self.job_ended(job, now);
        }
        over
    }

    /// The task executor's answer to a request. What was freed or confirmed meanwhile is left alone (FLINK-21874).
    pub fn slot_requested(&mut self, allocation: AllocationId, granted: bool, now: Tick) {
        for slot in self.workers.values_mut().flat_map(|w| w.slots.iter_mut()) {
            if let SlotState::Pending { allocation: pending, job } = *slot
                && pending == allocation
            {
                *slot = if granted { SlotState::Allocated { allocation, job } } else { SlotState::Free };
                if !granted {
                    self.check(now);
                }
                return;
            }
        }
    }

    /// A task executor says that a slot is free again.
    pub fn slot_available(
        &mut self,
        task_executor: &ResourceId,
        instance: InstanceId,
        index: u32,
        allocation: AllocationId,
        now: Tick,
    ) {
        let Some(worker) = self.workers.get_mut(task_executor).filter(|w| w.instance == instance) else {
            return;
        };
        let Some(slot) = worker.slots.get_mut(index as usize) else { return };
        if slot.owner().is_some_and(|(owner, _)| owner == allocation) {
            *slot = SlotState::Free;
            self.check(now);
        }
    }

    /// Tells the jobs that have lacked slots for longer than `grace`, each once for each declaration.
    pub fn tell_overdue(&mut self, now: Tick, grace: std::time::Duration) {
        let acquired = self.acquired();
        for (job, needs) in &mut self.jobs {
            if !needs.told && needs.missing_since.is_some_and(|since| now.since(since) >= grace) {
                needs.told = true;
                let acquired = acquired.get(job).copied().unwrap_or(0);
                self.effects.push(Effect::NotEnoughResources { job: *job, required: needs.slots, acquired });
            }
        }
    }

    /// When [`Self::tell_overdue`] has something to say next.
    #[must_use]
    pub fn next_overdue(&self, grace: std::time::Duration) -> Option<Tick> {
        self.jobs
            .values()
            .filter(|n| !n.told)
            .filter_map(|n| n.missing_since)
            .min()
            .map(|since| since + grace)
    }

    /// What jobs lack, and what there is for them.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let acquired = self.acquired();
        let lacking = self
            .jobs
            .iter()
            .filter(|(_, needs)| !needs.masterless)
            .map(|(job, needs)| needs.slots.saturating_sub(acquired.get(job).copied().unwrap_or(0)));
        let count = |slots: usize| u32::try_from(slots).unwrap_or(u32::MAX);
        Demand {
            missing: lacking.fold(0, u32::saturating_add),
            free: count(self.workers.values().filter(|w| !w.suspect).map(Worker::free).sum()),
            total: count(self.workers.values().map(|w| w.slots.len()).sum()),
            in_use: !acquired.is_empty(),
        }
    }

    /// The task executors and their slots.
    pub fn workers(&self) -> impl Iterator<Item = (&ResourceId, &Worker)> {
        self.workers.iter()
    }

    /// A task executor and its slots.
    #[must_use]
    pub fn worker(&self, task_executor: &ResourceId) -> Option<&Worker> {
        self.workers.get(task_executor)
    }

    fn acquired(&self) -> BTreeMap<JobId, u32> {
        let mut acquired = BTreeMap::new();
        for (_, job) in self.workers.values().flat_map(|w| &w.slots).filter_map(|s| s.owner()) {
            *acquired.entry(job).or_insert(0) += 1;
        }
        acquired
    }

    /// Matches what is missing with what is free.
    fn check(&mut self, now: Tick) {
        // Task executors come and go by the thousand, and while nobody needs their slots they are not counted each time.
        if self.jobs.is_empty() {
            return;
        }
        let acquired = self.acquired();
        let missing: Vec<(JobId, u32, JobMasterAddress)> = self
            .jobs
            .iter()
            .filter(|(_, needs)| !needs.masterless)
            .map(|(job, needs)| {
                let has = acquired.get(job).copied().unwrap_or(0);
                (*job, needs.slots.saturating_sub(has), needs.job_master.clone())
            })
            .collect();
        for (job, count, job_master) in missing {
            let mut left = count;
            while left > 0 && self.promise(job, &job_master) {
                left -= 1;
            }
            if let Some(needs) = self.jobs.get_mut(&job) {
                needs.missing_since = (left > 0).then(|| needs.missing_since.unwrap_or(now));
            }
        }
    }

    /// Promises one slot to the job: of the task executor with the most free ones, so that load spreads evenly.
    fn promise(&mut self, job: JobId, job_master: &JobMasterAddress) -> bool {
        let best = self
            .workers
            .iter_mut()
            .filter(|(_, worker)| !worker.suspect && worker.free() > 0)
            // Of equals the first: `max_by_key` would take the last.
            .min_by_key(|(_, worker)| {
                let jobs_here = worker.slots.iter().filter(|s| s.owner().is_some_and(|o| o.1 == job)).count();
                (jobs_here, usize::MAX - worker.free())
            });
        let Some((task_executor, worker)) = best else { return false };
        let Some(index) = worker.slots.iter().position(|s| *s == SlotState::Free) else { return false };
        let Some(slot) = worker.slots.get_mut(index) else { return false };
        let allocation = AllocationId::from_u128(self.ids.random());
        *slot = SlotState::Pending { allocation, job };
        self.effects.push(Effect::RequestSlot {
            task_executor: task_executor.clone(),
            instance: worker.instance,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            allocation,
            job,
            job_master: job_master.clone(),
        });
        true
    }
}
