//! What a task executor's data exchange can be asked.

use crate::error::RpcError;
use crate::grpc::call::Calls;
use crate::grpc::service::{ReplyStream, ServiceRules, VersionCheck};
use crate::network::link::Link;
use crate::transport::MessageStream;
use crate::v1;
use tonic::service::interceptor::InterceptedService;

gateway! {
    /// The data exchange of a task executor: one stream a channel, opened by the producer.
    trait DataGateway, endpoint data,
    client data_client::DataClient, server data_server::Data / DataServer;
    unary {}
    streams {
        /// Batches one way, credits the other. The first frame names the channel.
        exchange(Frame) -> Credit as ExchangeStream;
    }
}
