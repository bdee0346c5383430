//! Peers of another version, and peers that are no Tidegate.

use super::{client, describe, serve};
use crate::address::Address;
use crate::error::RpcErrorKind;
use crate::grpc::GrpcOptions;
use crate::testing::{FakeResourceManager, by_hand, only};
use crate::v1;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

fn speaks(protocol_version: u32) -> GrpcOptions {
    GrpcOptions { protocol_version, ..GrpcOptions::default() }
}

#[tokio::test]
async fn c023_a_caller_of_another_version_is_refused_before_the_role_sees_anything() {
    let role = FakeResourceManager::ready();
    let serving = serve(speaks(1), only(role.clone())).await;
    let gateway = client(speaks(2), serving.local_address());
    let error = describe(&gateway).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Version);
    assert!(error.message.contains("peer speaks protocol 2, this is 1"), "{error}");
    let (_sender, messages) = by_hand();
    let refused = gateway.task_executor_stream(messages).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.kind, RpcErrorKind::Version, "{refused}");
    assert_eq!(role.asked(), 0);
}

/// A task executor without the header, or with that of another version.
struct Stranger(Option<&'static str>);

#[tonic::async_trait]
impl v1::task_executor_server::TaskExecutor for Stranger {
    async fn request_slot(
        &self,
        _: Request<v1::RequestSlotRequest>,
    ) -> Result<Response<v1::RequestSlotReply>, Status> {
        let mut response = Response::new(v1::RequestSlotReply::default());
        if let Some(version) = self.0 {
            response.metadata_mut().insert("tidegate-protocol", version.parse().unwrap());
        }
        Ok(response)
    }

    async fn free_slot(&self, _: Request<v1::FreeSlotRequest>) -> Result<Response<v1::Ack>, Status> {
        let mut status = Status::internal("some words");
        if let Some(version) = self.0 {
            status.metadata_mut().insert("tidegate-protocol", version.parse().unwrap());
        }
        Err(status)
    }

    async fn submit_task(&self, _: Request<v1::SubmitTaskRequest>) -> Result<Response<v1::Ack>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn cancel_task(&self, _: Request<v1::CancelTaskRequest>) -> Result<Response<v1::Ack>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn trigger_checkpoint(
        &self,
        _: Request<v1::TriggerCheckpointRequest>,
    ) -> Result<Response<v1::Ack>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn heartbeat_from_resource_manager(
        &self,
        _: Request<v1::HeartbeatToTaskExecutorRequest>,
    ) -> Result<Response<v1::Ack>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn heartbeat_from_job_master(
        &self,
        _: Request<v1::HeartbeatFromJobMasterToTaskExecutorRequest>,
    ) -> Result<Response<v1::Ack>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tokio::test]
async fn c023_an_answer_of_another_version_or_of_none_is_refused() {
    use crate::transport::Transport as _;
    for (version, words) in [(Some("2"), "peer speaks protocol 2, this is 1"), (None, "names no protocol")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::of_socket(listener.local_addr().unwrap());
        let service = v1::task_executor_server::TaskExecutorServer::new(Stranger(version));
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let server = tokio::spawn(
            tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming),
        );
        let gateway = super::transport(speaks(1)).connect_task_executor(&address);
        let error = gateway.request_slot(v1::RequestSlotRequest::default()).await.unwrap_err();
        assert_eq!(error.kind, RpcErrorKind::Version);
        assert!(error.message.contains(words), "{error}");

        let error = gateway.free_slot(v1::FreeSlotRequest::default()).await.unwrap_err();
        let expected = if version.is_some() { RpcErrorKind::Version } else { RpcErrorKind::Application };
        assert_eq!(error.kind, expected, "{error}");
        server.abort();
    }
}
