//! A task executor and a resource manager that do as a test tells them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt as _;
use runtime_core::{Epoch, Incarnation};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::WireId as _;
use wire::network::InMemoryNetwork;
use wire::{
    Endpoints, MessageStream, ResourceManagerGateway, RpcError, Serving, TaskExecutorGateway, Transport as _,
    v1,
};

fn unused<T>() -> Result<T, RpcError> {
    Err(RpcError::application("this test does not expect the call"))
}

/// A task executor that takes every task and runs none.
#[derive(Default)]
pub(super) struct FakeTaskExecutor {
    pub(super) life: u128,
    pub(super) beats: AtomicU64,
    pub(super) submitted: Mutex<Vec<v1::SubmitTaskRequest>>,
}

impl FakeTaskExecutor {
    pub(super) async fn serve(network: &InMemoryNetwork, life: u128) -> (Arc<Self>, Serving) {
        let fake = Arc::new(Self { life, ..Self::default() });
        let endpoint: Arc<dyn TaskExecutorGateway> = fake.clone();
        let endpoints = Endpoints { task_executor: Some(endpoint), ..Endpoints::default() };
        (fake, network.node("te-1").serve("127.0.0.1:6000", endpoints).await.unwrap())
    }
}

#[async_trait]
impl TaskExecutorGateway for FakeTaskExecutor {
    async fn request_slot(&self, _: v1::RequestSlotRequest) -> Result<v1::RequestSlotReply, RpcError> {
        unused()
    }

    async fn free_slot(&self, _: v1::FreeSlotRequest) -> Result<v1::Ack, RpcError> {
        Ok(v1::Ack::default())
    }

    async fn submit_task(&self, request: v1::SubmitTaskRequest) -> Result<v1::Ack, RpcError> {
        self.submitted.lock().unwrap().push(request);
        Ok(v1::Ack::default())
    }

    async fn cancel_task(&self, _: v1::CancelTaskRequest) -> Result<v1::Ack, RpcError> {
        Err(RpcError::unknown_target("it has ended"))
    }

    async fn trigger_checkpoint(&self, _: v1::TriggerCheckpointRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn heartbeat_from_resource_manager(
        &self,
        _: v1::HeartbeatToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        let sequence = self.beats.fetch_add(1, Ordering::Relaxed) + 1;
        let liveness = v1::LivenessFrame {
            incarnation: Incarnation::from_u128(self.life).to_wire(),
            sequence,
            ..v1::LivenessFrame::default()
        };
        Ok(v1::Ack { epoch: 0, liveness: Some(liveness) })
    }
}

/// A resource manager that registers every job master and has no slots.
#[derive(Default)]
pub(super) struct FakeResourceManager {
    pub(super) registrations: AtomicU64,
    /// The job masters' streams: dropping one ends it.
    pub(super) streams: Mutex<Vec<mpsc::UnboundedSender<Result<v1::ResourceManagerToJobMaster, RpcError>>>>,
}

impl FakeResourceManager {
    pub(super) async fn serve(network: &InMemoryNetwork) -> (Arc<Self>, Serving) {
        let fake = Arc::new(Self::default());
        let endpoint: Arc<dyn ResourceManagerGateway> = fake.clone();
        let endpoints = Endpoints { resource_manager: Some(endpoint), ..Endpoints::default() };
        (fake, network.node("resourcemanager").serve("127.0.0.1:6120", endpoints).await.unwrap())
    }
}

#[async_trait]
impl ResourceManagerGateway for FakeResourceManager {
    async fn register_task_executor(
        &self,
        _: v1::RegisterTaskExecutorRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        unused()
    }

    async fn send_slot_report(&self, _: v1::SendSlotReportRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn register_job_master(
        &self,
        _: v1::RegisterJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        self.registrations.fetch_add(1, Ordering::Relaxed);
        let success = v1::RegistrationSuccess {
            epoch: Epoch(4).0,
            resource_id: "rm".into(),
            incarnation: Incarnation::from_u128(4).to_wire(),
            ..v1::RegistrationSuccess::default()
        };
        Ok(v1::RegistrationReply { outcome: Some(v1::registration_reply::Outcome::Success(success)) })
    }

    async fn heartbeat_from_task_executor(
        &self,
        _: v1::HeartbeatFromTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        Ok(v1::Ack::default())
    }

    async fn describe_cluster(
        &self,
        _: v1::DescribeClusterRequest,
    ) -> Result<v1::ClusterDescription, RpcError> {
        Ok(v1::ClusterDescription::default())
    }

    async fn task_executor_stream(
        &self,
        _: MessageStream<v1::TaskExecutorToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToTaskExecutor>, RpcError> {
        unused()
    }

    async fn job_master_stream(
        &self,
        mut inbound: MessageStream<v1::JobMasterToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToJobMaster>, RpcError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams.lock().unwrap().push(sender);
        tokio::spawn(async move { while let Some(Ok(_)) = inbound.next().await {} });
        Ok(UnboundedReceiverStream::new(receiver).boxed())
    }
}
