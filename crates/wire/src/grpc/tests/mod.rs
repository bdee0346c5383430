//! Tests of the gRPC transport over loopback, one file a topic.

mod faults;
mod limits;
mod serving;
mod version;

use super::{GrpcOptions, GrpcTransport};
use crate::address::Address;
use crate::error::RpcError;
use crate::gateway::ResourceManagerGateway;
use crate::transport::{Endpoints, Serving, Transport as _};
use crate::v1;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Short enough for a test, long enough for a machine under load.
const SHORT: Duration = Duration::from_millis(150);

fn transport(options: GrpcOptions) -> GrpcTransport {
    GrpcTransport::new(options, Handle::current())
}

async fn serve(options: GrpcOptions, endpoints: Endpoints) -> Serving {
    transport(options).serve("127.0.0.1:0", endpoints).await.unwrap()
}

/// A client of its own, as another process would be.
fn client(options: GrpcOptions, address: &Address) -> Arc<dyn ResourceManagerGateway> {
    transport(options).connect_resource_manager(address)
}

async fn describe(gateway: &Arc<dyn ResourceManagerGateway>) -> Result<v1::ClusterDescription, RpcError> {
    gateway.describe_cluster(v1::DescribeClusterRequest {}).await
}
