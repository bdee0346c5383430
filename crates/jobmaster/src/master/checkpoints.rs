//! Carrying out what checkpoints need: calls and messages to task executors, and what blocks, off the loop.

use std::sync::Arc;

use checkpoint::{ReadError, StoreError, layout, metadata};
use controller_events::Handle;
use runtime_core::{AttemptId, JobId, ResourceId};
use wire::v1::job_master_to_task_executor::Message;
use wire::{RpcErrorKind, v1};

use super::JobMasterProcessor;
use super::effects::{CALL_TIMEOUT, make_visible};
use super::event::JmEvent;
use crate::checkpoint::coordinator::{CheckpointEffect, WriteFailure};
use crate::checkpoint::{CheckpointLog, CheckpointPointer, CompletedCheckpoint};
use crate::scheduler::ReadFailure;

/// What a read yields: the newest that can be read, and those before it.
type Read = (CompletedCheckpoint, Vec<CheckpointPointer>);

impl JobMasterProcessor {
    pub(super) fn carry_out_for_checkpoint(&mut self, effect: CheckpointEffect, events: &Handle<JmEvent>) {
        let job = self.submission.job;
        match effect {
            CheckpointEffect::Reserve(up_to) => {
                let log = Arc::clone(&self.submission.folder);
                self.block(events, move || {
                    JmEvent::CheckpointsReserved(up_to, log.reserve(up_to).map_err(|e| e.to_string()))
                });
            }
            CheckpointEffect::Trigger { checkpoint, begun_at, attempts } => {
                for (task_executor, attempts) in attempts {
                    self.trigger(task_executor, checkpoint, begun_at.0, &attempts, events);
                }
            }
            CheckpointEffect::Write { metadata, kept } => self.write(*metadata, kept, events),
            CheckpointEffect::Commit { checkpoint, staged } => {
                self.block(events, move || JmEvent::CheckpointCommitted(checkpoint, make_visible(staged)))
            }
            CheckpointEffect::Confirm(checkpoint) => {
                tracing::debug!(%job, checkpoint, "a checkpoint is complete");
                self.say_to_all(&Message::CheckpointConfirmed(v1::CheckpointConfirmed { checkpoint }));
            }
            CheckpointEffect::Abort { checkpoint, latest_completed } => {
                tracing::info!(%job, checkpoint, "a checkpoint is given up");
                let aborted = v1::CheckpointAborted { checkpoint, latest_completed };
                self.say_to_all(&Message::CheckpointAborted(aborted));
            }
            CheckpointEffect::Remove(checkpoints) => self.clean(move |store| {
                checkpoints.iter().try_for_each(|id| layout::remove_checkpoint(store, job, *id))
            }),
            CheckpointEffect::RemoveObject(name) => self.clean(move |store| store.remove(&name)),
            // The scheduler has dealt with them.
            CheckpointEffect::WakeAt(..) | CheckpointEffect::ExpireAt(..) | CheckpointEffect::FailJob(_) => {}
        }
    }

    fn say_to_all(&mut self, message: &Message) {
        for connection in self.task_executors.values_mut() {
            connection.say(message.clone());
        }
    }

    /// One call for all attempts of a task executor.
    fn trigger(
        &self,
        task_executor: ResourceId,
        checkpoint: u64,
        begun_at: i64,
        attempts: &[AttemptId],
        events: &Handle<JmEvent>,
    ) {
        let events = events.clone();
        let Some(connection) = self.task_executors.get(&task_executor) else {
            let cause = "it is not registered".to_owned();
            drop(events.put(JmEvent::TriggerFailed(task_executor, checkpoint, cause, false)));
            return;
        };
        let gateway = Arc::clone(&connection.gateway);
        let request = v1::TriggerCheckpointRequest {
            fence: self.fence(self.shared.epoch),
            attempts: attempts.iter().map(v1::AttemptId::from).collect(),
            checkpoint,
            begun_at,
        };
        self.shared.runtime.spawn(async move {
            let call = tokio::time::timeout(CALL_TIMEOUT, gateway.trigger_checkpoint(request)).await;
            let (cause, unknown) = match call {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => (error.message, error.kind == RpcErrorKind::UnknownTarget),
                Err(_) => (format!("it did not answer within {CALL_TIMEOUT:?}"), false),
            };
            drop(events.put(JmEvent::TriggerFailed(task_executor, checkpoint, cause, unknown)));
        });
    }

