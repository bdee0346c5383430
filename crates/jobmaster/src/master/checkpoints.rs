//! Carrying out what checkpoints need: calls and messages to task executors, and what blocks, off the loop.

use std::sync::Arc;

use checkpoint::savepoint::{self, SavepointError};
use checkpoint::{ReadError, StoreError, Stores, layout, metadata};
use controller_events::Handle;
use futures::future::{BoxFuture, try_join_all};
use runtime_core::{AttemptId, ResourceId};
use wire::v1::job_master_to_task_executor::Message;
use wire::{RpcErrorKind, v1};

use super::effects::{CALL_TIMEOUT, make_visible};
use super::event::JmEvent;
use super::{JobMasterProcessor, Submission, savepoints};
use crate::checkpoint::coordinator::{CheckpointEffect, WriteFailure};
use crate::checkpoint::{CheckpointLog, CheckpointPointer, CompletedCheckpoint};
use crate::scheduler::ReadFailure;

/// What a read yields: the newest that can be read, and those before it.
type Read = (CompletedCheckpoint, Vec<CheckpointPointer>);

/// A call to a task executor: which one it was that failed, why, and whether it does not know a task.
type Call = BoxFuture<'static, Result<(), (ResourceId, String, bool)>>;

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
            CheckpointEffect::Trigger { checkpoint, begun_at, attempts, savepoint: None } => {
                for (task_executor, attempts) in attempts {
                    let request = self.trigger_request(checkpoint, begun_at.0, &attempts);
                    let calls = vec![self.trigger_call(&task_executor, request)];
                    self.trigger(checkpoint, calls, Vec::new(), events);
                }
            }
            CheckpointEffect::Trigger { checkpoint, begun_at, attempts, savepoint: Some((url, stop)) } => {
                let (mut announced, mut begun) = (Vec::new(), Vec::new());
                for (task_executor, attempts) in attempts {
                    let begin = self.trigger_request(checkpoint, begun_at.0, &attempts);
                    let savepoint = Some(v1::SavepointTarget { url: url.clone(), stop });
                    let announce = v1::TriggerCheckpointRequest { savepoint, ..begin.clone() };
                    announced.push(self.trigger_call(&task_executor, announce));
                    begun.push(self.trigger_call(&task_executor, begin));
                }
                self.trigger(checkpoint, announced, begun, events);
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
            CheckpointEffect::WriteSavepoint { metadata, url } => {
                self.write_savepoint(*metadata, url, events)
            }
            CheckpointEffect::Discard(url) => {
                let stores = Arc::clone(&self.shared.stores);
                self.shared.placement.block(&self.shared.runtime, move || {
                    if let Err(error) = savepoint::discard(&*stores, &url) {
                        tracing::warn!(%job, url, %error, "a part of a savepoint that was given up stays");
                    }
                });
            }
            CheckpointEffect::DrainSources => {
                tracing::info!(%job, "the job is drained: its sources read no further");
                self.say_to_all(&Message::DrainSources(v1::DrainSources {}));
            }
            CheckpointEffect::Answer(number, result) => {
                match &result {
                    Ok(done) => {
                        tracing::info!(%job, location = done.location, "what was asked for is complete")
                    }
                    Err(cause) => tracing::warn!(%job, cause, "what was asked for has failed"),
                }
                if let Some(reply) = self.requests.remove(&number) {
                    reply.send(result);
                }
            }
            CheckpointEffect::RemoveObject(name) => self.clean(move |store| store.remove(&name)),
            // The scheduler has dealt with them.
            CheckpointEffect::WakeAt(..)
            | CheckpointEffect::ExpireAt(..)
            | CheckpointEffect::FailJob(_)
            | CheckpointEffect::Saved(_)
            | CheckpointEffect::Undrain(_) => {}
        }
    }

    fn say_to_all(&mut self, message: &Message) {
        for connection in self.task_executors.values_mut() {
            connection.say(message.clone());
        }
    }

    fn trigger_request(
        &self,
        checkpoint: u64,
        begun_at: i64,
        attempts: &[AttemptId],
    ) -> v1::TriggerCheckpointRequest {
        v1::TriggerCheckpointRequest {
            fence: self.fence(self.shared.epoch),
            attempts: attempts.iter().map(v1::AttemptId::from).collect(),
            checkpoint,
            begun_at,
            savepoint: None,
        }
    }

    /// One call for all attempts of a task executor.
    fn trigger_call(&self, task_executor: &ResourceId, request: v1::TriggerCheckpointRequest) -> Call {
        let gateway =
            self.task_executors.get(task_executor).map(|connection| Arc::clone(&connection.gateway));
        let task_executor = task_executor.clone();
        Box::pin(async move {
            let Some(gateway) = gateway else {
                return Err((task_executor, "it is not registered".to_owned(), false));
            };
            match tokio::time::timeout(CALL_TIMEOUT, gateway.trigger_checkpoint(request)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => {
                    let unknown = error.kind == RpcErrorKind::UnknownTarget;
                    Err((task_executor, error.message, unknown))
                }
                Err(_) => Err((task_executor, format!("it did not answer within {CALL_TIMEOUT:?}"), false)),
            }
        })
    }

    /// Makes these calls at once, and when all have gone well those that follow.
    fn trigger(&self, checkpoint: u64, calls: Vec<Call>, then: Vec<Call>, events: &Handle<JmEvent>) {
        let events = events.clone();
        self.shared.runtime.spawn(async move {
            let made = async {
                try_join_all(calls).await?;
                try_join_all(then).await
            };
            if let Err((task_executor, cause, unknown)) = made.await {
                drop(events.put(JmEvent::TriggerFailed(task_executor, checkpoint, cause, unknown)));
            }
        });
    }

    /// Writes a savepoint to its folder.
    fn write_savepoint(&self, metadata: v1::CheckpointMetadata, url: String, events: &Handle<JmEvent>) {
        let metadata = self.identified(metadata);
        let stores = Arc::clone(&self.shared.stores);
        self.block(events, move || {
            let checkpoint = metadata.checkpoint;
            let written = savepoints::write(&*stores, &url, metadata);
            let failure = |cause| WriteFailure { cause, may_be_there: false };
            JmEvent::CheckpointWritten(checkpoint, written.map_err(failure))
        });
    }

    /// Adds what the scheduler does not know.
    fn identified(&self, mut metadata: v1::CheckpointMetadata) -> v1::CheckpointMetadata {
        metadata.job_id = self.job_bytes();
        metadata.origin_job_id = self.origin_bytes();
        metadata.job_file = self.submission.file.clone();
        metadata
    }

    /// First the metadata, then what is remembered: a checkpoint that is remembered can be read.
    fn write(
        &self,
        metadata: v1::CheckpointMetadata,
        kept: Vec<CheckpointPointer>,
        events: &Handle<JmEvent>,
    ) {
        let metadata = self.identified(metadata);
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
        let (submission, stores) = (self.submission.clone(), Arc::clone(&self.shared.stores));
        let job = submission.job;
        self.block(events, move || {
            let read = read_newest(&*stores, &submission, pointers);
            if let Err(ReadFailure::Unreachable(cause)) = &read {
                tracing::warn!(%job, cause, "the checkpoint to go on from cannot be read; it is tried again");
            }
            JmEvent::CheckpointRead(read.map(Box::new))
        });
    }
}

