//! One of many: what it says, and what it answers.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt as _;
use heartbeat::LivenessSource;
use runtime_core::time::TokioClock;
use runtime_core::{Epoch, Incarnation, InstanceId};
use wire::convert::WireId as _;
use wire::fencing::Fence;
use wire::liveness::beside_the_loop;
use wire::registration::{self, Registered, RegistrationOptions};
use wire::{Address, ResourceManagerGateway, RpcError, TaskExecutorGateway, v1};

use super::Counts;

type Incoming = wire::MessageStream<v1::ResourceManagerToTaskExecutor>;

/// A task executor that runs nothing.
pub(super) struct Member {
    resource_id: String,
    incarnation: Incarnation,
    liveness: Arc<LivenessSource<Incarnation>>,
    slots: u32,
    address: String,
    seed: u64,
}

impl Member {
    pub(super) fn new(number: u32, slots: u32, address: &Address) -> Self {
        // Another in each process and for each number.
        let life = u128::from(std::process::id()) << 32 | u128::from(number);
        let incarnation = Incarnation::from_u128(life + 1);
        Self {
            resource_id: format!("te-{number:06}"),
            incarnation,
            liveness: Arc::new(LivenessSource::new(incarnation)),
            slots,
            address: address.to_string(),
            seed: u64::from(number),
        }
    }

    fn fence(&self, epoch: Epoch) -> Option<v1::Fence> {
        Some(Fence { epoch, incarnation: self.incarnation }.to_wire())
    }

    fn report(&self) -> Option<v1::SlotReport> {
        let free = |index| v1::SlotStatus { index, state: v1::SlotState::Free.into(), ..Default::default() };
        Some(v1::SlotReport { slots: (0..self.slots).map(free).collect() })
    }
}

/// Those who share a connection. The resource manager's calls say which of them is meant.
pub(super) struct Members {
    gateway: Arc<dyn ResourceManagerGateway>,
    clock: TokioClock,
    counts: Arc<Counts>,
    registered: RwLock<BTreeMap<InstanceId, (Epoch, Arc<Member>)>>,
}

impl Members {
    pub(super) fn new(
        gateway: Arc<dyn ResourceManagerGateway>,
        clock: TokioClock,
        counts: Arc<Counts>,
    ) -> Self {
        Self { gateway, clock, counts, registered: RwLock::default() }
    }

    /// Registers one of them and listens until it is given up.
    pub(super) async fn run(self: Arc<Self>, member: Arc<Member>) {
        let mut incoming = loop {
            match self.register(&member).await {
                Ok(incoming) => break incoming,
                // An attempt that was given up may have been taken all the same, and ends the registration of the next. As
                // in a real task executor the answer is to register again.
                Err(why) => eprintln!("{} registers again: {why}", member.resource_id),
            }
        };
        self.counts.registered.fetch_add(1, Relaxed);
        let end = listen(&mut incoming).await.unwrap_or_else(|why| why);
        self.counts.lost.fetch_add(1, Relaxed);
        eprintln!("{} was given up: {end}", member.resource_id);
    }

