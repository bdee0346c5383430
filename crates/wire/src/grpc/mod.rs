//! The transport between processes: gRPC over HTTP/2, by tonic.
//!
//! Calls have deadlines of our own, and failures are judged by their cause: tonic's status codes do not tell a dead
//! peer from a slow one. Connections watch themselves by HTTP/2 keep-alive, so that a stream to a stopped peer ends.

pub(crate) mod call;
mod channels;
mod incoming;
pub mod options;
mod server;
pub(crate) mod service;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod version;

pub use options::GrpcOptions;

use crate::address::Address;
use crate::gateway::{
    DataGateway, JobMasterGateway, ResourceManagerGateway, TaskExecutorGateway, data, job_master,
    resource_manager, task_executor,
};
use crate::transport::{Endpoints, ServeError, Serving, Transport};
use call::Calls;
use channels::Channels;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The [`Transport`] between processes. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct GrpcTransport {
    options: Arc<GrpcOptions>,
    runtime: Handle,
    rpc: Arc<Channels>,
    data: Arc<Channels>,
}

impl GrpcTransport {
    /// A transport whose connections and servers live on this tokio runtime, which has I/O and time enabled. Gateways
    /// may be made anywhere and are to be awaited on a tokio runtime with time enabled.
    #[must_use]
    pub fn new(options: GrpcOptions, runtime: Handle) -> Self {
        Self { options: Arc::new(options), runtime, rpc: Arc::default(), data: Arc::default() }
    }

    fn rpc_calls(&self, address: &Address) -> Calls {
        let _runtime = self.runtime.enter();
        let connection = self.rpc.to(address, |at| self.options.endpoint(at));
        Calls::new(connection, &self.options, self.options.max_rpc_message)
    }

    fn data_calls(&self, address: &Address) -> Calls {
        let _runtime = self.runtime.enter();
        let connection = self.data.to(address, |at| self.options.data_endpoint(at));
        Calls::new(connection, &self.options, self.options.max_data_message)
    }
}

#[async_trait::async_trait]
impl Transport for GrpcTransport {
    fn connect_resource_manager(&self, address: &Address) -> Arc<dyn ResourceManagerGateway> {
        Arc::new(resource_manager::GrpcClient::new(self.rpc_calls(address)))
    }

    fn connect_job_master(&self, address: &Address) -> Arc<dyn JobMasterGateway> {
        Arc::new(job_master::GrpcClient::new(self.rpc_calls(address)))
    }

    fn connect_task_executor(&self, address: &Address) -> Arc<dyn TaskExecutorGateway> {
        Arc::new(task_executor::GrpcClient::new(self.rpc_calls(address)))
    }

    fn connect_data(&self, address: &Address) -> Arc<dyn DataGateway> {
        Arc::new(data::GrpcClient::new(self.data_calls(address)))
    }

    async fn serve(&self, bind: &str, endpoints: Endpoints) -> Result<Serving, ServeError> {
        server::serve(bind, endpoints, &self.options, &self.runtime).await
    }
}

impl std::fmt::Debug for GrpcTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcTransport").field("options", &self.options).finish_non_exhaustive()
    }
}
