//! A node of the in-memory network as a transport.

use super::link::Link;
use super::state::{Life, Shared};
use crate::address::Address;
use crate::gateway::{
    DataGateway, JobMasterGateway, ResourceManagerGateway, TaskExecutorGateway, data, job_master,
    resource_manager, task_executor,
};
use crate::transport::{Endpoints, ServeError, Serving, StopServing, Transport};
use futures::future::BoxFuture;
use std::sync::Arc;

/// One life of a node. After a crash everything it asks is unreachable; its next life is another `NodeTransport`.
#[derive(Clone)]
pub struct NodeTransport {
    shared: Arc<Shared>,
    life: Life,
}

impl NodeTransport {
    pub(super) fn new(shared: Arc<Shared>, name: &str) -> Self {
        let life = shared.life(name);
        Self { shared, life }
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.life.node
    }

    fn link(&self, address: &Address) -> Link {
        Link::new(Arc::clone(&self.shared), self.life.clone(), address)
    }
}

#[async_trait::async_trait]
impl Transport for NodeTransport {
    fn connect_resource_manager(&self, address: &Address) -> Arc<dyn ResourceManagerGateway> {
        Arc::new(resource_manager::LinkClient::new(self.link(address)))
    }

    fn connect_job_master(&self, address: &Address) -> Arc<dyn JobMasterGateway> {
        Arc::new(job_master::LinkClient::new(self.link(address)))
    }

    fn connect_task_executor(&self, address: &Address) -> Arc<dyn TaskExecutorGateway> {
        Arc::new(task_executor::LinkClient::new(self.link(address)))
    }

    fn connect_data(&self, address: &Address) -> Arc<dyn DataGateway> {
        Arc::new(data::LinkClient::new(self.link(address)))
    }

    async fn serve(&self, bind: &str, endpoints: Endpoints) -> Result<Serving, ServeError> {
        let fail =
            |reason| ServeError::Network { node: self.life.node.to_string(), bind: bind.to_owned(), reason };
        let port = bind.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| fail("it does not end in a port"))?;
        let (port, id) = self.shared.serve(&self.life, port, endpoints).map_err(fail)?;
        let address = format!("http://{}:{port}", self.life.node).parse();
        let stop = Box::new(NodeServer { shared: Arc::clone(&self.shared), id });
        match address {
            Ok(address) => Ok(Serving::new(address, stop)),
            Err(_) => {
                stop.at_once();
                Err(fail("the node's name is no host name"))
            }
        }
    }
}

impl std::fmt::Debug for NodeTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeTransport({}, life {})", self.life.node, self.life.number)
    }
}

/// What a node serves. Ending it refuses new calls; those that run end by themselves.
struct NodeServer {
    shared: Arc<Shared>,
    id: u64,
}

impl StopServing for NodeServer {
    fn in_order(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.at_once();
        Box::pin(std::future::ready(()))
    }

    fn at_once(self: Box<Self>) {
        self.shared.end_serving(self.id);
    }
}
