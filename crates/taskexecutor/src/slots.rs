//! The slots of a task executor: a pure state machine.
//!
//! Flink: `TaskSlotTable`. A slot is *free*, *allocated* (promised to a job, with a deadline), *active* (the job has
//! taken it) or *releasing* (given back while tasks still stop in it). Every slot that leaves an allocation is told
//! about once, so that the resource manager hears of it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use runtime_core::{AllocationId, AttemptId, JobId, Tick};

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Nobody's.
    Free,
    /// Promised to a job that has not yet taken it; free again at the deadline.
    Allocated {
        /// When it is free again.
        deadline: Tick,
    },
    /// The job's.
    Active,
    /// Given back; its last tasks are stopping.
    Releasing,
}

#[derive(Debug, Clone)]
struct Slot {
    state: SlotState,
    owner: Option<(AllocationId, JobId)>,
    tasks: BTreeSet<AttemptId>,
}

/// A slot as it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotView {
    /// Which.
    pub index: u32,
    /// What it is doing.
    pub state: SlotState,
    /// Whose it is, unless it is free.
    pub owner: Option<(AllocationId, JobId)>,
}

/// A slot that has become free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freed {
    /// Which.
    pub index: u32,
    /// What it was promised for.
    pub allocation: AllocationId,
    /// Whose it was.
    pub job: JobId,
}

/// Why a slot cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// There is no such slot here.
    #[error("there is no slot {index} here: there are {slots}")]
    Unknown {
        /// Which was asked for.
        index: u32,
        /// How many there are.
        slots: u32,
    },
    /// It belongs to another promise.
    #[error("slot {index} belongs to allocation {owner}")]
    Occupied {
        /// Which was asked for.
        index: u32,
        /// Whose it is.
        owner: AllocationId,
    },
    /// All slots are taken.
    #[error("none of the {slots} slots is free")]
    NoneFree {
        /// How many there are.
        slots: u32,
    },
    /// The promise stands already, for another job or another slot.
    #[error("allocation {allocation} stands already, for job {job} in slot {index}")]
    Conflict {
        /// The promise.
        allocation: AllocationId,
        /// Whose it is.
        job: JobId,
        /// Where.
        index: u32,
    },
    /// No slot is held under this promise.
    #[error("no slot is allocated as {allocation} for job {job}")]
    NotAllocated {
        /// The promise.
        allocation: AllocationId,
        /// Whose it should be.
        job: JobId,
    },
}

/// All slots of one task executor.
#[derive(Debug)]
pub struct SlotTable {
    slots: Vec<Slot>,
    timeout: Duration,
}

impl SlotTable {
    /// `slots` free slots; an allocated one that is not taken within `timeout` is free again
    /// (Flink: `taskmanager.slot.timeout`).
    #[must_use]
    pub fn new(slots: u32, timeout: Duration) -> Self {
        let free = Slot { state: SlotState::Free, owner: None, tasks: BTreeSet::new() };
        Self { slots: vec![free; slots as usize], timeout }
    }

    /// Promises a slot to a job; `index` of none lets the table choose. A repeated request gets the same slot.
    ///
    /// # Errors
    /// Nothing has changed when a slot cannot be given.
    pub fn allocate(
        &mut self,
        job: JobId,
        allocation: AllocationId,
        index: Option<u32>,
        now: Tick,
    ) -> Result<u32, SlotError> {
        if let Some((at, slot)) = self.find(allocation) {
            let same_job = slot.owner.is_some_and(|(_, owner)| owner == job);
            if same_job && index.is_none_or(|wanted| wanted == at) && slot.state != SlotState::Releasing {
                return Ok(at);
            }
            let job = slot.owner.map_or(job, |(_, owner)| owner);
            return Err(SlotError::Conflict { allocation, job, index: at });
        }
        let slots = self.count();
        let at = match index {
            Some(index) => index,
            None => self.first_free().ok_or(SlotError::NoneFree { slots })?,
        };
        let deadline = now + self.timeout;
        let slot = self.slots.get_mut(at as usize).ok_or(SlotError::Unknown { index: at, slots })?;
        if let Some((owner, _)) = slot.owner {
            return Err(SlotError::Occupied { index: at, owner });
        }
        slot.state = SlotState::Allocated { deadline };
        slot.owner = Some((allocation, job));
        Ok(at)
    }

    /// The job has taken its slot, by accepting the offer or by sending a task (FLINK-9932).
    ///
    /// # Errors
    /// When no slot is held under this promise.
    pub fn activate(&mut self, job: JobId, allocation: AllocationId) -> Result<(), SlotError> {
        let slot = self.find_mut(job, allocation)?;
        slot.state = SlotState::Active;
        Ok(())
    }

    /// A task begins in the job's slot, which makes the slot active.
    ///
    /// # Errors
    /// When no slot is held under this promise.
    pub fn add_task(&mut self, allocation: AllocationId, attempt: AttemptId) -> Result<(), SlotError> {
        let slot = self.find_mut(attempt.job, allocation)?;
        slot.state = SlotState::Active;
        slot.tasks.insert(attempt);
        Ok(())
    }

    /// A task has ended. Returns the slot if it was the last task of one that was given back.
    pub fn remove_task(&mut self, attempt: &AttemptId) -> Option<Freed> {
        for at in 0..self.slots.len() {
            let slot = self.slots.get_mut(at)?;
            if slot.tasks.remove(attempt) {
                let last = slot.state == SlotState::Releasing && slot.tasks.is_empty();
                return if last { self.clear(at) } else { None };
            }
        }
        None
    }

