//! What a task executor says about its slots, against what was promised.

use runtime_core::{AllocationId, InstanceId, JobId, ResourceId, Tick};

use super::{SlotManager, SlotState, Worker};

/// A slot in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedSlot {
    /// Which.
    pub index: u32,
    /// Whose.
    pub state: ReportedState,
}

/// Whose slot it is, by the task executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedState {
    /// Nobody's.
    Free,
    /// The job's, whether something runs in it or not.
    Held {
        /// The promise.
        allocation: AllocationId,
        /// Whose.
        job: JobId,
    },
}

impl SlotManager {
    /// The first report of a registration: the task executor's slots are known from now on. A registration before
    /// this one is forgotten with its slots.
    pub fn add_worker(
        &mut self,
        task_executor: ResourceId,
        instance: InstanceId,
        report: &[ReportedSlot],
        now: Tick,
    ) {
        let count = report.iter().map(|s| s.index as usize + 1).max().unwrap_or(0);
        let slots = vec![SlotState::Free; count];
        self.workers.insert(task_executor.clone(), Worker { instance, slots, suspect: false });
        self.report(&task_executor, instance, report, now);
        self.check(now);
    }

    /// A later report. An allocated slot that is free there is free (its allocation went back); a pending one that is
    /// free there is on its way and is left alone; a pending or unknown allocation that is held there is allocated.
    /// Says whether anything changed.
    pub fn report(
        &mut self,
        task_executor: &ResourceId,
        instance: InstanceId,
        report: &[ReportedSlot],
        now: Tick,
    ) -> bool {
        let Some(worker) = self.workers.get_mut(task_executor).filter(|w| w.instance == instance) else {
            return false;
        };
        let mut changed = false;
        for reported in report {
            let Some(slot) = worker.slots.get_mut(reported.index as usize) else { continue };
            let next = match (reported.state, *slot) {
                (ReportedState::Free, SlotState::Allocated { .. }) => SlotState::Free,
                (ReportedState::Free, same) => same,
                (ReportedState::Held { allocation, job }, _) => SlotState::Allocated { allocation, job },
            };
            changed |= next != *slot;
            *slot = next;
        }
        if changed {
            self.check(now);
        }
        changed
    }
}
