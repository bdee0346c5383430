//! The resource manager's side of its gateway: every call becomes an event, and its answer the event's reply.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use controller_events::{Handle, Lane, PutError, PutOptions, Reply};
use futures::StreamExt;
use runtime_core::{Epoch, InstanceId, JobId};
use wire::convert::{WireId as _, resource_id};
use wire::fencing::{Fence, UnknownEpoch};
use wire::stream::{Tie, tied};
use wire::{Address, MessageStream, ResourceManagerGateway, RpcError, v1};

use crate::callback::{Callback, failure};
use crate::event::{Answer, RmEvent};

/// How long a description of the cluster is waited for before the last one is the answer.
const DESCRIPTION_PATIENCE: Duration = Duration::from_millis(500);

/// What others see of a resource manager.
pub(crate) struct Endpoint {
    pub(crate) events: Handle<RmEvent>,
    pub(crate) epoch: Epoch,
    pub(crate) callback: Callback,
    /// The cluster as the loop last described it.
    pub(crate) view: Arc<ArcSwap<v1::ClusterDescription>>,
}

impl Endpoint {
    async fn ask<T: Send>(&self, event: impl FnOnce(Answer<T>) -> RmEvent + Send) -> Result<T, RpcError> {
        self.ask_in(Lane::Low, event).await
    }

    /// A sign of life is a fact, not a request: it is taken however much waits, or the busiest cluster would take its
    /// living members for dead.
    async fn beat(&self, event: impl FnOnce(Answer<v1::Ack>) -> RmEvent + Send) -> Result<v1::Ack, RpcError> {
        self.ask_in(Lane::Normal, event).await
    }

    async fn ask_in<T: Send>(
        &self,
        lane: Lane,
        event: impl FnOnce(Answer<T>) -> RmEvent + Send,
    ) -> Result<T, RpcError> {
        let (reply, answer) = Reply::pair();
        let options = PutOptions { lane, ..PutOptions::default() };
        self.events.put_with(event(reply), options).map_err(|refused| refusal(&refused))?;
        answer.await.unwrap_or_else(|_| Err(RpcError::not_started("the resource manager is stopping")))
    }

    /// Refuses what is meant for another term. A caller that has not heard from this one yet says 0.
    fn check_epoch(&self, fence: Option<&v1::Fence>) -> Result<(), RpcError> {
        Fence::of(fence)?.check_epoch(self.epoch, UnknownEpoch::Accepted)
    }
}

fn refusal(refused: &PutError<RmEvent>) -> RpcError {
    if refused.is_overloaded() {
        RpcError::overloaded(format!("the resource manager is overloaded: {refused}"))
    } else {
        RpcError::not_started("the resource manager is stopping")
    }
}

#[async_trait::async_trait]
impl ResourceManagerGateway for Endpoint {
    async fn register_task_executor(
        &self,
        request: v1::RegisterTaskExecutorRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        let id = resource_id(&request.resource_id, "resource_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let address: Address = request
            .rpc_address
            .parse()
            .map_err(|e| RpcError::application(format!("field `rpc_address`: {e}")))?;
        if let Err(reason) = self.callback.reach(&id, incarnation, &address).await {
            tracing::warn!(task_executor = %id, %address, reason, "a registration is refused for now");
            return Ok(failure(reason));
        }
        self.ask(|reply| RmEvent::RegisterTaskExecutor(request, reply)).await
    }

    async fn send_slot_report(&self, request: v1::SendSlotReportRequest) -> Result<v1::Ack, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.ask(|reply| RmEvent::SlotReport(request, reply)).await
    }

    async fn register_job_master(
        &self,
        request: v1::RegisterJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.ask(|reply| RmEvent::RegisterJobMaster(request, reply)).await
    }

    async fn heartbeat_from_task_executor(
        &self,
        request: v1::HeartbeatFromTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.beat(|reply| RmEvent::TaskExecutorBeat(request, reply)).await
    }

    async fn heartbeat_from_job_master(
        &self,
        request: v1::HeartbeatFromJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.check_epoch(request.fence.as_ref())?;
        self.beat(|reply| RmEvent::JobMasterBeat(request, reply)).await
    }

    async fn describe_cluster(
        &self,
        _request: v1::DescribeClusterRequest,
    ) -> Result<v1::ClusterDescription, RpcError> {
        // The loop describes it when somebody wants to know. A busy one is not waited for: who wants to know wants it most
        // then, and gets what was said last.
        let described = self.ask(RmEvent::Describe);
        match tokio::time::timeout(DESCRIPTION_PATIENCE, described).await {
            Ok(Ok(description)) => Ok(description.as_ref().clone()),
            Ok(Err(_)) | Err(_) => Ok(self.view.load().as_ref().clone()),
        }
    }

