//! Carrying out what the scheduler wants.

use std::sync::Arc;
use std::time::Duration;

use connectors::sink;
use connectors::sink::Committer as _;
use connectors::sink::file::FileCommitter;
use connectors::source::file as file_source;
use controller_events::{Handle, Tag, When};
use job::graph::JobGraph;
use runtime_core::{AttemptId, Clock, JobId, ResourceId};
use wire::convert::WireId as _;
use wire::{RpcErrorKind, v1};

use super::event::JmEvent;
use super::view::PUBLISH_PAUSE;
use super::{JobMasterProcessor, savepoints};
use crate::convert;
use crate::counts::Counts;
use crate::job_store::JobFolder;
use crate::scheduler::{Deployment, Effect, Now, SubmitFailure, Timer};
use crate::slot_pool::PooledSlot;

/// How often a task executor is told to stop a task before it counts as stopped.
const CANCEL_TRIES: u32 = 3;

/// Bounds a call that deploys, stops or frees something.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

impl JobMasterProcessor {
    pub(super) fn carry_out_effects(&mut self, events: &Handle<JmEvent>) {
        for effect in self.scheduler.take_effects() {
            match effect {
                Effect::Prepare => {
                    let (submission, stores) = (self.submission.clone(), Arc::clone(&self.shared.stores));
                    self.block(events, move || {
                        let (graph, folder) = (&submission.graph, &submission.folder);
                        let prepared = match &submission.savepoint {
                            Some(savepoint) => savepoints::begin(graph, folder, savepoint, &*stores),
                            None => prepare_once(graph, folder).map(|splits| (splits, None)),
                        };
                        JmEvent::Prepared(prepared.map(Box::new))
                    });
                }
                Effect::Declare(slots) => self.resource_manager.declare(slots),
                Effect::Submit(deployment) => self.submit(&deployment, events),
                Effect::CancelTask { task_executor, attempt } => {
                    self.cancel_task(&task_executor, attempt, events)
                }
                Effect::FreeSlot(slot, cause) => self.free_slot(&slot, &cause),
                Effect::Sweep { commit, attempts } => {
                    let (graph, job) = (Arc::clone(&self.submission.graph), self.submission.job);
                    self.block(events, move || {
                        let committed = make_visible(commit);
                        // What is not visible yet must not be removed.
                        if committed.is_ok() {
                            sweep(&graph, job, attempts.as_deref());
                        }
                        JmEvent::Swept(committed)
                    });
                }
                Effect::Checkpoint(effect) => self.carry_out_for_checkpoint(effect, events),
                Effect::ReadCheckpoint(pointers) => self.read_checkpoint(pointers, events),
                Effect::Commit(staged) => {
                    let (folder, counts) = (Arc::clone(&self.submission.folder), self.scheduler.counts());
                    self.block(events, move || JmEvent::Committed(commit(staged, counts, &folder)));
                }
                Effect::WakeAt(timer, at) => {
                    let (name, number) = match timer {
                        Timer::Restart(number) => ("restart", number),
                        Timer::SlotRequest(number) => ("slot-request", number),
                        Timer::Checkpoint(number) => ("checkpoint", number),
                        Timer::CheckpointExpiry(number) => ("checkpoint-expiry", number),
                        Timer::ReadCheckpoint(number) => ("read-checkpoint", number),
                        Timer::TasksEnd(number) => ("tasks-end", number),
                    };
                    let tag = Tag::keyed(name, u128::from(number));
                    if events.schedule(Some(tag), When::At(at), JmEvent::Wake(timer)).is_err() {
                        tracing::debug!(name, "no timer: the loop has ended");
                    }
                }
                Effect::Ended => self.end(),
            }
        }
        self.arm_idle_slots(events);
    }

    /// Runs what may wait for a disk on a thread that may; in a simulation, on the only one there is.
    pub(super) fn block(&self, events: &Handle<JmEvent>, work: impl FnOnce() -> JmEvent + Send + 'static) {
        let events = events.clone();
        self.shared.placement.block(&self.shared.runtime, move || {
            if events.put(work()).is_err() {
                tracing::debug!("the job master ended while files were being dealt with");
            }
        });
    }

    fn submit(&self, deployment: &Deployment, events: &Handle<JmEvent>) {
        let (attempt, events) = (deployment.attempt, events.clone());
        let Some(connection) = self.task_executors.get(&deployment.task_executor) else {
            let cause = format!("task executor {} is not registered", deployment.task_executor);
            drop(events.put(JmEvent::Submitted(attempt, Err(SubmitFailure { cause, unrecoverable: false }))));
            return;
        };
        let gateway = Arc::clone(&connection.gateway);
        let request = self.submit_request(deployment);
        self.shared.runtime.spawn(async move {
            let result = match tokio::time::timeout(CALL_TIMEOUT, gateway.submit_task(request)).await {
                Ok(answer) => answer.map(|_| ()).map_err(|error| SubmitFailure {
                    unrecoverable: error.kind == RpcErrorKind::Application,
                    cause: error.message,
                }),
                Err(_) => Err(SubmitFailure {
                    cause: format!("the task executor did not answer within {CALL_TIMEOUT:?}"),
                    unrecoverable: false,
                }),
            };
            drop(events.put(JmEvent::Submitted(attempt, result)));
        });
    }