    async fn register(&self, member: &Arc<Member>) -> Result<Incoming, String> {
        let request = v1::RegisterTaskExecutorRequest {
            fence: member.fence(Epoch::UNKNOWN),
            resource_id: member.resource_id.clone(),
            rpc_address: member.address.clone(),
            data_address: member.address.clone(),
            slots: member.slots,
            cpu_cores: 1,
            memory_bytes: 1 << 30,
            rust_calls: Vec::new(),
        };
        let attempt = |_| {
            let (gateway, request) = (Arc::clone(&self.gateway), request.clone());
            async move {
                let reply = gateway.register_task_executor(request).await?;
                Ok(registration::Reply::<Registered>::try_from(reply)?)
            }
        };
        let options = RegistrationOptions::default();
        let registered =
            registration::register(&"resource manager", options, member.seed, &self.clock, attempt);
        let registered: Registered = registered.await.map_err(|rejected| rejected.to_string())?;
        let instance = registered.instance_id.ok_or("the registration was given no name")?;
        let known = (registered.epoch, Arc::clone(member));
        self.registered.write().unwrap_or_else(PoisonError::into_inner).insert(instance, known);
        let (fence, instance_id) = (member.fence(registered.epoch), instance.to_wire());
        let request = v1::SendSlotReportRequest {
            fence: fence.clone(),
            resource_id: member.resource_id.clone(),
            instance_id: instance_id.clone(),
            report: member.report(),
        };
        self.gateway.send_slot_report(request).await.map_err(|error| error.to_string())?;
        let hello = v1::TaskExecutorHello { fence, resource_id: member.resource_id.clone(), instance_id };
        let hello = v1::task_executor_to_resource_manager::Message::Hello(hello);
        let first = v1::TaskExecutorToResourceManager { number: 0, message: Some(hello) };
        // It has nothing more to say, and does not end.
        let outgoing = futures::stream::iter([Ok(first)]).chain(futures::stream::pending());
        let incoming = self.gateway.task_executor_stream(outgoing.boxed()).await;
        incoming.map_err(|error| error.to_string())
    }

    fn of(&self, instance: &[u8]) -> Option<(InstanceId, Epoch, Arc<Member>)> {
        let instance = InstanceId::try_from(instance).ok()?;
        let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        registered.get(&instance).map(|(epoch, member)| (instance, *epoch, Arc::clone(member)))
    }
}

/// Hears the resource manager until it says good-bye or the stream ends.
async fn listen(incoming: &mut Incoming) -> Result<String, String> {
    while let Some(message) = incoming.next().await {
        let message = message.map_err(|error| error.to_string())?.message;
        if let Some(v1::resource_manager_to_task_executor::Message::Disconnect(bye)) = message {
            return Ok(bye.cause);
        }
    }
    Ok("its stream has ended".into())
}

fn runs_nothing<T>() -> Result<T, RpcError> {
    Err(RpcError::application("this task executor only answers heartbeats"))
}

#[async_trait::async_trait]
impl TaskExecutorGateway for Members {
    async fn request_slot(&self, _: v1::RequestSlotRequest) -> Result<v1::RequestSlotReply, RpcError> {
        runs_nothing()
    }

    async fn free_slot(&self, _: v1::FreeSlotRequest) -> Result<v1::Ack, RpcError> {
        runs_nothing()
    }

    async fn submit_task(&self, _: v1::SubmitTaskRequest) -> Result<v1::Ack, RpcError> {
        runs_nothing()
    }

    async fn cancel_task(&self, _: v1::CancelTaskRequest) -> Result<v1::Ack, RpcError> {
        runs_nothing()
    }

    async fn trigger_checkpoint(&self, _: v1::TriggerCheckpointRequest) -> Result<v1::Ack, RpcError> {
        runs_nothing()
    }

    async fn heartbeat_from_resource_manager(
        &self,
        request: v1::HeartbeatToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        // Asked before the answer to its registration was read.
        let Some((instance, epoch, member)) = self.of(&request.instance_id) else {
            return Ok(v1::Ack::default());
        };
        let answer = v1::HeartbeatFromTaskExecutorRequest {
            fence: member.fence(epoch),
            resource_id: member.resource_id.clone(),
            instance_id: instance.to_wire(),
            report: member.report(),
        };
        let (gateway, counts) = (Arc::clone(&self.gateway), Arc::clone(&self.counts));
        tokio::spawn(async move {
            let taken = gateway.heartbeat_from_task_executor(answer).await.is_ok();
            if taken { &counts.answered } else { &counts.failed }.fetch_add(1, Relaxed);
        });
        beside_the_loop(&member.liveness, &self.clock, async { Ok(v1::Ack::default()) }).await
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        runs_nothing()
    }
}
