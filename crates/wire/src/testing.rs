//! Roles that do as a test tells them.

use crate::error::RpcError;
use crate::gateway::{DataGateway, ResourceManagerGateway};
use crate::transport::{Endpoints, MessageStream};
use crate::v1;
use futures::future::BoxFuture;
use futures::stream::StreamExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Described = BoxFuture<'static, Result<v1::ClusterDescription, RpcError>>;

/// A resource manager whose one answer a test decides. Its streams acknowledge each message.
pub(crate) struct FakeResourceManager {
    describe: Box<dyn Fn() -> Described + Send + Sync>,
    /// How often it was asked.
    pub(crate) asked: AtomicU64,
}

impl FakeResourceManager {
    pub(crate) fn new<F>(describe: impl Fn() -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Result<v1::ClusterDescription, RpcError>> + Send + 'static,
    {
        let describe = Box::new(move || -> Described { Box::pin(describe()) });
        Arc::new(Self { describe, asked: AtomicU64::new(0) })
    }

    /// One that answers at once.
    pub(crate) fn ready() -> Arc<Self> {
        Self::new(|| async { Ok(v1::ClusterDescription { epoch: 7, ..Default::default() }) })
    }

    /// One that never answers.
    pub(crate) fn stuck() -> Arc<Self> {
        Self::new(std::future::pending)
    }

    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// What serves only this resource manager.
pub(crate) fn only(resource_manager: Arc<FakeResourceManager>) -> Endpoints {
    Endpoints { resource_manager: Some(resource_manager), ..Endpoints::default() }
}

fn absent<T>() -> Result<T, RpcError> {
    Err(RpcError::unknown_target("not part of the test"))
}

#[async_trait::async_trait]
impl ResourceManagerGateway for FakeResourceManager {
    async fn register_task_executor(
        &self,
        _: v1::RegisterTaskExecutorRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        absent()
    }

    async fn send_slot_report(&self, _: v1::SendSlotReportRequest) -> Result<v1::Ack, RpcError> {
        absent()
    }

    async fn register_job_master(
        &self,
        _: v1::RegisterJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        absent()
    }

    async fn heartbeat_from_task_executor(
        &self,
        _: v1::HeartbeatFromTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        absent()
    }

    async fn heartbeat_from_job_master(
        &self,
        _: v1::HeartbeatFromJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        absent()
    }

    async fn describe_cluster(
        &self,
        _: v1::DescribeClusterRequest,
    ) -> Result<v1::ClusterDescription, RpcError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (self.describe)().await
    }

    async fn task_executor_stream(
        &self,
        inbound: MessageStream<v1::TaskExecutorToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToTaskExecutor>, RpcError> {
        use crate::stream::Envelope as _;
        Ok(inbound
            .map(|message| message.map(|message| v1::ResourceManagerToTaskExecutor::ack(message.number)))
            .boxed())
    }

    async fn job_master_stream(
        &self,
        _: MessageStream<v1::JobMasterToResourceManager>,
    ) -> Result<MessageStream<v1::ResourceManagerToJobMaster>, RpcError> {
        absent()
    }
}

/// A data exchange that grants a credit for each frame.
pub(crate) struct FakeExchange;

#[async_trait::async_trait]
impl DataGateway for FakeExchange {
    async fn exchange(
        &self,
        inbound: MessageStream<v1::Frame>,
    ) -> Result<MessageStream<v1::Credit>, RpcError> {
        Ok(inbound.map(|frame| frame.map(|_| v1::Credit { batches: 1, paused: false })).boxed())
    }
}

/// Messages that a test sends by hand; dropping the sender ends them.
pub(crate) fn by_hand<T: Send + 'static>() -> (tokio::sync::mpsc::UnboundedSender<T>, MessageStream<T>) {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    (sender, futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)).map(Ok).boxed())
}

/// A message of this number.
pub(crate) fn numbered(number: u64) -> v1::TaskExecutorToResourceManager {
    v1::TaskExecutorToResourceManager { number, message: None }
}
