//! The peers that do as they are told, and the cluster of one task executor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use checkpoint::MemoryStores;
use connectors::call::RustCalls;
use entrypoint::config::Layers;
use entrypoint::{Config, Placement, Role, Server};
use futures::StreamExt;
use runtime_core::shutdown::Shutdown;
use runtime_core::time::TokioClock;
use runtime_core::{AllocationId, AttemptId, Epoch, EpochMillis, Incarnation, InstanceId, JobId, VertexId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::WireId;
use wire::network::{InMemoryNetwork, NetworkOptions};
use wire::v1::registration_reply::Outcome;
use wire::{
    Endpoints, JobMasterGateway, MessageStream, ResourceManagerGateway, RpcError, Serving,
    TaskExecutorGateway, Transport, v1,
};

use crate::TaskExecutor;

pub(super) const RM_EPOCH: u64 = 7;
pub(super) const RM_LIFE: Incarnation = Incarnation::from_u128(0x77);
pub(super) const INSTANCE: InstanceId = InstanceId::from_u128(0x11);
pub(super) const JM_EPOCH: u64 = 3;
pub(super) const JM_LIFE: Incarnation = Incarnation::from_u128(0x33);
pub(super) const JOB: JobId = JobId::from_u128(0xfeed);

pub(super) const fn allocation(n: u128) -> AllocationId {
    AllocationId::from_u128(n)
}

pub(super) const fn attempt(number: u32) -> AttemptId {
    AttemptId { job: JOB, term: Epoch(JM_EPOCH), vertex: VertexId(0), subtask: 0, attempt: number }
}

pub(super) fn fence(epoch: u64, life: Incarnation) -> Option<v1::Fence> {
    Some(v1::Fence { epoch, incarnation: life.to_wire() })
}

type Sender<T> = mpsc::UnboundedSender<Result<T, RpcError>>;

/// What a scripted peer has heard, and says.
pub(super) struct Script<In, Out> {
    /// Every call, in order.
    pub(super) calls: Mutex<Vec<String>>,
    /// Every message of its streams.
    pub(super) heard: Mutex<Vec<In>>,
    /// Answers to registrations; success where none is left.
    pub(super) registrations: Mutex<VecDeque<Outcome>>,
    streams: Mutex<Vec<Sender<Out>>>,
}

impl<In, Out> Default for Script<In, Out> {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            heard: Mutex::default(),
            registrations: Mutex::default(),
            streams: Mutex::default(),
        }
    }
}

impl<In: Clone + Send + 'static, Out: Send + 'static> Script<In, Out> {
    fn called(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    pub(super) fn count(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|c| c.starts_with(call)).count()
    }

    fn registration(&self, success: v1::RegistrationSuccess) -> v1::RegistrationReply {
        let next = self.registrations.lock().unwrap().pop_front();
        v1::RegistrationReply { outcome: Some(next.unwrap_or(Outcome::Success(success))) }
    }

    fn stream(self: &Arc<Self>, mut inbound: MessageStream<In>) -> MessageStream<Out> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams.lock().unwrap().push(sender);
        let script = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(Ok(message)) = inbound.next().await {
                script.heard.lock().unwrap().push(message);
            }
            script.called("stream ended");
        });
        UnboundedReceiverStream::new(receiver).boxed()
    }

    /// Says something on the newest stream.
    pub(super) fn say(&self, message: Out) {
        self.streams.lock().unwrap().last().unwrap().send(Ok(message)).unwrap();
    }

    /// Ends all streams.
    pub(super) fn end_streams(&self) {
        self.streams.lock().unwrap().clear();
    }

    pub(super) fn heard(&self) -> Vec<In> {
        self.heard.lock().unwrap().clone()
    }
}

pub(super) type RmScript = Script<v1::TaskExecutorToResourceManager, v1::ResourceManagerToTaskExecutor>;

#[derive(Default)]
pub(super) struct FakeResourceManager {
    pub(super) script: Arc<RmScript>,
    pub(super) reports: Mutex<Vec<v1::SlotReport>>,
}

#[async_trait]
impl ResourceManagerGateway for FakeResourceManager {
    async fn register_task_executor(
        &self,
        request: v1::RegisterTaskExecutorRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        self.script.called(format!(
            "register {} epoch {}",
            request.resource_id,
            request.fence.unwrap().epoch
        ));
        Ok(self.script.registration(v1::RegistrationSuccess {
            epoch: RM_EPOCH,
            resource_id: "rm".into(),
            instance_id: INSTANCE.to_wire(),
            incarnation: RM_LIFE.to_wire(),
            resumed: false,
        }))
    }

