//! The scheduler's side of savepoints: beginning with one, and ending with one.

use std::collections::BTreeSet;
use std::time::Duration;

use wire::v1;

use super::regions::{FailOver, RegionPhase};
use super::{Effect, Now, Phase, Scheduler, Timer};
use crate::checkpoint::CompletedCheckpoint;
use crate::checkpoint::coordinator::{CheckpointEffect, Request, Saved};
use crate::counts::Counts;
use crate::status::JobStatus;

/// How long tasks that stand still have to end by themselves once their savepoint is complete. They do within
/// milliseconds, unless the word of it is lost.
const TASKS_END: Duration = Duration::from_secs(2);

/// What a job begins with: the splits of its input, and the savepoint of another one.
pub type Beginning = (Vec<v1::FileSplit>, Option<CompletedCheckpoint>);

impl Scheduler {
    /// Somebody wants a checkpoint or a savepoint; the answer is an effect.
    pub fn request_checkpoint(&mut self, request: Request, now: Now) {
        self.checkpoints.request(request);
        self.settle(now);
    }

    /// The job begins where another one has stopped, and counts on from it.
    pub(super) fn begin_with(&mut self, savepoint: CompletedCheckpoint, now: Now) {
        self.splits.adopt(&savepoint.finished_splits());
        if let Some(figures) = &savepoint.metadata.figures {
            self.earlier = Counts::default();
            self.earlier.keep_attempts(figures);
        }
        for execution in self.executions.iter_mut() {
            let (vertex, subtask) = execution.subtask();
            execution.base = savepoint.records(vertex, subtask);
        }
        self.checkpoints.adopt(savepoint, Vec::new());
        self.checkpoints.committed_again();
        self.checkpoints.restored(now);
    }

    /// A savepoint that ends the job is complete: from here on it cannot go back to an earlier checkpoint. Its output is
    /// made visible, which is remembered first.
    pub(super) fn saved(&mut self, saved: Saved, now: Now) {
        if self.phase != Phase::Active {
            let why = format!(
                "the job is {} meanwhile; the savepoint {} is complete",
                self.status.as_str(),
                saved.done.location
            );
            self.effects.push(Effect::Checkpoint(CheckpointEffect::Answer(saved.request, Err(why))));
            return;
        }
        // What was counted behind the barrier does not count.
        for execution in self.executions.iter_mut() {
            let (vertex, subtask) = execution.subtask();
            let parts = saved.metadata.vertices.iter().filter(|v| v.vertex == vertex.0);
            let part = parts.flat_map(|v| &v.subtasks).find(|s| s.subtask == subtask);
            if let Some(figures) = part.and_then(|part| part.snapshot.as_ref()?.figures.as_ref()) {
                let (calls, retries, timeouts) =
                    (execution.figures.calls, execution.figures.retries, execution.figures.timeouts);
                execution.figures.clone_from(figures);
                execution.figures.calls = calls.max(figures.calls);
                execution.figures.retries = retries.max(figures.retries);
                execution.figures.timeouts = timeouts.max(figures.timeouts);
                execution.base = v1::Figures::default();
            }
        }
        let staged = saved.staged.clone();
        self.phase = Phase::Saved(Some(Box::new(saved)));
        self.enter(JobStatus::Running, now);
        self.effects.push(Effect::Commit(staged));
    }

    /// The output up to the savepoint is visible, and the tasks may end; or it is not.
    pub(super) fn saved_is_visible(&mut self, result: Result<(), String>, now: Now) {
        let Phase::Saved(saved) = std::mem::replace(&mut self.phase, Phase::Active) else { return };
        match result {
            Ok(()) => {
                self.phase = Phase::Stopping(JobStatus::Finished);
                if let Some(saved) = saved {
                    let checkpoint = saved.done.checkpoint;
                    self.saved = Some((saved.request, saved.done));
                    self.effects.push(Effect::Checkpoint(CheckpointEffect::Confirm(checkpoint)));
                    self.timer_number += 1;
                    self.wake_at(Timer::TasksEnd(self.timer_number), now.tick + TASKS_END);
                }
            }
            Err(error) => {
                if let Some(saved) = saved {
                    let why = format!(
                        "the savepoint {} is complete, but the output up to it could not be made visible: {error}. The job \
                         has failed; one that is started from the savepoint makes that output visible first",
                        saved.done.location
                    );
                    self.effects.push(Effect::Checkpoint(CheckpointEffect::Answer(saved.request, Err(why))));
                }
                self.job_failed(format!("the output could not be made visible: {error}"), true, now);
            }
        }
    }

    /// Tasks that have not ended by themselves are stopped.
    pub(super) fn end_tasks(&mut self) {
        if self.phase == Phase::Stopping(JobStatus::Finished) {
            let members = self.regions.members(&self.regions.all());
            self.stop_attempts(&members);
        }
    }

    /// Once the job has ended with a savepoint, whoever asked for that hears of it.
    pub(super) fn answer_saved(&mut self) {
        if let Some((request, done)) = self.saved.take() {
            self.effects.push(Effect::Checkpoint(CheckpointEffect::Answer(request, Ok(done))));
        }
    }

    /// The job was drained for a savepoint that has failed: its sources begin again where its latest checkpoint stands.
    /// That is no failure of the job, and asks no restart strategy.
    pub(super) fn undrain(&mut self, cause: &str, now: Now) {
        if self.phase != Phase::Active {
            return;
        }
        tracing::warn!(cause, "a job that was drained begins again from its latest checkpoint");
        self.fail_over += 1;
        self.uncounted.insert(self.fail_over);
        let taking: BTreeSet<usize> = self.regions.select(super::regions::Region::takes_failures);
        let fail_over = FailOver { number: self.fail_over, at: now.tick };
        self.regions.set(&taking, RegionPhase::Stopping(fail_over));
        self.enter(JobStatus::Restarting, now);
    }
}