    /// Gives a slot back. Returns it when it is free at once, and the tasks that have to stop before it is.
    pub fn free(&mut self, allocation: AllocationId) -> (Option<Freed>, Vec<AttemptId>) {
        let Some((at, _)) = self.find(allocation) else { return (None, Vec::new()) };
        let Some(slot) = self.slots.get_mut(at as usize) else { return (None, Vec::new()) };
        if slot.tasks.is_empty() {
            return (self.clear(at as usize), Vec::new());
        }
        slot.state = SlotState::Releasing;
        (None, slot.tasks.iter().copied().collect())
    }

    /// The job has no master any more: its active slots wait for the next one, with a deadline. Returns the tasks
    /// that have to stop.
    pub fn job_master_lost(&mut self, job: JobId, now: Tick) -> Vec<AttemptId> {
        let deadline = now + self.timeout;
        let mut tasks = Vec::new();
        for slot in self.slots.iter_mut().filter(|s| s.owner.is_some_and(|(_, owner)| owner == job)) {
            tasks.extend(slot.tasks.iter().copied());
            if slot.state == SlotState::Active {
                slot.state = SlotState::Allocated { deadline };
            }
        }
        tasks
    }

    /// Frees the job's slots in which nothing runs and which it has not taken.
    pub fn free_inactive(&mut self, job: JobId) -> Vec<Freed> {
        self.clear_where(|slot| {
            slot.owner.is_some_and(|(_, owner)| owner == job)
                && matches!(slot.state, SlotState::Allocated { .. })
                && slot.tasks.is_empty()
        })
    }

    /// Frees what was promised and not taken in time.
    pub fn expire(&mut self, now: Tick) -> Vec<Freed> {
        self.clear_where(|slot| {
            matches!(slot.state, SlotState::Allocated { deadline } if deadline <= now)
                && slot.tasks.is_empty()
        })
    }

    /// When [`Self::expire`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Tick> {
        let deadline = |slot: &Slot| match slot.state {
            SlotState::Allocated { deadline } if slot.tasks.is_empty() => Some(deadline),
            _ => None,
        };
        self.slots.iter().filter_map(deadline).min()
    }

    /// The slots that the job is to be offered: promised to it, and not yet taken.
    pub fn to_offer(&self, job: JobId) -> Vec<(AllocationId, u32)> {
        self.views()
            .filter(|slot| matches!(slot.state, SlotState::Allocated { .. }))
            .filter_map(|slot| slot.owner.filter(|(_, owner)| *owner == job).map(|(id, _)| (id, slot.index)))
            .collect()
    }

    /// The job master's view of its slots here against ours: what it has and we have not is to be failed there; what
    /// is active here and unknown to it is to be freed here. A slot that is only allocated may be on its way to it.
    pub fn reconcile(&self, job: JobId, held: &[AllocationId]) -> Reconciled {
        let ours: BTreeMap<AllocationId, SlotState> = self
            .views()
            .filter_map(|slot| slot.owner.filter(|(_, owner)| *owner == job).map(|(id, _)| (id, slot.state)))
            .collect();
        Reconciled {
            fail_there: held.iter().filter(|id| !ours.contains_key(id)).copied().collect(),
            free_here: ours
                .iter()
                .filter(|(id, state)| **state == SlotState::Active && !held.contains(id))
                .map(|(id, _)| *id)
                .collect(),
        }
    }

    /// Whether the job has any slot here.
    #[must_use]
    pub fn holds(&self, job: JobId) -> bool {
        self.slots.iter().any(|slot| slot.owner.is_some_and(|(_, owner)| owner == job))
    }

    /// The job's tasks, with the promise of the slot that each runs in.
    pub fn tasks_of(&self, job: JobId) -> impl Iterator<Item = &AttemptId> {
        self.slots.iter().flat_map(|slot| slot.tasks.iter()).filter(move |attempt| attempt.job == job)
    }

    /// All slots by index.
    pub fn views(&self) -> impl Iterator<Item = SlotView> + '_ {
        (0..).zip(&self.slots).map(|(index, slot)| SlotView { index, state: slot.state, owner: slot.owner })
    }

    /// How many slots there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    fn first_free(&self) -> Option<u32> {
        self.views().find(|slot| slot.owner.is_none()).map(|slot| slot.index)
    }

    fn find(&self, allocation: AllocationId) -> Option<(u32, &Slot)> {
        (0..).zip(&self.slots).find(|(_, slot)| slot.owner.is_some_and(|(id, _)| id == allocation))
    }

    fn find_mut(&mut self, job: JobId, allocation: AllocationId) -> Result<&mut Slot, SlotError> {
        self.slots
            .iter_mut()
            .find(|slot| slot.owner == Some((allocation, job)) && slot.state != SlotState::Releasing)
            .ok_or(SlotError::NotAllocated { allocation, job })
    }

    fn clear(&mut self, at: usize) -> Option<Freed> {
        let slot = self.slots.get_mut(at)?;
        let (allocation, job) = slot.owner.take()?;
        slot.state = SlotState::Free;
        slot.tasks.clear();
        Some(Freed { index: u32::try_from(at).unwrap_or(u32::MAX), allocation, job })
    }

    fn clear_where(&mut self, wanted: impl Fn(&Slot) -> bool) -> Vec<Freed> {
        let places: Vec<usize> =
            self.slots.iter().enumerate().filter(|(_, slot)| wanted(slot)).map(|(at, _)| at).collect();
        places.into_iter().filter_map(|at| self.clear(at)).collect()
    }
}

/// What two views of a job's slots differ in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The job master believes that it has these.
    pub fail_there: Vec<AllocationId>,
    /// The job master does not know these.
    pub free_here: Vec<AllocationId>,
}
