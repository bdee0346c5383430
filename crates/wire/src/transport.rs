//! How roles reach each other: one interface for every connect and every listen.

use crate::address::Address;
use crate::error::RpcError;
use crate::gateway::{DataGateway, JobMasterGateway, ResourceManagerGateway, TaskExecutorGateway};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;

/// Messages of one direction of a stream, in order. After an error nothing follows.
pub type MessageStream<T> = BoxStream<'static, Result<T, RpcError>>;

/// The way to the peers and the place where they are served.
///
/// Connecting is lazy: it never fails and never waits, the first call does. Gateways to one address share one
/// connection, except those for data, which has connections of its own so that records never hold a heartbeat up.
/// A connection is closed when the last gateway to it is dropped.
#[async_trait::async_trait]
pub trait Transport: Send + Sync + 'static {
    /// The resource manager at this address.
    fn connect_resource_manager(&self, address: &Address) -> Arc<dyn ResourceManagerGateway>;

    /// The job master at this address.
    fn connect_job_master(&self, address: &Address) -> Arc<dyn JobMasterGateway>;

    /// The task executor at this address.
    fn connect_task_executor(&self, address: &Address) -> Arc<dyn TaskExecutorGateway>;

    /// The data exchange of the task executor whose data address this is.
    fn connect_data(&self, address: &Address) -> Arc<dyn DataGateway>;

    /// Serves `endpoints` at `bind` (`host:port`; port 0: any free one) until the returned handle ends it.
    ///
    /// # Errors
    ///
    /// [`ServeError`], where the place cannot be bound; nothing is served then.
    async fn serve(&self, bind: &str, endpoints: Endpoints) -> Result<Serving, ServeError>;
}

/// What is served at one place. A call to what is absent is refused as an unknown target.
#[derive(Clone, Default)]
pub struct Endpoints {
    /// A resource manager.
    pub resource_manager: Option<Arc<dyn ResourceManagerGateway>>,
    /// A job master.
    pub job_master: Option<Arc<dyn JobMasterGateway>>,
    /// A task executor.
    pub task_executor: Option<Arc<dyn TaskExecutorGateway>>,
    /// A task executor's data exchange.
    pub data: Option<Arc<dyn DataGateway>>,
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints")
            .field("resource_manager", &self.resource_manager.is_some())
            .field("job_master", &self.job_master.is_some())
            .field("task_executor", &self.task_executor.is_some())
            .field("data", &self.data.is_some())
            .finish()
    }
}

/// A place could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket cannot be had.
    #[error("cannot listen on `{bind}`: {source}; free the port or choose another address")]
    Bind {
        /// What was to be bound.
        bind: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// In an in-memory network: somebody of this node already serves there, or the node is no more.
    #[error("cannot serve `{bind}` on node `{node}`: {reason}")]
    Network {
        /// The node.
        node: String,
        /// What was to be bound.
        bind: String,
        /// Why not.
        reason: &'static str,
    },
}

/// A place that is being served. Dropping it ends the service at once; [`Serving::shutdown`] ends it in order.
#[must_use = "dropping it ends the service"]
pub struct Serving {
    local_address: Address,
    stop: Option<Box<dyn StopServing>>,
}

/// How a transport ends what it serves.
pub(crate) trait StopServing: Send + Sync {
    /// Takes no new call, lets running ones end for a bounded time, then breaks them off.
    fn in_order(self: Box<Self>) -> BoxFuture<'static, ()>;
    /// Breaks everything off.
    fn at_once(self: Box<Self>);
}

impl Serving {
    pub(crate) fn new(local_address: Address, stop: Box<dyn StopServing>) -> Self {
        Self { local_address, stop: Some(stop) }
    }

    /// Where it is served: the bound address with its real port.
    #[must_use]
    pub const fn local_address(&self) -> &Address {
        &self.local_address
    }

    /// Takes no new call, lets running calls and streams end for the transport's grace time, then breaks them off.
    pub async fn shutdown(mut self) {
        if let Some(stop) = self.stop.take() {
            stop.in_order().await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.at_once();
        }
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Serving({})", self.local_address)
    }
}
