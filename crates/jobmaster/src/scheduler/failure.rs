//! What follows from a failure: stop the regions that it hits, then restart them, or fail.

use std::collections::BTreeSet;

use runtime_core::{AllocationId, AttemptId, EpochMillis, ResourceId};

use super::regions::{FailOver, RegionPhase};
use super::{Effect, Now, Phase, Scheduler};
use crate::execution::Subtask;
use crate::restart::Decision;
use crate::status::{ExecutionState, JobStatus};

/// How many failures are kept (Flink: `jobmanager.execution.attempts-history-size`).
const FAILURE_HISTORY: usize = 16;

/// A failure as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureEntry {
    /// One sentence naming task, place and cause.
    pub text: String,
    /// When.
    pub at: EpochMillis,
    /// The task, where it was one.
    pub task: Option<String>,
    /// The task executor, where one is to be named.
    pub task_executor: Option<ResourceId>,
}

impl Scheduler {
    /// A task executor is gone, with its slots and its tasks.
    pub fn task_executor_lost(&mut self, task_executor: &ResourceId, cause: &str, now: Now) {
        self.pool.release_task_executor(task_executor);
        let lost = self.end_attempts(now, |e| e.task_executor == *task_executor);
        self.attempts_lost(&lost, task_executor, cause, now);
    }

    /// One slot is gone, with the tasks in it.
    pub fn slot_lost(&mut self, allocation: AllocationId, cause: &str, now: Now) {
        let Some(slot) = self.pool.release(allocation) else { return };
        let lost = self.end_attempts(now, |e| e.allocation == allocation);
        self.attempts_lost(&lost, &slot.task_executor, cause, now);
    }

    /// Ends the attempts there. Returns those that were still wanted.
    fn end_attempts(
        &mut self,
        now: Now,
        there: impl Fn(&crate::execution::Location) -> bool,
    ) -> Vec<AttemptId> {
        let mut lost = Vec::new();
        for execution in self.executions.iter_mut() {
            if execution.state.is_terminal() || !execution.location.as_ref().is_some_and(&there) {
                continue;
            }
            if execution.state == ExecutionState::Canceling {
                execution.state = ExecutionState::Canceled;
            } else {
                execution.state = ExecutionState::Failed;
                lost.push(execution.id);
            }
            execution.ended_at = Some(now.wall);
        }
        lost
    }

    fn attempts_lost(&mut self, lost: &[AttemptId], task_executor: &ResourceId, cause: &str, now: Now) {
        if let Some(attempt) = lost.first() {
            let entry = FailureEntry {
                text: format!("{} was lost: {cause}", self.describe(attempt)),
                at: now.wall,
                task: Some(self.task_name(attempt)),
                task_executor: Some(task_executor.clone()),
            };
            let regions = self.regions.with(&subtasks(lost));
            self.fail_over(entry, &regions, false, now);
        }
        self.settle(now);
    }

    /// Attempts have failed together, for one cause.
    pub(super) fn attempts_failed(
        &mut self,
        attempts: &[AttemptId],
        cause: &str,
        unrecoverable: bool,
        now: Now,
    ) {
        let mut failed = Vec::new();
        for attempt in attempts {
            let Some(execution) = self.executions.current_mut(attempt) else { continue };
            if execution.state.is_terminal() {
                continue;
            }
            execution.ended_at = Some(now.wall);
            if execution.state == ExecutionState::Canceling {
                execution.state = ExecutionState::Canceled;
            } else {
                execution.state = ExecutionState::Failed;
                failed.push(*attempt);
            }
            self.splits.ended(attempt);
        }
        let Some(attempt) = failed.first() else { return };
        let execution = self.executions.get((attempt.vertex, attempt.subtask));
        let entry = FailureEntry {
            text: format!("{} failed: {cause}", self.describe(attempt)),
            at: now.wall,
            task: Some(self.task_name(attempt)),
            task_executor: execution.and_then(|e| Some(e.location.as_ref()?.task_executor.clone())),
        };
        let regions = self.regions.with(&subtasks(&failed));
        self.fail_over(entry, &regions, unrecoverable, now);
    }

    /// These regions have failed as a whole: they have no slots, or their output cannot be made visible.
    pub(super) fn regions_failed(
        &mut self,
        regions: &BTreeSet<usize>,
        text: String,
        unrecoverable: bool,
        now: Now,
    ) {
        let entry = FailureEntry { text, at: now.wall, task: None, task_executor: None };
        self.fail_over(entry, regions, unrecoverable, now);
    }

