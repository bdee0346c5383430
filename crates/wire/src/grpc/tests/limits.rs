//! Messages that are too large.

use super::{client, describe, serve, transport};
use crate::error::{RpcError, RpcErrorKind};
use crate::grpc::GrpcOptions;
use crate::testing::{FakeExchange, FakeResourceManager, by_hand, only};
use crate::transport::{Endpoints, Transport as _};
use crate::v1;
use futures::stream::StreamExt as _;
use std::sync::Arc;

fn small() -> GrpcOptions {
    GrpcOptions { max_rpc_message: 1_000, max_data_message: 2_000, ..GrpcOptions::default() }
}

fn long_request() -> v1::RegisterTaskExecutorRequest {
    v1::RegisterTaskExecutorRequest { rpc_address: "x".repeat(5_000), ..Default::default() }
}

fn frame(bytes: usize) -> v1::Frame {
    let record = v1::RecordElement { line: vec![b'x'; bytes].into(), origin: None, timestamp: None };
    let element = v1::Element { element: Some(v1::element::Element::Record(record)) };
    let batch = v1::Batch { number: 1, elements: vec![element] };
    v1::Frame { frame: Some(v1::frame::Frame::Batch(batch)) }
}

fn assert_names(error: &RpcError, size: &str, limit: &str) {
    assert_eq!(error.kind, RpcErrorKind::TooLarge, "{error}");
    assert!(error.message.contains(size) && error.message.contains(limit), "{error}");
}

#[tokio::test]
async fn a_request_over_the_callers_limit_is_not_sent() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let error =
        client(small(), serving.local_address()).register_task_executor(long_request()).await.unwrap_err();
    assert_names(&error, "5003 bytes", "1000 bytes");
}

#[tokio::test]
async fn a_request_over_the_servers_limit_is_refused_by_it() {
    let serving = serve(small(), only(FakeResourceManager::ready())).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let error = gateway.register_task_executor(long_request()).await.unwrap_err();
    assert_names(&error, "5003 bytes", "1000 bytes");
    assert!(describe(&gateway).await.is_ok(), "the connection goes on");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error_that_names_it() {
    let role = FakeResourceManager::new(|| async {
        Ok(v1::ClusterDescription { resource_id: "x".repeat(5_000), ..Default::default() })
    });
    let serving = serve(small(), only(Arc::clone(&role))).await;
    let error = describe(&client(GrpcOptions::default(), serving.local_address())).await.unwrap_err();
    assert_names(&error, "5003 bytes", "1000 bytes");

    let serving = serve(GrpcOptions::default(), only(role)).await;
    let error = describe(&client(small(), serving.local_address())).await.unwrap_err();
    assert_names(&error, "5003 bytes", "1000 bytes");
}

#[tokio::test]
async fn a_frame_up_to_the_data_limit_passes_and_a_larger_one_breaks_its_stream() {
    let data = Endpoints { data: Some(Arc::new(FakeExchange)), ..Endpoints::default() };
    let serving = serve(small(), data).await;
    let gateway = transport(small()).connect_data(serving.local_address());
    let (sender, frames) = by_hand();
    let mut credits = gateway.exchange(frames).await.unwrap();
    sender.send(frame(1_900)).unwrap();
    assert_eq!(credits.next().await, Some(Ok(v1::Credit { batches: 1, paused: false })));
    sender.send(frame(3_000)).unwrap();
    let error = credits.next().await.unwrap().unwrap_err();
    assert_names(&error, "30", "2000 bytes");
}

#[tokio::test]
async fn a_job_file_of_ten_megabytes_travels() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let request = v1::RegisterTaskExecutorRequest { rpc_address: "x".repeat(10 << 20), ..Default::default() };
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let error = gateway.register_task_executor(request).await.unwrap_err();
    assert!(error.message.ends_with("not part of the test"), "the role was reached: {error}");
}