    async fn send_slot_report(&self, request: v1::SendSlotReportRequest) -> Result<v1::Ack, RpcError> {
        self.script.called(format!("report epoch {}", request.fence.unwrap().epoch));
        self.reports.lock().unwrap().push(request.report.unwrap());
        Ok(v1::Ack { epoch: RM_EPOCH, liveness: None })
    }

    async fn register_job_master(
        &self,
        _: v1::RegisterJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        Err(RpcError::application("no job master here"))
    }

    async fn heartbeat_from_task_executor(
        &self,
        request: v1::HeartbeatFromTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.script.called("heartbeat");
        self.reports.lock().unwrap().push(request.report.unwrap());
        Ok(v1::Ack { epoch: RM_EPOCH, liveness: None })
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        Err(RpcError::application("no job master here"))
    }

    async fn describe_cluster(
        &self,
        _: v1::DescribeClusterRequest,
    ) -> Result<v1::ClusterDescription, RpcError> {
        Ok(v1::ClusterDescription::default())
    }

    async fn task_executor_stream(
        &self,
        inbound: MessageStream<v1::TaskExecutorToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToTaskExecutor>, RpcError> {
        self.script.called("stream");
        Ok(self.script.stream(inbound))
    }

    async fn job_master_stream(
        &self,
        _: MessageStream<v1::JobMasterToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToJobMaster>, RpcError> {
        Err(RpcError::application("no job master here"))
    }
}

pub(super) type JmScript = Script<v1::TaskExecutorToJobMaster, v1::JobMasterToTaskExecutor>;

/// What becomes of an offer.
#[derive(Clone, Copy)]
pub(super) enum Offers {
    Accept,
    Reject,
    /// Never answers the first; accepts the others.
    Lose,
}

pub(super) struct FakeJobMaster {
    pub(super) script: Arc<JmScript>,
    pub(super) offers: Mutex<Offers>,
    /// Splits to hand out; where there is none the answer does not come.
    pub(super) splits: Mutex<VecDeque<Option<v1::FileSplit>>>,
    /// What was last reported as deployed.
    pub(super) deployed: Mutex<Vec<AttemptId>>,
}

#[async_trait]
impl JobMasterGateway for FakeJobMaster {
    async fn register_task_executor(
        &self,
        request: v1::RegisterAtJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        let epoch = request.fence.unwrap().epoch;
        self.script.called(format!("register epoch {epoch}"));
        Ok(self.script.registration(v1::RegistrationSuccess {
            epoch,
            resource_id: "jm".into(),
            instance_id: bytes::Bytes::new(),
            incarnation: JM_LIFE.to_wire(),
            resumed: false,
        }))
    }

    async fn offer_slots(&self, request: v1::OfferSlotsRequest) -> Result<v1::OfferSlotsReply, RpcError> {
        self.script.called(format!("offer {}", request.offers.len()));
        let offers = *self.offers.lock().unwrap();
        let accepted = match offers {
            Offers::Accept => request.offers.into_iter().map(|offer| offer.allocation_id).collect(),
            Offers::Reject => Vec::new(),
            Offers::Lose => {
                *self.offers.lock().unwrap() = Offers::Accept;
                std::future::pending().await
            }
        };
        Ok(v1::OfferSlotsReply { epoch: JM_EPOCH, accepted })
    }

    async fn request_next_input_split(
        &self,
        _: v1::RequestNextInputSplitRequest,
    ) -> Result<v1::RequestNextInputSplitReply, RpcError> {
        let next = self.splits.lock().unwrap().pop_front();
        match next {
            Some(split) => Ok(v1::RequestNextInputSplitReply { split, max_rate: 0.0 }),
            None => std::future::pending().await,
        }
    }

    async fn heartbeat_from_task_executor(
        &self,
        request: v1::HeartbeatToJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        self.script.called("heartbeat");
        let deployed = request.deployed.iter().map(|a| AttemptId::try_from(a).unwrap());
        *self.deployed.lock().unwrap() = deployed.collect();
        Ok(v1::Ack { epoch: JM_EPOCH, liveness: None })
    }

    async fn heartbeat_from_resource_manager(
        &self,
        _: v1::HeartbeatFromResourceManagerRequest,
    ) -> Result<v1::Ack, RpcError> {
        Ok(v1::Ack { epoch: JM_EPOCH, liveness: None })
    }

    async fn task_executor_stream(
        &self,
        inbound: MessageStream<v1::TaskExecutorToJobMaster>,
    ) -> Result<MessageStream<v1::JobMasterToTaskExecutor>, RpcError> {
        self.script.called("stream");
        Ok(self.script.stream(inbound))
    }
}

/// One task executor and its peers.
pub(super) struct Cluster {
    pub(super) network: InMemoryNetwork,
    pub(super) rm: Arc<FakeResourceManager>,
    pub(super) jm: Arc<FakeJobMaster>,
    pub(super) te: TaskExecutor,
    pub(super) dir: tempfile::TempDir,
    rm_node: Arc<dyn Transport>,
    _serving: Vec<Serving>,
}

impl Cluster {
    /// Started, and not registered yet.
    pub(super) async fn starting(prepare: impl FnOnce(&FakeResourceManager)) -> Self {
        Self::configured(&[], Placement::Tasks, prepare).await
    }

    /// Its loop and its tasks on threads of their own, and no clock is paused.
    pub(super) async fn on_threads(settings: &[&str]) -> Self {
        let mut cluster = Self::configured(settings, Placement::Threads, |_| {}).await;
        cluster.te.registered().await.unwrap();
        cluster
    }

    async fn configured(
        settings: &[&str],
        placement: Placement,
        prepare: impl FnOnce(&FakeResourceManager),
    ) -> Self {
        let network = InMemoryNetwork::new(NetworkOptions::calm(1));
        let rm = Arc::new(FakeResourceManager::default());
        prepare(&rm);
        let jm = Arc::new(FakeJobMaster {
            script: Arc::default(),
            offers: Mutex::new(Offers::Accept),
            splits: Mutex::default(),
            deployed: Mutex::default(),
        });
        let rm_node: Arc<dyn Transport> = Arc::new(network.node("rm"));
        let endpoints = Endpoints { resource_manager: Some(Arc::clone(&rm) as _), ..Endpoints::default() };
        let mut serving = vec![rm_node.serve("0.0.0.0:6120", endpoints).await.unwrap()];
        let endpoints = Endpoints { job_master: Some(Arc::clone(&jm) as _), ..Endpoints::default() };
        serving.push(network.node("jm").serve("0.0.0.0:6123", endpoints).await.unwrap());
        let set = [
            "resourcemanager.address=http://rm:6120",
            "taskexecutor.slots=2",
            "taskexecutor.resource-id=te1",
        ];
        let set = set.iter().chain(settings).copied().map(String::from).collect();
        let layers = Layers { set, ..Layers::default() };
        let config = Config::load(Role::TaskExecutor, &layers).unwrap();
        let clock = TokioClock::start_at(EpochMillis(1_000_000));
        let (server, _ready) = Server::embedded(config, clock, Shutdown::new().signal());
        let transport = Arc::new(network.node("te"));
        let stores = Arc::new(MemoryStores::new());
        let te = TaskExecutor::start(&server, transport, placement, RustCalls::default(), stores, 5)
            .await
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self { network, rm, jm, te, dir, rm_node, _serving: serving }
    }

    /// Registered at its resource manager.
    pub(super) async fn new() -> Self {
        let mut cluster = Self::starting(|_| {}).await;
        cluster.te.registered().await.unwrap();
        cluster
    }

    /// With one slot that the job has taken.
    pub(super) async fn with_active_slot() -> Self {
        Self::with_active_slot_and(&[]).await
    }

    /// The same, configured like this.
    pub(super) async fn with_active_slot_and(settings: &[&str]) -> Self {
        let mut cluster = Self::configured(settings, Placement::Tasks, |_| {}).await;
        cluster.te.registered().await.unwrap();
        cluster.request_slot(1).await.unwrap();
        settle().await;
        assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
        cluster
    }

    pub(super) fn gateway(&self) -> Arc<dyn TaskExecutorGateway> {
        self.rm_node.connect_task_executor(&self.te.rpc_address)
    }

    pub(super) fn slot_request(n: u128) -> v1::RequestSlotRequest {
        v1::RequestSlotRequest {
            fence: fence(RM_EPOCH, RM_LIFE),
            instance_id: INSTANCE.to_wire(),
            index: -1,
            job_id: JOB.to_wire(),
            allocation_id: allocation(n).to_wire(),
            job_master_address: "http://jm:6123".into(),
            job_master_epoch: JM_EPOCH,
        }
    }

    pub(super) async fn request_slot(&self, n: u128) -> Result<v1::RequestSlotReply, RpcError> {
        self.gateway().request_slot(Self::slot_request(n)).await
    }

    /// The slots as the resource manager is told of them when it asks.
    pub(super) async fn slot_states(&self) -> Vec<&'static str> {
        let request = v1::HeartbeatToTaskExecutorRequest {
            fence: fence(RM_EPOCH, RM_LIFE),
            resource_id: "rm".into(),
            instance_id: INSTANCE.to_wire(),
        };
        self.gateway().heartbeat_from_resource_manager(request).await.unwrap();
        settle().await;
        let reports = self.rm.reports.lock().unwrap();
        let state = |slot: &v1::SlotStatus| slot.state().as_str_name().trim_start_matches("SLOT_STATE_");
        reports.last().unwrap().slots.iter().map(state).collect()
    }

    /// The job master asks, holding these slots.
    pub(super) async fn job_master_beats(&self, held: &[u128]) -> Result<v1::Ack, RpcError> {
        let offer = |n: &u128| v1::SlotOffer { allocation_id: allocation(*n).to_wire(), index: 0 };
        let request = v1::HeartbeatFromJobMasterToTaskExecutorRequest {
            fence: fence(JM_EPOCH, JM_LIFE),
            job_id: JOB.to_wire(),
            resource_id: "jm".into(),
            allocated: held.iter().map(offer).collect(),
            asked_at: 0,
        };
        let answer = self.gateway().heartbeat_from_job_master(request).await;
        settle().await;
        answer
    }

    /// The allocations that the resource manager was told are free again.
    pub(super) fn available(&self) -> Vec<AllocationId> {
        use v1::task_executor_to_resource_manager::Message;
        let heard = self.rm.script.heard();
        let slot = |m: v1::TaskExecutorToResourceManager| match m.message {
            Some(Message::SlotAvailable(slot)) => AllocationId::from_wire(&slot.allocation_id, "").ok(),
            _ => None,
        };
        heard.into_iter().filter_map(slot).collect()
    }

    /// What the job master was told of tasks: numbers from the first on, attempts and states.
    pub(super) fn states(&self) -> Vec<(u64, u32, &'static str)> {
        let updates = self.updates();
        let before = updates.first().map_or(0, |(number, _)| number - 1);
        updates
            .into_iter()
            .map(|(number, update)| {
                let state = update.state().as_str_name().trim_start_matches("TASK_STATE_");
                (number - before, update.attempt.as_ref().unwrap().attempt, state)
            })
            .collect()
    }

    pub(super) fn updates(&self) -> Vec<(u64, v1::TaskStateUpdate)> {
        use v1::task_executor_to_job_master::Message;
        let update = |m: v1::TaskExecutorToJobMaster| match m.message {
            Some(Message::TaskState(update)) => Some((m.number, update)),
            _ => None,
        };
        self.jm.script.heard().into_iter().filter_map(update).collect()
    }

    pub(super) fn said_goodbye_to_job_master(&self) -> bool {
        use v1::task_executor_to_job_master::Message;
        self.jm.script.heard().iter().any(|m| matches!(m.message, Some(Message::Disconnect(_))))
    }

    /// A task that copies a file, in the slot of the first allocation.
    pub(super) fn task(&self, number: u32) -> v1::SubmitTaskRequest {
        self.task_of(number, "  - filter: n >= 0\n")
    }

    pub(super) fn task_of(&self, number: u32, steps: &str) -> v1::SubmitTaskRequest {
        let dir = self.dir.path().display();
        let job_file = format!(
            "name: copy\nsource: {{file: {{path: {dir}/in.jsonl}}}}\nsteps:\n{steps}sink: {{file: {{path: {dir}/out.jsonl}}}}\n"
        );
        v1::SubmitTaskRequest {
            fence: fence(JM_EPOCH, JM_LIFE),
            allocation_id: allocation(1).to_wire(),
            attempt: Some(attempt(number).into()),
            job_file: job_file.into_bytes().into(),
            origin_job_id: JOB.to_wire(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            restore: None,
        }
    }

    pub(super) fn acknowledge(&self, number: u64) {
        use v1::job_master_to_task_executor::Message;
        let ack = Message::Ack(v1::StreamAck { number });
        self.jm.script.say(v1::JobMasterToTaskExecutor { number: 0, message: Some(ack) });
    }
}

/// Lets everything happen that takes no more than the network's delays.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}

pub(super) async fn secs(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}