    /// The job as a whole has failed.
    pub(super) fn job_failed(&mut self, text: String, unrecoverable: bool, now: Now) {
        let all = self.regions.all();
        self.regions_failed(&all, text, unrecoverable, now);
    }

    /// Stops these regions, to begin them again; or the job. Failures of regions that are being stopped already belong to
    /// the restart that is on its way (FLINK-33565), the others go on.
    fn fail_over(&mut self, entry: FailureEntry, regions: &BTreeSet<usize>, unrecoverable: bool, now: Now) {
        let text = entry.text.clone();
        if self.failures.len() == FAILURE_HISTORY {
            self.failures.pop_front();
        }
        self.failures.push_back(entry);
        let taking = self.regions.select(super::regions::Region::takes_failures);
        let affected: BTreeSet<usize> = match self.phase {
            // Sources that were told to end are to begin again with the others.
            Phase::Active if self.checkpoints.is_draining() => self.regions.all(),
            Phase::Active => regions.intersection(&taking).copied().collect(),
            Phase::Preparing | Phase::Recovering | Phase::Committing => self.regions.all(),
            Phase::Saved(_) | Phase::Stopping(_) | Phase::Sweeping(_) | Phase::Ended => return,
        };
        if affected.is_empty() && !unrecoverable {
            return;
        }
        let decision = if unrecoverable {
            Decision::Refuse("it would happen again".into())
        } else {
            self.restart.on_failure(now.tick, now.jitter)
        };
        match decision {
            Decision::RestartAt(at) | Decision::Join(at) => {
                if matches!(decision, Decision::RestartAt(_)) {
                    self.fail_over += 1;
                    self.uncounted.insert(self.fail_over);
                }
                self.phase = Phase::Active;
                self.enter(JobStatus::Restarting, now);
                self.checkpoints.abort(&format!("a task has failed: {text}"), now);
                let fail_over = FailOver { number: self.fail_over, at };
                self.regions.set(&affected, RegionPhase::Stopping(fail_over));
                let members = self.regions.members(&affected);
                self.stop_attempts(&members);
            }
            Decision::Refuse(why) => {
                self.failure = Some(format!("{text} (no restart: {why})"));
                self.enter(JobStatus::Failing, now);
                self.stop_job(JobStatus::Failed, now);
            }
        }
    }

    /// Stops everything, to end the job like this.
    pub(super) fn stop_job(&mut self, status: JobStatus, now: Now) {
        self.phase = Phase::Stopping(status);
        self.checkpoints.stop(now);
        let members = self.regions.members(&self.regions.all());
        self.stop_attempts(&members);
    }

    /// Tells these attempts to stop.
    pub(super) fn stop_attempts(&mut self, members: &[Subtask]) {
        for member in members {
            let Some(execution) = self.executions.get_mut(*member) else { continue };
            match (&execution.location, execution.state) {
                (_, state) if state.is_terminal() || state == ExecutionState::Canceling => {}
                (Some(location), _) => {
                    execution.state = ExecutionState::Canceling;
                    let task_executor = location.task_executor.clone();
                    self.effects.push(Effect::CancelTask { task_executor, attempt: execution.id });
                }
                (None, _) => execution.state = ExecutionState::Canceled,
            }
        }
    }

    /// `task 'source: flights -> plane' (1/2) on te-1`.
    pub(super) fn describe(&self, attempt: &AttemptId) -> String {
        let place = self
            .executions
            .of_vertex(attempt.vertex)
            .get(attempt.subtask as usize)
            .and_then(|e| e.location.as_ref())
            .map_or_else(String::new, |l| format!(" on {}", l.task_executor));
        format!("task {}{place}", self.task_name(attempt))
    }

    fn task_name(&self, attempt: &AttemptId) -> String {
        self.graph.vertices.get(attempt.vertex.0 as usize).map_or_else(
            || attempt.to_string(),
            |vertex| format!("`{}` ({}/{})", vertex.name, attempt.subtask + 1, vertex.parallelism),
        )
    }
}

fn subtasks(attempts: &[AttemptId]) -> Vec<Subtask> {
    attempts.iter().map(|attempt| (attempt.vertex, attempt.subtask)).collect()
}