    fn submit_request(&self, deployment: &Deployment) -> v1::SubmitTaskRequest {
        let gates = |(edge, producers): &(u32, Vec<AttemptId>)| v1::InputGate {
            edge: *edge,
            producers: producers.iter().map(v1::AttemptId::from).collect(),
        };
        let target = |(attempt, task_executor): &(AttemptId, ResourceId)| v1::ChannelTarget {
            attempt: Some(attempt.into()),
            task_executor: task_executor.to_string(),
            data_address: self
                .task_executors
                .get(task_executor)
                .map(|connection| connection.data_address.clone())
                .unwrap_or_default(),
        };
        v1::SubmitTaskRequest {
            fence: self.fence(self.shared.epoch),
            allocation_id: deployment.allocation.to_wire(),
            attempt: Some((&deployment.attempt).into()),
            job_file: self.submission.file.clone(),
            origin_job_id: self.origin_bytes(),
            restore: deployment.restore.clone(),
            inputs: deployment.inputs.iter().map(gates).collect(),
            outputs: deployment
                .outputs
                .iter()
                .map(|(edge, consumers)| v1::OutputGate {
                    edge: *edge,
                    consumers: consumers.iter().map(target).collect(),
                })
                .collect(),
        }
    }

    fn cancel_task(&self, task_executor: &ResourceId, attempt: AttemptId, events: &Handle<JmEvent>) {
        let events = events.clone();
        let Some(connection) = self.task_executors.get(task_executor) else {
            drop(events.put(JmEvent::CancelGaveUp(attempt)));
            return;
        };
        let gateway = Arc::clone(&connection.gateway);
        let request =
            v1::CancelTaskRequest { fence: self.fence(self.shared.epoch), attempt: Some(attempt.into()) };
        self.shared.runtime.spawn(async move {
            for _ in 0..CANCEL_TRIES {
                match tokio::time::timeout(CALL_TIMEOUT, gateway.cancel_task(request.clone())).await {
                    // The task executor will report the end of the task.
                    Ok(Ok(_)) => return,
                    // It has no such task: there is nothing to wait for.
                    Ok(Err(error)) if error.kind == RpcErrorKind::UnknownTarget => break,
                    Ok(Err(error)) => tracing::info!(%attempt, %error, "a task could not be told to stop"),
                    Err(_) => {
                        tracing::info!(%attempt, "a task executor did not answer when told to stop a task")
                    }
                }
            }
            drop(events.put(JmEvent::CancelGaveUp(attempt)));
        });
    }

    pub(super) fn free_slot(&self, slot: &PooledSlot, cause: &str) {
        let Some(connection) = self.task_executors.get(&slot.task_executor) else { return };
        let gateway = Arc::clone(&connection.gateway);
        let request = v1::FreeSlotRequest {
            fence: self.fence(self.shared.epoch),
            job_id: self.job_bytes(),
            allocation_id: slot.allocation.to_wire(),
            cause: cause.into(),
        };
        self.shared.runtime.spawn(async move {
            if let Ok(Err(error)) = tokio::time::timeout(CALL_TIMEOUT, gateway.free_slot(request)).await {
                tracing::info!(%error, "a slot could not be freed; the next heartbeat repairs it");
            }
        });
    }

    pub(super) fn free_idle_slots(&mut self, now: Now) {
        for slot in self.scheduler.take_excess(now.tick - self.shared.slot_idle_timeout) {
            self.free_slot(&slot, "the job does not need it");
        }
    }

    fn arm_idle_slots(&self, events: &Handle<JmEvent>) {
        let pool = self.scheduler.pool();
        if pool.len() > pool.required() && !self.scheduler.status().is_terminal() {
            let at = self.shared.clock.now() + self.shared.slot_idle_timeout;
            drop(events.schedule(Some("idle-slots".into()), When::Earliest(at), JmEvent::IdleSlots));
        }
    }

    pub(super) fn publish_later(&self, events: &Handle<JmEvent>, now: Now) {
        let at = now.tick + PUBLISH_PAUSE;
        drop(events.schedule(Some("publish".into()), When::Earliest(at), JmEvent::Publish));
    }
}

/// Prepares, and remembers that it was done: `overwrite` acts once in all lives of the job.
fn prepare_once(graph: &JobGraph, folder: &JobFolder) -> Result<Vec<v1::FileSplit>, String> {
    let splits = prepare(graph)?;
    folder.prepared(&splits).map_err(|e| e.to_string())?;
    Ok(splits)
}

/// Makes the outputs ready and lists the splits of the input.
fn prepare(graph: &JobGraph) -> Result<Vec<v1::FileSplit>, String> {
    for options in graph.sinks() {
        sink::file::prepare(options).map_err(|e| e.to_string())?;
    }
    let (Some(vertex), Some(source)) = (graph.vertices.first(), graph.source()) else {
        return Ok(Vec::new());
    };
    let splits = file_source::enumerate(source, vertex.parallelism).map_err(|e| e.to_string())?;
    splits.iter().map(convert::split_out).collect()
}

/// Removes what these attempts have left, or all attempts of the job.
fn sweep(graph: &JobGraph, job: JobId, attempts: Option<&[AttemptId]>) {
    for options in graph.sinks() {
        let swept = match attempts {
            Some(attempts) => FileCommitter(options).sweep_attempts(attempts),
            None => FileCommitter(options).sweep(job),
        };
        if let Err(error) = swept {
            tracing::warn!(%job, %error, "unfinished output could not be removed");
        }
    }
}

/// Makes the whole output visible. It is remembered first, so that a later life goes on with this and not with tasks.
fn commit(staged: Vec<v1::StagedFile>, counts: Counts, folder: &JobFolder) -> Result<(), String> {
    folder.output(&staged, counts).map_err(|e| e.to_string())?;
    make_visible(staged)
}

/// Makes staged output visible. It may be repeated.
pub(super) fn make_visible(staged: Vec<v1::StagedFile>) -> Result<(), String> {
    let staged: Vec<sink::StagedFile> = staged.into_iter().map(convert::staged_in).collect();
    sink::file::commit(&staged).map_err(|e| e.to_string())
}
