//! The peers that do as they are told, and the cluster of one resource manager.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use entrypoint::config::Layers;
use entrypoint::{Config, Placement, Role, Server};
use futures::StreamExt as _;
use runtime_core::shutdown::Shutdown;
use runtime_core::time::TokioClock;
use runtime_core::{Epoch, EpochMillis, Incarnation, JobId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::WireId as _;
use wire::network::{InMemoryNetwork, NetworkOptions};
use wire::v1::registration_reply::Outcome;
use wire::{
    Endpoints, JobMasterGateway, MessageStream, ResourceManagerGateway, RpcError, Serving,
    TaskExecutorGateway, Transport, v1,
};

use crate::ResourceManager;
use crate::workers::WorkerDriver;

pub(super) const RM_EPOCH: u64 = 9;
pub(super) const JOB: JobId = JobId::from_u128(0xfeed);

/// A task executor that says yes to everything, for one life.
#[derive(Default)]
pub(super) struct FakeTaskExecutor {
    pub(super) life: u128,
    /// How long the next heartbeat call takes, in milliseconds.
    pub(super) hang_once: AtomicU64,
    pub(super) beats: AtomicU64,
    pub(super) slot_requests: Mutex<Vec<v1::RequestSlotRequest>>,
}

fn unused<T>() -> Result<T, RpcError> {
    Err(RpcError::application("this test does not expect the call"))
}

#[async_trait]
impl TaskExecutorGateway for FakeTaskExecutor {
    async fn request_slot(&self, request: v1::RequestSlotRequest) -> Result<v1::RequestSlotReply, RpcError> {
        self.slot_requests.lock().unwrap().push(request);
        Ok(v1::RequestSlotReply::default())
    }

    async fn free_slot(&self, _: v1::FreeSlotRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn submit_task(&self, _: v1::SubmitTaskRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn cancel_task(&self, _: v1::CancelTaskRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn trigger_checkpoint(&self, _: v1::TriggerCheckpointRequest) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn heartbeat_from_resource_manager(
        &self,
        _: v1::HeartbeatToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        let sequence = self.beats.fetch_add(1, Ordering::Relaxed) + 1;
        let hang = self.hang_once.swap(0, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(hang)).await;
        let liveness = v1::LivenessFrame {
            incarnation: Incarnation::from_u128(self.life).to_wire(),
            sequence,
            ..v1::LivenessFrame::default()
        };
        Ok(v1::Ack { epoch: 0, liveness: Some(liveness) })
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        unused()
    }
}

/// A job master that is only there.
#[derive(Default)]
pub(super) struct FakeJobMaster {
    pub(super) beats: AtomicU64,
}

#[async_trait]
impl JobMasterGateway for FakeJobMaster {
    async fn register_task_executor(
        &self,
        _: v1::RegisterAtJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        unused()
    }

    async fn offer_slots(&self, _: v1::OfferSlotsRequest) -> Result<v1::OfferSlotsReply, RpcError> {
        unused()
    }

    async fn request_next_input_split(
        &self,
        _: v1::RequestNextInputSplitRequest,
    ) -> Result<v1::RequestNextInputSplitReply, RpcError> {
        unused()
    }

    async fn heartbeat_from_task_executor(
        &self,
        _: v1::HeartbeatToJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        unused()
    }

    async fn heartbeat_from_resource_manager(
        &self,
        _: v1::HeartbeatFromResourceManagerRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.beats.fetch_add(1, Ordering::Relaxed);
        Ok(v1::Ack::default())
    }

    async fn task_executor_stream(
        &self,
        _: MessageStream<v1::TaskExecutorToJobMaster>,
    ) -> Result<MessageStream<v1::JobMasterToTaskExecutor>, RpcError> {
        unused()
    }
}

/// What a stream is written to, and what has come on it.
pub(super) struct Talk<Out, In> {
    pub(super) say: mpsc::UnboundedSender<Result<Out, RpcError>>,
    pub(super) heard: Arc<Mutex<Vec<In>>>,
}

pub(super) struct World {
    pub(super) network: InMemoryNetwork,
    pub(super) gateway: Arc<dyn ResourceManagerGateway>,
    _resource_manager: ResourceManager,
    serving: Mutex<Vec<(String, Serving)>>,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(&[], None).await
    }

    /// With settings and a driver of workers, which are to have two slots as all task executors here.
    pub(super) async fn with(more: &[&str], driver: Option<Arc<dyn WorkerDriver>>) -> Self {
        let network = InMemoryNetwork::new(NetworkOptions::calm(3));
        let set = ["heartbeat.interval=1s", "heartbeat.timeout=5s", "taskexecutor.slots=2"];
        let set = set.iter().chain(more).map(|&one| one.to_owned()).collect();
        let config =
            Config::load(Role::ResourceManager, &Layers { file: None, environment: Vec::new(), set })
                .unwrap();
        let clock = TokioClock::start_at(EpochMillis(0));
        let (server, _) = Server::embedded(config, clock, Shutdown::new().signal());
        let transport = Arc::new(network.node("rm"));
        let resource_manager =
            ResourceManager::start_with(&server, transport, Placement::Tasks, Epoch(RM_EPOCH), 5, driver)
                .await
                .unwrap();
        let gateway = network.node("test").connect_resource_manager(&resource_manager.rpc_address);
        Self { network, gateway, _resource_manager: resource_manager, serving: Mutex::default() }
    }

    /// A task executor that serves at its node.
    pub(super) async fn task_executor(&self, name: &str, life: u128) -> Arc<FakeTaskExecutor> {
        let fake = Arc::new(FakeTaskExecutor { life, ..FakeTaskExecutor::default() });
        let endpoint: Arc<dyn TaskExecutorGateway> = fake.clone();
        let endpoints = Endpoints { task_executor: Some(endpoint), ..Endpoints::default() };
        self.serve(name, endpoints).await;
        fake
    }

    pub(super) async fn job_master(&self, name: &str) -> Arc<FakeJobMaster> {
        let fake = Arc::new(FakeJobMaster::default());
        let endpoint: Arc<dyn JobMasterGateway> = fake.clone();
        self.serve(name, Endpoints { job_master: Some(endpoint), ..Endpoints::default() }).await;
        fake
    }

    async fn serve(&self, name: &str, endpoints: Endpoints) {
        let serving = self.network.node(name).serve("127.0.0.1:6000", endpoints).await.unwrap();
        self.serving.lock().unwrap().push((name.to_owned(), serving));
    }

    pub(super) async fn register(&self, name: &str, life: u128) -> Outcome {
        self.register_with(name, life, RM_EPOCH).await.unwrap()
    }

    pub(super) async fn register_with(
        &self,
        name: &str,
        life: u128,
        epoch: u64,
    ) -> Result<Outcome, RpcError> {
        let request = v1::RegisterTaskExecutorRequest {
            fence: fence(epoch, life),
            resource_id: name.to_owned(),
            rpc_address: format!("http://{name}:6000"),
            data_address: format!("http://{name}:6001"),
            slots: 2,
            ..v1::RegisterTaskExecutorRequest::default()
        };
        Ok(self.gateway.register_task_executor(request).await?.outcome.unwrap())
    }

    /// Registered, reported with two free slots, and its stream open.
    pub(super) async fn join(
        &self,
        name: &str,
        life: u128,
    ) -> Talk<v1::TaskExecutorToResourceManager, v1::ResourceManagerToTaskExecutor> {
        let Outcome::Success(success) = self.register(name, life).await else { panic!("not registered") };
        let free =
            |index| v1::SlotStatus { index, state: v1::SlotState::Free.into(), ..v1::SlotStatus::default() };
        let report = v1::SendSlotReportRequest {
            fence: fence(RM_EPOCH, life),
            resource_id: name.to_owned(),
            instance_id: success.instance_id.clone(),
            report: Some(v1::SlotReport { slots: vec![free(0), free(1)] }),
        };
        self.gateway.send_slot_report(report).await.unwrap();
        let hello = v1::task_executor_to_resource_manager::Message::Hello(v1::TaskExecutorHello {
            fence: fence(RM_EPOCH, life),
            resource_id: name.to_owned(),
            instance_id: success.instance_id,
        });
        let (say, outbound) = mpsc::unbounded_channel();
        say.send(Ok(v1::TaskExecutorToResourceManager { number: 0, message: Some(hello) })).unwrap();
        let inbound =
            self.gateway.task_executor_stream(UnboundedReceiverStream::new(outbound).boxed()).await.unwrap();
        Talk { say, heard: hear(inbound) }
    }

    pub(super) async fn register_job_master(
        &self,
        name: &str,
        life: u128,
        epoch: u64,
    ) -> Result<Outcome, RpcError> {
        let request = v1::RegisterJobMasterRequest {
            fence: fence(RM_EPOCH, life),
            job_id: JOB.to_wire(),
            job_name: "a job".to_owned(),
            resource_id: name.to_owned(),
            rpc_address: format!("http://{name}:6000"),
            job_master_epoch: epoch,
        };
        Ok(self.gateway.register_job_master(request).await?.outcome.unwrap())
    }

    /// Registered, its stream open, with a need for `slots`.
    pub(super) async fn lead(
        &self,
        name: &str,
        life: u128,
        epoch: u64,
        slots: u32,
    ) -> Talk<v1::JobMasterToResourceManager, v1::ResourceManagerToJobMaster> {
        use v1::job_master_to_resource_manager::Message;
        let Ok(Outcome::Success(_)) = self.register_job_master(name, life, epoch).await else {
            panic!("not registered")
        };
        let hello = v1::JobMasterHello {
            fence: fence(RM_EPOCH, life),
            job_id: JOB.to_wire(),
            resource_id: name.to_owned(),
            job_master_epoch: epoch,
        };
        let (say, outbound) = mpsc::unbounded_channel();
        let needs = v1::ResourceRequirements { version: 1, slots };
        for (number, message) in [(0, Message::Hello(hello)), (1, Message::Requirements(needs))] {
            say.send(Ok(v1::JobMasterToResourceManager { number, message: Some(message) })).unwrap();
        }
        let inbound =
            self.gateway.job_master_stream(UnboundedReceiverStream::new(outbound).boxed()).await.unwrap();
        Talk { say, heard: hear(inbound) }
    }

    pub(super) async fn describe(&self) -> v1::ClusterDescription {
        self.gateway.describe_cluster(v1::DescribeClusterRequest {}).await.unwrap()
    }

    pub(super) async fn cluster(&self) -> Vec<v1::TaskExecutorDescription> {
        self.describe().await.task_executors
    }
}

fn hear<T: Send + 'static>(mut inbound: MessageStream<T>) -> Arc<Mutex<Vec<T>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Some(Ok(message)) = inbound.next().await {
            all.lock().unwrap().push(message);
        }
    });
    heard
}

pub(super) fn fence(epoch: u64, life: u128) -> Option<v1::Fence> {
    Some(v1::Fence { epoch, incarnation: Incarnation::from_u128(life).to_wire() })
}

/// Lets what is under way arrive.
pub(super) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
