//! Checkpoints: tasks are told of them, and their answers passed on.

use std::collections::BTreeSet;

use runtime_core::{AttemptId, EpochMillis};
use wire::convert::attempt_id;
use wire::fencing::Fence;
use wire::v1::task_executor_to_job_master::Message;
use wire::{RpcError, v1};

use super::TaskExecutorProcessor;
use super::job::Established;
use crate::task::CheckpointAnswer;

impl TaskExecutorProcessor {
    /// A checkpoint has begun: every task that is to take part is told, or none. A task that has ended has said so, or is
    /// about to; one that is not here at all would be waited for in vain (FLINK-21246).
    pub(super) fn trigger_checkpoint(
        &mut self,
        request: &v1::TriggerCheckpointRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.check_running()?;
        let fence = Fence::of(request.fence.as_ref())?;
        let sender = Established { epoch: fence.epoch, incarnation: fence.incarnation };
        let attempts = request.attempts.iter().map(|id| attempt_id(Some(id), "attempts"));
        let attempts: Vec<AttemptId> = attempts.collect::<Result<_, _>>()?;
        for job in attempts.iter().map(|attempt| attempt.job).collect::<BTreeSet<_>>() {
            let established = self.jobs.get(&job).and_then(|known| known.established);
            if established.is_some() && established != Some(sender) {
                return Err(RpcError::fencing(format!(
                    "checkpoint {} of job {job} is from the job master of term {}, connected is another one",
                    request.checkpoint, fence.epoch
                )));
            }
        }
        let unknown: Vec<String> = attempts
            .iter()
            .filter(|attempt| !self.takes_part(attempt))
            .map(|attempt| format!("task {attempt}"))
            .collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            return Err(RpcError::unknown_target(format!("not here: {unknown}")));
        }
        let begun_at = EpochMillis(request.begun_at);
        for attempt in attempts {
            let Some(task) = self.jobs.get(&attempt.job).and_then(|job| job.tasks.get(&attempt)) else {
                continue;
            };
            match request.savepoint.clone() {
                Some(target) => task.handle.announce(request.checkpoint, target.into()),
                None => task.handle.trigger(request.checkpoint, begun_at),
            }
        }
        Ok(Self::ack())
    }

    fn takes_part(&self, attempt: &AttemptId) -> bool {
        let job = self.jobs.get(&attempt.job).filter(|job| job.established.is_some());
        job.is_some_and(|job| job.tasks.contains_key(attempt))
    }

    /// What came of a checkpoint in a task is told to its job master; not by a task that was stopped, whose part nobody may
    /// rely on.
    pub(super) fn checkpoint_answer(&mut self, answer: CheckpointAnswer) {
        let CheckpointAnswer { attempt, checkpoint, outcome } = answer;
        let Some(job) = self.jobs.get_mut(&attempt.job) else { return };
        let Some(task) = job.tasks.get(&attempt) else { return };
        if task.ended.is_some() || task.handle.is_cancelled() {
            tracing::debug!(%attempt, checkpoint, "a stopped task has answered a checkpoint");
            return;
        }
        let id = Some(attempt.into());
        job.say(match outcome {
            Ok(snapshot) => Message::CheckpointAcknowledged(v1::CheckpointAcknowledged {
                attempt: id,
                checkpoint,
                snapshot: Some(snapshot.into()),
            }),
            Err(cause) => {
                tracing::info!(%attempt, checkpoint, "the task {} declines a checkpoint: {cause}", task.name);
                let cause = format!("task {}: {cause}", task.name);
                Message::CheckpointDeclined(v1::CheckpointDeclined { attempt: id, checkpoint, cause })
            }
        });
    }
}
