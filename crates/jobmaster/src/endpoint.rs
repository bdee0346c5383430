//! The job masters' side of their gateway: a call is routed to the loop of the job that it names.

use std::sync::Arc;

use controller_events::{Handle, Lane, PutOptions, Reply};
use dashmap::DashMap;
use futures::StreamExt;
use heartbeat::LivenessSource;
use runtime_core::time::TokioClock;
use runtime_core::{Epoch, Incarnation, JobId};
use wire::convert::{WireId as _, attempt_id, resource_id};
use wire::fencing::{Fence, UnknownEpoch};
use wire::liveness::beside_the_loop;
use wire::stream::tied;
use wire::{JobMasterGateway, MessageStream, RpcError, RpcErrorKind, v1};

use crate::dispatcher::Started;
use crate::master::event::{Answer, JmEvent};
use crate::master::rejection;

/// A job's loop, and how it is.
#[derive(Clone)]
pub(crate) struct Master {
    pub(crate) events: Handle<JmEvent>,
    pub(crate) liveness: Arc<LivenessSource<Incarnation>>,
}

/// The loops of the jobs that this process leads.
pub(crate) type Masters = Arc<DashMap<JobId, Master>>;

/// What task executors and the resource manager see of the job masters of this process.
pub(crate) struct Endpoint {
    pub(crate) masters: Masters,
    pub(crate) epoch: Epoch,
    pub(crate) started: Started,
    pub(crate) clock: TokioClock,
}

impl Endpoint {
    fn master(&self, job: JobId) -> Result<Master, RpcError> {
        let master = self.masters.get(&job).map(|entry| entry.value().clone());
        master.ok_or_else(|| {
            if self.started.is_over() {
                RpcError::unknown_target(format!("this process does not lead job {job}"))
            } else {
                RpcError::not_started("the job master is starting: it takes up the jobs of before")
            }
        })
    }

    async fn ask<T: Send + 'static>(
        &self,
        job: JobId,
        event: impl FnOnce(Answer<T>) -> JmEvent + Send + 'static,
    ) -> Result<T, RpcError> {
        put(job, &self.master(job)?.events, Lane::Low, event)?.await
    }

    /// Refuses what is meant for another term. A caller that has not heard from this one yet says 0.
    fn check_epoch(&self, fence: Option<&v1::Fence>) -> Result<(), RpcError> {
        Fence::of(fence)?.check_epoch(self.epoch, UnknownEpoch::Accepted)
    }
}

/// Puts a call as an event; what it yields ends with the answer. Requests are of the low lane, which is refused when too
/// much waits; a sign of life is a fact, and is taken however much waits.
fn put<T: Send + 'static, E: FnOnce(Answer<T>) -> JmEvent + 'static>(
    job: JobId,
    events: &Handle<JmEvent>,
    lane: Lane,
    event: E,
) -> Result<impl Future<Output = Result<T, RpcError>> + Send + use<T, E>, RpcError> {
    let (reply, answer) = Reply::pair();
    let stopping = move || RpcError::not_started(format!("the master of job {job} is stopping"));
    let options = PutOptions { lane, ..PutOptions::default() };
    events.put_with(event(reply), options).map_err(|refused| {
        if refused.is_overloaded() {
            RpcError::overloaded(format!("the master of job {job} is overloaded: {refused}"))
        } else {
            stopping()
        }
    })?;
    Ok(async move { answer.await.unwrap_or_else(|_| Err(stopping())) })
}

#[async_trait::async_trait]
impl JobMasterGateway for Endpoint {
    async fn register_task_executor(
        &self,
        request: v1::RegisterAtJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        match self.master(job) {
            Ok(_) => {}
            // A job that is about to be taken up is no reason to free its slots.
            Err(error) if error.kind == RpcErrorKind::NotStarted => return Err(error),
            Err(error) => return Ok(rejection(error.message)),
        }
        self.ask(job, |reply| JmEvent::RegisterTaskExecutor(request, reply)).await
    }

    async fn offer_slots(&self, request: v1::OfferSlotsRequest) -> Result<v1::OfferSlotsReply, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.ask(JobId::from_wire(&request.job_id, "job_id")?, |reply| JmEvent::OfferSlots(request, reply))
            .await
    }

    async fn request_next_input_split(
        &self,
        request: v1::RequestNextInputSplitRequest,
    ) -> Result<v1::RequestNextInputSplitReply, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        let job = attempt_id(request.attempt.as_ref(), "attempt")?.job;
        self.ask(job, |reply| JmEvent::NextSplit(request, reply)).await
    }

    async fn heartbeat_from_task_executor(
        &self,
        request: v1::HeartbeatToJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.ask(JobId::from_wire(&request.job_id, "job_id")?, |reply| {
            JmEvent::TaskExecutorBeat(request, reply)
        })
        .await
    }

    async fn heartbeat_from_resource_manager(
        &self,
        request: v1::HeartbeatFromResourceManagerRequest,
    ) -> Result<v1::Ack, RpcError> {
        // The fence is the resource manager's own: it is not led by anybody here.
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        let Master { events, liveness } = self.master(job)?;
        let handled = put(job, &events, Lane::Normal, |reply| JmEvent::ResourceManagerBeat(request, reply))?;
        beside_the_loop(&liveness, &self.clock, handled).await
    }

    async fn task_executor_stream(
        &self,
        mut inbound: MessageStream<v1::TaskExecutorToJobMaster>,
    ) -> Result<MessageStream<v1::JobMasterToTaskExecutor>, RpcError> {
        use v1::task_executor_to_job_master::Message;
        let first =
            inbound.next().await.unwrap_or_else(|| Err(RpcError::application("the stream ended at once")))?;
        let Some(Message::Hello(hello)) = first.message else {
            return Err(RpcError::application(
                "the first message of a task executor's stream must be its hello",
            ));
        };
        self.check_epoch(hello.fence.as_ref())?;
        let id = resource_id(&hello.resource_id, "resource_id")?;
        let incarnation = Fence::of(hello.fence.as_ref())?.incarnation;
        let job = JobId::from_wire(&hello.job_id, "job_id")?;
        let events = self.master(job)?.events;
        let outbound = self.ask(job, |reply| JmEvent::TaskExecutorStream(hello, reply)).await?;
        let (outbound, tie) = tied(outbound);
        tokio::spawn(async move {
            let _tie = tie;
            let why = loop {
                match inbound.next().await {
                    Some(Ok(message)) => {
                        let says = JmEvent::TaskExecutorSays(id.clone(), incarnation, Box::new(message));
                        if events.put(says).is_err() {
                            return;
                        }
                    }
                    Some(Err(error)) => break error.to_string(),
                    None => break "the task executor closed it".to_owned(),
                }
            };
            drop(events.put(JmEvent::TaskExecutorStreamEnded(id, incarnation, why)));
        });
        Ok(outbound)
    }
}
