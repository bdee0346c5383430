//! What follows from a failure: stop everything, then restart, or fail.

use runtime_core::{AllocationId, AttemptId, EpochMillis, ResourceId};

use super::{Effect, Now, Phase, Scheduler, Then};
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
        self.after_loss(lost, task_executor, cause, now);
    }

    /// One slot is gone, with the tasks in it.
    pub fn slot_lost(&mut self, allocation: AllocationId, cause: &str, now: Now) {
        let Some(slot) = self.pool.release(allocation) else { return };
        let lost = self.end_attempts(now, |e| e.allocation == allocation);
        self.after_loss(lost, &slot.task_executor, cause, now);
    }

    /// Ends the attempts there. Returns the first that was still wanted.
    fn end_attempts(
        &mut self,
        now: Now,
        there: impl Fn(&crate::execution::Location) -> bool,
    ) -> Option<AttemptId> {
        let mut lost = None;
        for execution in self.executions.iter_mut() {
            if execution.state.is_terminal() || !execution.location.as_ref().is_some_and(&there) {
                continue;
            }
            if execution.state == ExecutionState::Canceling {
                execution.state = ExecutionState::Canceled;
            } else {
                execution.state = ExecutionState::Failed;
                lost = lost.or(Some(execution.id));
            }
            execution.ended_at = Some(now.wall);
        }
        lost
    }

    fn after_loss(&mut self, lost: Option<AttemptId>, task_executor: &ResourceId, cause: &str, now: Now) {
        match lost {
            Some(attempt) => {
                let text = format!("{} was lost: {cause}", self.describe(&attempt));
                let entry = FailureEntry {
                    text,
                    at: now.wall,
                    task: Some(self.task_name(&attempt)),
                    task_executor: Some(task_executor.clone()),
                };
                self.fail_over(entry, false, now);
            }
            None => self.attempt_over(now),
        }
    }

    /// An attempt has failed.
    pub(super) fn attempt_failed(&mut self, attempt: &AttemptId, cause: &str, unrecoverable: bool, now: Now) {
        let Some(execution) = self.executions.current_mut(attempt) else { return };
        if execution.state.is_terminal() {
            return;
        }
        execution.ended_at = Some(now.wall);
        if execution.state == ExecutionState::Canceling {
            execution.state = ExecutionState::Canceled;
            self.attempt_over(now);
            return;
        }
        execution.state = ExecutionState::Failed;
        let task_executor = execution.location.as_ref().map(|l| l.task_executor.clone());
        let text = format!("{} failed: {cause}", self.describe(attempt));
        let task = Some(self.task_name(attempt));
        self.fail_over(FailureEntry { text, at: now.wall, task, task_executor }, unrecoverable, now);
    }

    /// The job as a whole has failed: it has no slots, or its output cannot be made visible.
    pub(super) fn job_failed(&mut self, text: String, unrecoverable: bool, now: Now) {
        self.fail_over(
            FailureEntry { text, at: now.wall, task: None, task_executor: None },
            unrecoverable,
            now,
        );
    }

    fn fail_over(&mut self, entry: FailureEntry, unrecoverable: bool, now: Now) {
        let text = entry.text.clone();
        if self.failures.len() == FAILURE_HISTORY {
            self.failures.pop_front();
        }
        self.failures.push_back(entry);
        let deciding = matches!(
            self.phase,
            Phase::Preparing | Phase::WaitingForSlots | Phase::Executing | Phase::Committing
        );
        if !deciding {
            // Stopping already: this failure belongs to the one that is being dealt with.
            self.attempt_over(now);
            return;
        }
        let decision = if unrecoverable {
            Decision::Refuse("it would happen again".into())
        } else {
            self.restart.on_failure(now.tick, now.jitter)
        };
        let then = match decision {
            Decision::RestartAt(at) => {
                self.enter(JobStatus::Restarting, now);
                Then::RestartAt(at)
            }
            Decision::Refuse(why) => {
                self.failure = Some(format!("{text} (no restart: {why})"));
                self.enter(JobStatus::Failing, now);
                Then::Fail
            }
        };
        self.stop_attempts(then, now);
    }

    /// Tells every attempt to stop. Goes on at once where none runs.
    pub(super) fn stop_attempts(&mut self, then: Then, now: Now) {
        self.phase = Phase::Stopping(then);
        for execution in self.executions.iter_mut() {
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
        self.attempt_over(now);
    }

    /// `task 'source: flights -> plane' (1/2) on te-1`.
    fn describe(&self, attempt: &AttemptId) -> String {
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