    async fn task_executor_stream(
        &self,
        mut inbound: MessageStream<v1::TaskExecutorToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToTaskExecutor>, RpcError> {
        use v1::task_executor_to_resource_manager::Message;
        let Some(Message::Hello(hello)) = first(&mut inbound).await?.message else {
            return Err(RpcError::application(
                "the first message of a task executor's stream must be its hello",
            ));
        };
        self.check_epoch(hello.fence.as_ref())?;
        let id = resource_id(&hello.resource_id, "resource_id")?;
        let instance = InstanceId::from_wire(&hello.instance_id, "instance_id")?;
        let outbound = self.ask(|reply| RmEvent::TaskExecutorStream(hello, reply)).await?;
        let (events, said_by) = (self.events.clone(), id.clone());
        let says =
            move |message| events.put(RmEvent::TaskExecutorSays(said_by.clone(), instance, message)).is_ok();
        let events = self.events.clone();
        let ended = move |why| drop(events.put(RmEvent::TaskExecutorStreamEnded(id, instance, why)));
        let (outbound, tie) = tied(outbound);
        tokio::spawn(pump(inbound, says, ended, tie));
        Ok(outbound)
    }

    async fn job_master_stream(
        &self,
        mut inbound: MessageStream<v1::JobMasterToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToJobMaster>, RpcError> {
        use v1::job_master_to_resource_manager::Message;
        let Some(Message::Hello(hello)) = first(&mut inbound).await?.message else {
            return Err(RpcError::application(
                "the first message of a job master's stream must be its hello",
            ));
        };
        self.check_epoch(hello.fence.as_ref())?;
        let job = JobId::from_wire(&hello.job_id, "job_id")?;
        let incarnation = Fence::of(hello.fence.as_ref())?.incarnation;
        let outbound = self.ask(|reply| RmEvent::JobMasterStream(hello, reply)).await?;
        let events = self.events.clone();
        let says = move |message| events.put(RmEvent::JobMasterSays(job, incarnation, message)).is_ok();
        let events = self.events.clone();
        let ended = move |why| drop(events.put(RmEvent::JobMasterStreamEnded(job, incarnation, why)));
        let (outbound, tie) = tied(outbound);
        tokio::spawn(pump(inbound, says, ended, tie));
        Ok(outbound)
    }
}

async fn first<T>(inbound: &mut MessageStream<T>) -> Result<T, RpcError> {
    inbound
        .next()
        .await
        .unwrap_or_else(|| Err(RpcError::application("the stream ended before its first message")))
}

/// Hands the messages of a stream on, one by one, until it ends or nobody takes them any more.
async fn pump<T>(
    mut inbound: MessageStream<T>,
    says: impl Fn(T) -> bool + Send,
    ended: impl FnOnce(String) + Send,
    _tie: Tie,
) {
    let why = loop {
        match inbound.next().await {
            Some(Ok(message)) => {
                if !says(message) {
                    break "this side is stopping".to_owned();
                }
            }
            Some(Err(error)) => break error.to_string(),
            None => break "the peer closed it".to_owned(),
        }
    };
    ended(why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use controller_events::{Cx, EventLoop, Fault, LoopOptions, MockClock, Processor};
    use wire::RpcErrorKind;
    use wire::network::{InMemoryNetwork, NetworkOptions};

    /// Nothing drives its loop: what is put waits.
    struct Stuck;

    impl Processor for Stuck {
        type Event = RmEvent;

        fn process(&mut self, _event: RmEvent, _cx: &mut Cx<'_, RmEvent>) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_overloaded_resource_manager_refuses_requests_and_takes_signs_of_life() {
        let mut options = LoopOptions::mocked(&MockClock::new());
        options.low_watermark = Some(0);
        let event_loop = EventLoop::new(Stuck, options);
        let view = Arc::new(ArcSwap::from_pointee(v1::ClusterDescription::default()));
        let network = InMemoryNetwork::new(NetworkOptions::calm(1));
        let callback = Callback::new(Arc::new(network.node("rm")), Arc::new(MockClock::new()), None);
        let endpoint = Endpoint { events: event_loop.handle(), epoch: Epoch(1), callback, view };
        let refused = endpoint.ask(|reply| RmEvent::SlotReport(Default::default(), reply)).await.unwrap_err();
        assert_eq!(refused.kind, RpcErrorKind::Overloaded);
        let beat = endpoint.beat(|reply| RmEvent::TaskExecutorBeat(Default::default(), reply));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(1), beat).await;
        assert!(waits.is_err(), "it was taken and waits for its turn: {waits:?}");
        assert_eq!(event_loop.handle().len(), 1);
    }
}
