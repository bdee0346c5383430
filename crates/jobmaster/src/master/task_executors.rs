//! The task executors of a job: registration, offers, reports, loss.

use std::sync::Arc;

use controller_events::Handle;
use runtime_core::{AllocationId, Incarnation, ResourceId};
use wire::convert::{WireId, attempt_id, resource_id};
use wire::fencing::Fence;
use wire::registration::{self, Registered};
use wire::stream::Duplex;
use wire::{Address, MessageStream, RpcError, TaskExecutorGateway, v1};

use super::JobMasterProcessor;
use super::event::JmEvent;
use crate::convert::update_in;
use crate::scheduler::Now;

/// A task executor that is registered for this job.
pub(crate) struct TaskExecutorConnection {
    pub(super) incarnation: Incarnation,
    pub(super) gateway: Arc<dyn TaskExecutorGateway>,
    pub(super) data_address: String,
    talk: Duplex<v1::JobMasterToTaskExecutor, v1::TaskExecutorToJobMaster>,
}

impl TaskExecutorConnection {
    pub(super) fn disconnect(&mut self, cause: &str) {
        self.say(v1::job_master_to_task_executor::Message::Disconnect(v1::Disconnect {
            cause: cause.into(),
        }));
        self.talk.disconnect();
    }

    pub(super) fn say(&mut self, message: v1::job_master_to_task_executor::Message) {
        self.talk.say(v1::JobMasterToTaskExecutor { number: 0, message: Some(message) });
    }
}

