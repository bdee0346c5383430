//! The scheduler's side of checkpoints: who takes part, and what follows from their ends.

use runtime_core::{AttemptId, ResourceId, Tick};
use wire::v1;

use super::{Effect, Now, Phase, Scheduler, Timer};
use crate::checkpoint::coordinator::{CheckpointEffect, Part, Participant, Plan, WriteFailure};
use crate::status::{ExecutionState, JobStatus};

impl Scheduler {
    /// A task's part of a checkpoint is written.
    pub fn acknowledged(
        &mut self,
        attempt: &AttemptId,
        checkpoint: u64,
        snapshot: v1::TaskSnapshot,
        now: Now,
    ) {
        let ack = self.checkpoints.acknowledge(attempt, checkpoint, snapshot, now);
        tracing::debug!(%attempt, checkpoint, ?ack, "a part of a checkpoint");
        self.settle(now);
    }

    /// A task cannot take part in a checkpoint.
    pub fn declined(&mut self, attempt: &AttemptId, checkpoint: u64, cause: &str, now: Now) {
        let named = self.describe(attempt);
        self.checkpoints.decline(attempt, checkpoint, &format!("{named}: {cause}"), now);
        self.settle(now);
    }

    /// A task executor could not be told of a checkpoint, or does not know a task of it.
    pub fn trigger_failed(
        &mut self,
        task_executor: &ResourceId,
        checkpoint: u64,
        cause: &str,
        unknown_task: bool,
        now: Now,
    ) {
        let cause = format!("{task_executor} was not told: {cause}");
        self.checkpoints.trigger_failed(checkpoint, cause, unknown_task, now);
        self.settle(now);
    }

    /// Checkpoint ids were reserved, or could not be.
    pub fn checkpoints_reserved(&mut self, up_to: u64, result: Result<(), String>, now: Now) {
        self.checkpoints.reserved(up_to, result, now);
        self.settle(now);
    }

    /// A checkpoint's metadata is written and remembered, or not.
    pub fn checkpoint_written(&mut self, checkpoint: u64, result: Result<(), WriteFailure>, now: Now) {
        self.checkpoints.written(checkpoint, result, now);
        self.settle(now);
    }

    /// A checkpoint's output is visible, or could not be made so.
    pub fn checkpoint_committed(&mut self, checkpoint: u64, result: Result<(), String>, now: Now) {
        self.checkpoints.committed(checkpoint, result, now);
        self.settle(now);
    }

    pub(super) fn expire_checkpoint(&mut self, checkpoint: u64, now: Now) {
        self.checkpoints.expire(checkpoint, now);
    }

    /// Begins a checkpoint if one is due and everybody can take part.
    pub(super) fn begin_checkpoint(&mut self, now: Now) {
        if self.phase != Phase::Active {
            if self.checkpoints.has_requests() {
                let why = format!("the job is {}, and only one that runs can be saved", self.status.as_str());
                self.checkpoints.refuse_requests(&why);
            }
            return;
        }
        if !self.checkpoints.is_due(now) {
            return;
        }
        match self.plan() {
            Some(plan) => self.checkpoints.begin(plan, now),
            // Tasks are on their way: whoever has asked waits for them a moment, and hears of it if they fail.
            None if self.checkpoints.has_requests() && self.regions.all_executing() => {}
            None => self.checkpoints.skip(now),
        }
    }

    /// Everybody runs or has finished, or there is no plan.
    pub(super) fn plan(&self) -> Option<Plan> {
        if self.phase != Phase::Active || !self.regions.all_executing() {
            return None;
        }
        let mut participants = Vec::new();
        for execution in self.executions.iter() {
            let part = match (execution.state, &execution.last, &execution.location) {
                (ExecutionState::Finished, Some(last), _) => Part::Finished(last.clone()),
                (ExecutionState::Running, _, Some(location)) => Part::Running(location.task_executor.clone()),
                _ => return None,
            };
            let source = execution.id.vertex.0 == 0;
            let resumed = source.then(|| self.splits.restored(execution.id.subtask)).flatten();
            participants.push(Participant {
                attempt: execution.id,
                base: execution.base.clone(),
                resumed: resumed.filter(|at| !self.splits.finished().contains(&at.split)),
                part,
            });
        }
        Some(Plan { frame: self.frame(), participants })
    }