    /// First the metadata, then what is remembered: a checkpoint that is remembered can be read.
    fn write(
        &self,
        mut metadata: v1::CheckpointMetadata,
        kept: Vec<CheckpointPointer>,
        events: &Handle<JmEvent>,
    ) {
        metadata.job_id = self.job_bytes();
        metadata.origin_job_id = self.job_bytes();
        metadata.job_file = self.submission.file.clone();
        let (log, job) = (Arc::clone(&self.submission.folder), self.submission.job);
        let open = self.open_store();
        self.block(events, move || {
            let checkpoint = metadata.checkpoint;
            let written = open().and_then(|store| metadata::write(&*store, job, &metadata));
            let result = match written {
                Err(error) => Err(WriteFailure { cause: error.to_string(), may_be_there: false }),
                Ok(_) => log
                    .completed(&kept)
                    .map_err(|error| WriteFailure { cause: error.to_string(), may_be_there: true }),
            };
            JmEvent::CheckpointWritten(checkpoint, result)
        });
    }

    /// Opens the job's store; it may block.
    fn open_store(
        &self,
    ) -> impl FnOnce() -> Result<Arc<dyn checkpoint::CheckpointStore>, StoreError> + Send + use<> {
        let stores = Arc::clone(&self.shared.stores);
        let url = self.submission.graph.checkpoints.as_ref().map(|options| options.dir.clone());
        move || stores.open(&url.unwrap_or_default())
    }

    /// Removes what is no longer needed. What stays because the store cannot be reached is in nobody's way.
    fn clean(
        &self,
        remove: impl FnOnce(&dyn checkpoint::CheckpointStore) -> Result<(), StoreError> + Send + 'static,
    ) {
        let (open, job) = (self.open_store(), self.submission.job);
        self.shared.placement.block(&self.shared.runtime, move || {
            if let Err(error) = open().and_then(|store| remove(&*store)) {
                tracing::warn!(%job, %error, "a part of a checkpoint that is no longer needed stays in its store");
            }
        });
    }

    /// Reads the newest checkpoint that can be read.
    pub(super) fn read_checkpoint(&self, pointers: Vec<CheckpointPointer>, events: &Handle<JmEvent>) {
        let (open, job) = (self.open_store(), self.submission.job);
        self.block(events, move || {
            let read = open()
                .map_err(|error| ReadFailure::Unreachable(error.to_string()))
                .and_then(|store| read_newest(&*store, job, pointers));
            if let Err(ReadFailure::Unreachable(cause)) = &read {
                tracing::warn!(%job, cause, "the checkpoint to go on from cannot be read; it is tried again");
            }
            JmEvent::CheckpointRead(read.map(Box::new))
        });
    }
}

fn read_newest(
    store: &dyn checkpoint::CheckpointStore,
    job: JobId,
    mut pointers: Vec<CheckpointPointer>,
) -> Result<Read, ReadFailure> {
    let mut damages = Vec::new();
    while let Some(pointer) = pointers.pop() {
        match metadata::read(store, job, &pointer.metadata) {
            Ok(metadata) => return Ok((CompletedCheckpoint { pointer, metadata }, pointers)),
            Err(ReadError::Store(error @ StoreError::Failed { .. })) => {
                return Err(ReadFailure::Unreachable(error.to_string()));
            }
            Err(error) => {
                tracing::error!(%job, checkpoint = pointer.id, %error, "a checkpoint cannot be restored");
                damages.push(error.to_string());
            }
        }
    }
    Err(ReadFailure::Damaged(damages.join("; ")))
}