fn read_newest(
    stores: &dyn Stores,
    submission: &Submission,
    mut pointers: Vec<CheckpointPointer>,
) -> Result<Read, ReadFailure> {
    let job = submission.job;
    let mut damages = Vec::new();
    while let Some(pointer) = pointers.pop() {
        let id = pointer.id;
        let read = match &pointer.store {
            Some(url) => read_savepoint(stores, url, submission),
            None => read_own(stores, pointer, submission),
        };
        match read {
            Ok(completed) => return Ok((completed, pointers)),
            Err(ReadFailure::Damaged(cause)) => {
                tracing::error!(%job, checkpoint = id, cause, "a checkpoint cannot be restored");
                damages.push(cause);
            }
            Err(unreachable) => return Err(unreachable),
        }
    }
    Err(ReadFailure::Damaged(damages.join("; ")))
}

fn read_own(
    stores: &dyn Stores,
    pointer: CheckpointPointer,
    submission: &Submission,
) -> Result<CompletedCheckpoint, ReadFailure> {
    let url = submission.graph.checkpoints.as_ref().map_or("", |options| &options.dir);
    let store = stores.open(url).map_err(|error| ReadFailure::Unreachable(error.to_string()))?;
    match metadata::read(&*store, submission.job, &pointer.metadata) {
        Ok(metadata) => Ok(CompletedCheckpoint::own(pointer, metadata)),
        Err(ReadError::Store(error @ StoreError::Failed { .. })) => {
            Err(ReadFailure::Unreachable(error.to_string()))
        }
        Err(error) => Err(ReadFailure::Damaged(error.to_string())),
    }
}

/// The savepoint that the job began with, before its first checkpoint.
fn read_savepoint(
    stores: &dyn Stores,
    url: &str,
    submission: &Submission,
) -> Result<CompletedCheckpoint, ReadFailure> {
    let metadata = savepoint::read(stores, url).map_err(|error| match error {
        SavepointError::Store(error) => ReadFailure::Unreachable(error.to_string()),
        error => ReadFailure::Damaged(error.to_string()),
    })?;
    let old = savepoints::plan_of(&metadata).map_err(ReadFailure::Damaged)?;
    Ok(savepoints::completed(url, metadata, &old, &submission.graph))
}