    /// What is known of a checkpoint before it begins. The shell adds what the scheduler does not know: the job file.
    fn frame(&self) -> v1::CheckpointMetadata {
        let vertices = self.graph.vertices.iter().map(|vertex| v1::VertexSnapshot {
            vertex: vertex.id.0,
            operators: vertex.operators.iter().map(job::graph::OperatorSpec::name).collect(),
            parallelism: vertex.parallelism,
            subtasks: Vec::new(),
        });
        v1::CheckpointMetadata {
            job_name: self.graph.name.clone(),
            max_parallelism: self.graph.max_parallelism,
            vertices: vertices.collect(),
            splits: self.splits.all().cloned().collect(),
            finished_splits: self.splits.finished().iter().copied().collect(),
            figures: Some(v1::Figures {
                calls: self.earlier.calls,
                retries: self.earlier.retries,
                timeouts: self.earlier.timeouts,
                ..v1::Figures::default()
            }),
            ..v1::CheckpointMetadata::default()
        }
    }

    /// All tasks have finished: the output of a job without checkpoints is made visible, another one is ended by a last
    /// checkpoint.
    pub(super) fn end_if_all_have_finished(&mut self, now: Now) {
        if self.phase != Phase::Active || !self.regions.all_executing() || !self.executions.all_finished() {
            return;
        }
        if self.checkpoints.is_draining() {
            if let Some(plan) = self.plan() {
                self.checkpoints.begin(plan, now);
            }
        } else if self.checkpoints.has_something_to_answer() {
            // That comes first, of tasks that have finished.
        } else if !self.checkpoints.is_periodic() {
            self.phase = Phase::Committing;
            let last = self.executions.iter().filter_map(|e| e.last.as_ref());
            let staged = last.flat_map(|last| last.staged.iter().cloned()).collect();
            self.effects.push(Effect::Commit(staged));
        } else if self.checkpoints.has_ended_the_job() {
            self.ended(JobStatus::Finished, now);
        } else {
            self.checkpoints.request_last(now);
        }
    }

    /// Passes on what the coordinator wants. Returns whether that may have changed something here.
    pub(super) fn take_checkpoint_effects(&mut self, now: Now) -> bool {
        let effects = self.checkpoints.take_effects();
        let some = !effects.is_empty();
        for effect in effects {
            match effect {
                CheckpointEffect::FailJob(text) => {
                    let all = self.regions.all();
                    if self.phase == Phase::Active {
                        self.regions_failed(&all, text, false, now);
                    }
                }
                CheckpointEffect::Saved(saved) => self.saved(saved, now),
                CheckpointEffect::Undrain(cause) => self.undrain(&cause, now),
                CheckpointEffect::WakeAt(number, at) => self.wake_at(Timer::Checkpoint(number), at),
                CheckpointEffect::ExpireAt(id, at) => self.wake_at(Timer::CheckpointExpiry(id), at),
                CheckpointEffect::Confirm(checkpoint) => {
                    self.forget_committed(checkpoint);
                    self.effects.push(Effect::Checkpoint(CheckpointEffect::Confirm(checkpoint)));
                }
                other => self.effects.push(Effect::Checkpoint(other)),
            }
        }
        some
    }

    pub(super) fn wake_at(&mut self, timer: Timer, at: Tick) {
        self.effects.push(Effect::WakeAt(timer, at));
    }

    /// What finished tasks had staged is visible with this checkpoint, if it has their end.
    fn forget_committed(&mut self, checkpoint: u64) {
        let Some(latest) =
            self.checkpoints.latest().filter(|latest| latest.pointer.id == checkpoint).cloned()
        else {
            return;
        };
        for execution in self.executions.iter_mut() {
            let (vertex, subtask) = execution.subtask();
            if latest.subtask(vertex, subtask).is_some_and(|part| part.finished)
                && let Some(last) = &mut execution.last
            {
                last.staged.clear();
            }
        }
    }
}
