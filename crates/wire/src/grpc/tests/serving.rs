//! Serving: ports, ends, connections.

use super::{SHORT, client, describe, serve, transport};
use crate::error::RpcErrorKind;
use crate::grpc::GrpcOptions;
use crate::testing::{FakeExchange, FakeResourceManager, by_hand, only};
use crate::transport::{Endpoints, ServeError, Transport as _};
use crate::v1;
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn port_zero_becomes_the_real_port() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    assert!(!serving.local_address().as_str().ends_with(":0"));
    assert!(describe(&client(GrpcOptions::default(), serving.local_address())).await.is_ok());
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let serving = serve(GrpcOptions::default(), Endpoints::default()).await;
    let place = serving.local_address().host_port();
    let error = transport(GrpcOptions::default()).serve(place, Endpoints::default()).await.unwrap_err();
    assert!(matches!(&error, ServeError::Bind { bind, .. } if bind == place));
    assert!(error.to_string().contains("in use"), "{error}");
}

#[tokio::test]
async fn what_is_not_served_is_an_unknown_target() {
    let data = Endpoints { data: Some(Arc::new(FakeExchange)), ..Endpoints::default() };
    let serving = serve(GrpcOptions::default(), data).await;
    let error = describe(&client(GrpcOptions::default(), serving.local_address())).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget, "{error}");
}

#[tokio::test]
async fn a_shutdown_lets_a_running_call_end() {
    let (begun, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&begun), Arc::clone(&finish));
    let role = FakeResourceManager::new(move || {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok(v1::ClusterDescription::default())
        }
    });
    let serving = serve(GrpcOptions::default(), only(role)).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let call = tokio::spawn(async move { describe(&gateway).await });
    begun.notified().await;
    let place = serving.local_address().host_port().to_owned();
    let shutdown = tokio::spawn(serving.shutdown());
    while tokio::net::TcpStream::connect(&place).await.is_ok() {
        tokio::task::yield_now().await;
    }
    finish.notify_one();
    assert!(call.await.unwrap().is_ok());
    shutdown.await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_although_calls_and_streams_do_not_and_frees_the_port() {
    let options = GrpcOptions { shutdown_grace: SHORT, ..GrpcOptions::default() };
    let role = FakeResourceManager::stuck();
    let serving = serve(options.clone(), only(Arc::clone(&role))).await;
    let address = serving.local_address().clone();
    let gateway = client(GrpcOptions::default(), &address);
    let (_sender, messages) = by_hand();
    let _stream = gateway.task_executor_stream(messages).await.unwrap();
    let asked = Arc::clone(&gateway);
    let call = tokio::spawn(async move { describe(&asked).await });
    while role.asked() == 0 {
        tokio::task::yield_now().await;
    }
    serving.shutdown().await;
    assert_eq!(call.await.unwrap().unwrap_err().kind, RpcErrorKind::Unreachable);

    let again =
        transport(options).serve(address.host_port(), only(FakeResourceManager::ready())).await.unwrap();
    assert!(describe(&gateway).await.is_ok());
    drop(again);
}

#[tokio::test]
async fn gateways_to_one_address_share_a_connection_that_goes_with_the_last_of_them() {
    let transport = transport(GrpcOptions::default());
    let address = "http://127.0.0.1:1".parse().unwrap();
    let first = transport.connect_resource_manager(&address);
    let second = transport.connect_job_master(&address);
    assert_eq!((transport.rpc.len(), transport.data.len()), (1, 0));
    let data = transport.connect_data(&address);
    assert_eq!((transport.rpc.len(), transport.data.len()), (1, 1), "data has connections of its own");
    drop(first);
    assert_eq!(transport.rpc.len(), 1);
    drop((second, data));
    assert_eq!((transport.rpc.len(), transport.data.len()), (0, 0));
}

#[tokio::test]
async fn a_stream_outlives_the_gateway_that_opened_it() {
    use futures::stream::StreamExt as _;
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    drop(gateway);
    for number in 1..=3 {
        sender.send(crate::testing::numbered(number)).unwrap();
        assert!(stream.next().await.unwrap().is_ok());
    }
    drop(sender);
    assert!(stream.next().await.is_none(), "the end of one direction reaches the other side");
}

#[test]
fn a_gateway_can_be_made_on_a_thread_without_a_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let transport = super::super::GrpcTransport::new(GrpcOptions::default(), runtime.handle().clone());
    let serving =
        runtime.block_on(transport.serve("127.0.0.1:0", only(FakeResourceManager::ready()))).unwrap();
    let gateway = transport.connect_resource_manager(serving.local_address());
    assert!(runtime.block_on(describe(&gateway)).is_ok());
}