impl JobMasterProcessor {
    /// The same life again is a success without a change (its tasks go on); another life under the same name means
    /// that the old one is gone, with its tasks (FLINK-25849).
    pub(super) fn register_task_executor(
        &mut self,
        request: &v1::RegisterAtJobMasterRequest,
        now: Now,
    ) -> Result<v1::RegistrationReply, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let address: Address = request
            .rpc_address
            .parse()
            .map_err(|e| RpcError::application(format!("field `rpc_address`: {e}")))?;
        if self.scheduler.status().is_terminal() {
            let reason = format!("the job is {}", self.scheduler.status().as_str());
            return Ok(rejection(reason));
        }
        let known = self.task_executors.get(&id).map(|connection| connection.incarnation);
        if known.is_some_and(|old| old != incarnation) {
            self.drop_task_executor(&id, "it was started again under the same id", now);
        }
        if known != Some(incarnation) {
            tracing::info!(job = %self.submission.job, task_executor = %id, "a task executor has registered");
            let connection = TaskExecutorConnection {
                incarnation,
                gateway: self.shared.transport.connect_task_executor(&address),
                data_address: request.data_address.clone(),
                talk: Duplex::starting(now.tick),
            };
            self.task_executors.insert(id.clone(), connection);
            self.beats.monitor_target(id, incarnation, now.tick);
        }
        let registered = Registered {
            epoch: self.shared.epoch,
            resource_id: self.resource_id.clone(),
            incarnation: self.shared.incarnation,
            instance_id: None,
            resumed: known == Some(incarnation),
        };
        Ok(registration::Reply::Success(registered).into())
    }

    pub(super) fn offer_slots(
        &mut self,
        request: &v1::OfferSlotsRequest,
        now: Now,
    ) -> Result<v1::OfferSlotsReply, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        self.connection(&id, Fence::of(request.fence.as_ref())?.incarnation)?;
        let mut offers = Vec::with_capacity(request.offers.len());
        for offer in &request.offers {
            let allocation = AllocationId::from_wire(&offer.allocation_id, "offers.allocation_id")?;
            offers.push((allocation, offer.index));
        }
        let accepted = self.scheduler.offer(&id, &offers, now);
        Ok(v1::OfferSlotsReply {
            epoch: self.shared.epoch.0,
            accepted: accepted.iter().map(WireId::to_wire).collect(),
        })
    }

    pub(super) fn next_split(
        &mut self,
        request: &v1::RequestNextInputSplitRequest,
    ) -> Result<v1::RequestNextInputSplitReply, RpcError> {
        let attempt = attempt_id(request.attempt.as_ref(), "attempt")?;
        let split = self.scheduler.next_split(attempt, request.request);
        let max_rate = self.max_rate().map_or(0.0, |rate| self.scheduler.rate_share(rate));
        Ok(v1::RequestNextInputSplitReply { split, max_rate })
    }

    fn max_rate(&self) -> Option<f64> {
        self.submission.graph.source()?.max_rate
    }

    pub(super) fn task_executor_stream(
        &mut self,
        hello: &v1::TaskExecutorAtJobMasterHello,
    ) -> Result<MessageStream<v1::JobMasterToTaskExecutor>, RpcError> {
        let id = resource_id(&hello.resource_id, "resource_id")?;
        let incarnation = Fence::of(hello.fence.as_ref())?.incarnation;
        Ok(self.connection(&id, incarnation)?.talk.connect(None))
    }

    pub(super) fn task_executor_says(
        &mut self,
        id: &ResourceId,
        incarnation: Incarnation,
        message: v1::TaskExecutorToJobMaster,
        now: Now,
    ) {
        use v1::task_executor_to_job_master::Message;
        let Ok(connection) = self.connection(id, incarnation) else { return };
        let Some(message) = connection.talk.hear(message) else { return };
        match message.message {
            Some(Message::TaskState(update)) => match update_in(update) {
                Ok(update) => self.scheduler.task_state(id, update, now),
                Err(error) => tracing::warn!(task_executor = %id, %error, "a task update makes no sense"),
            },
            Some(Message::Figures(report)) => {
                if let (Ok(attempt), Some(figures)) =
                    (attempt_id(report.attempt.as_ref(), "attempt"), report.figures)
                {
                    self.scheduler.task_figures(&attempt, figures);
                }
            }
            Some(Message::FailSlot(slot)) => {
                if let Ok(allocation) = AllocationId::try_from(slot.allocation_id.as_ref()) {
                    self.scheduler.slot_lost(allocation, &slot.cause, now);
                }
            }
            Some(Message::CheckpointAcknowledged(ack)) => {
                if let Ok(attempt) = attempt_id(ack.attempt.as_ref(), "attempt") {
                    let snapshot = ack.snapshot.unwrap_or_default();
                    self.scheduler.acknowledged(&attempt, ack.checkpoint, snapshot, now);
                }
            }
            Some(Message::CheckpointDeclined(declined)) => {
                if let Ok(attempt) = attempt_id(declined.attempt.as_ref(), "attempt") {
                    self.scheduler.declined(&attempt, declined.checkpoint, &declined.cause, now);
                }
            }
            Some(Message::Disconnect(bye)) => self.drop_task_executor(id, &bye.cause, now),
            Some(Message::Hello(_) | Message::Ack(_)) | None => {}
        }
    }

    /// Ends a registration: the task executor's slots and tasks are gone for this job.
    pub(super) fn drop_task_executor(&mut self, id: &ResourceId, cause: &str, now: Now) {
        let Some(mut connection) = self.task_executors.remove(id) else { return };
        tracing::warn!(job = %self.submission.job, task_executor = %id, cause, "a task executor is gone");
        connection.disconnect(cause);
        self.beats.unmonitor_incarnation(id, &connection.incarnation);
        self.scheduler.task_executor_lost(id, cause, now);
    }

    /// A stream that ended may mean a dead process: it is asked at once instead of at the next interval.
    pub(super) fn probe_task_executor(
        &mut self,
        id: &ResourceId,
        incarnation: Incarnation,
        why: &str,
        events: &Handle<JmEvent>,
    ) {
        if self.connection(id, incarnation).is_err() {
            return;
        }
        tracing::info!(task_executor = %id, why, "the stream of a task executor has ended; asking whether it lives");
        self.send_beats(id, incarnation, self.shared.heartbeats.redials(), events);
    }

    /// The connection of this life.
    pub(super) fn connection(
        &mut self,
        id: &ResourceId,
        incarnation: Incarnation,
    ) -> Result<&mut TaskExecutorConnection, RpcError> {
        let job = self.submission.job;
        match self.task_executors.get_mut(id) {
            Some(connection) if connection.incarnation == incarnation => Ok(connection),
            Some(_) => Err(RpcError::fencing(format!("task executor {id} has another life by now"))),
            None => {
                Err(RpcError::unknown_target(format!("task executor {id} is not registered for job {job}")))
            }
        }
    }
}

/// "Never": whoever hears it frees what it holds for the job.
pub(crate) fn rejection(reason: String) -> v1::RegistrationReply {
    registration::Reply::<Registered>::Rejection(reason).into()
}
