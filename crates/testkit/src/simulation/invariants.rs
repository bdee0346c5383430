//! What must hold at every moment, whatever befalls the cluster.
//!
//! Looked at from outside the roles: in what the job master publishes, life after life, and at the end in what the
//! resource manager describes.

use std::collections::BTreeMap;

use anyhow::ensure;
use jobmaster::{JobResult, JobView};
use runtime_core::{AllocationId, AttemptId, Epoch, ResourceId};
use wire::convert::WireId as _;
use wire::v1;

/// Watches one job.
#[derive(Debug, Default)]
pub struct Watch {
    term: Option<Epoch>,
    attempts: BTreeMap<(u32, u32), AttemptId>,
    ended: Option<String>,
    restarts: u64,
    checkpoints: u64,
}

impl Watch {
    /// Looks at a job.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn look(&mut self, view: &JobView) -> anyhow::Result<()> {
        for subtask in view.vertices.iter().flat_map(|vertex| &vertex.subtasks) {
            let attempt = subtask.attempt;
            if self.term.is_some_and(|term| attempt.term < term) {
                anyhow::bail!("the attempt {attempt} is of a term that is over");
            }
            if self.term != Some(attempt.term) {
                self.term = Some(attempt.term);
                self.attempts.clear();
            }
            let place = (attempt.vertex.0, attempt.subtask);
            if let Some(before) = self.attempts.insert(place, attempt) {
                ensure!(before.attempt <= attempt.attempt, "after the attempt {before} comes {attempt}");
            }
        }
        Ok(())
    }

    /// Looks at a job's result so far.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn look_at_result(&mut self, result: &JobResult) -> anyhow::Result<()> {
        if let Some(ended) = &self.ended {
            ensure!(*ended == result.state, "a job that was {ended} is {} now", result.state);
        }
        if matches!(result.state.as_str(), "FINISHED" | "FAILED" | "CANCELED") {
            self.ended = Some(result.state.clone());
        }
        let (restarts, checkpoints) = (result.restarts, result.checkpoints);
        ensure!(restarts >= self.restarts, "{restarts} restarts are known, {} were", self.restarts);
        ensure!(
            checkpoints >= self.checkpoints,
            "{checkpoints} checkpoints are known, {} were",
            self.checkpoints
        );
        (self.restarts, self.checkpoints) = (restarts, checkpoints);
        if result.state == "FINISHED" {
            let accounted = result.records_out + result.filtered + result.dropped + result.dead_letters;
            ensure!(result.records_in == accounted, "records are not accounted for: {result:?}");
        }
        Ok(())
    }
}

/// Checks that job master and resource manager see the same slots with the job, and that its tasks stand in them.
///
/// What the resource manager sees is what the task executors have reported in their last heartbeat.
///
/// # Errors
/// The views differ.
pub fn slots_agree(cluster: &v1::ClusterDescription, job: &JobView) -> anyhow::Result<()> {
    let mut seen = BTreeMap::new();
    for te in &cluster.task_executors {
        for slot in te.slot_status.iter().filter(|slot| slot.job_id == job.id.to_wire()) {
            let allocation = AllocationId::from_wire(&slot.allocation_id, "allocation_id")?;
            seen.insert(allocation, te.resource_id.parse::<ResourceId>()?);
        }
    }
    ensure!(seen == job.slots, "the job master holds {:?}, the task executors report {seen:?}", job.slots);
    for subtask in job.vertices.iter().flat_map(|vertex| &vertex.subtasks) {
        let place = subtask.task_executor.as_deref();
        ensure!(
            subtask.state.is_terminal() || seen.values().any(|te| Some(te.as_str()) == place),
            "the attempt {} is {:?} at {place:?}, where the job holds no slot: {seen:?}",
            subtask.attempt,
            subtask.state
        );
    }
    Ok(())
}

/// Checks that a cluster without jobs has all its slots free.
///
/// # Errors
/// A task executor is missing, or a slot is not free.
pub fn all_slots_free(
    cluster: &v1::ClusterDescription,
    task_executors: u32,
    slots: u32,
) -> anyhow::Result<()> {
    let known: Vec<_> = cluster.task_executors.iter().map(|te| te.resource_id.as_str()).collect();
    ensure!(known.len() == task_executors as usize, "of {task_executors} task executors there are {known:?}");
    for te in &cluster.task_executors {
        ensure!(te.slots == slots, "{} has {} slots, not {slots}", te.resource_id, te.slots);
        ensure!(
            te.free_slots == slots,
            "{} has only {} free slots: {:?}",
            te.resource_id,
            te.free_slots,
            te.slot_status
        );
    }
    Ok(())
}
