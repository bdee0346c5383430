//! What a caller learns when things break.

use super::{SHORT, client, describe, serve};
use crate::address::Address;
use crate::error::{RpcError, RpcErrorKind};
use crate::grpc::GrpcOptions;
use crate::testing::{FakeResourceManager, by_hand, numbered, only};
use futures::stream::StreamExt as _;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

#[tokio::test]
async fn every_kind_of_refusal_arrives_with_its_kind_and_names_call_and_peer() {
    for kind in RpcErrorKind::ALL {
        let refuses = FakeResourceManager::new(move || async move {
            Err(RpcError { kind, message: "says the role".to_owned() })
        });
        let serving = serve(GrpcOptions::default(), only(refuses)).await;
        let error = describe(&client(GrpcOptions::default(), serving.local_address())).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.message.contains("resource_manager.describe_cluster at http://127.0.0.1:"), "{error}");
        assert!(error.message.ends_with("says the role"), "{error}");
    }
}

#[tokio::test]
async fn h035_a_server_without_the_endpoint_refuses_heartbeats_as_if_nobody_were_there() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let transport = super::transport(GrpcOptions::default());
    let gateway = crate::Transport::connect_task_executor(&transport, serving.local_address());
    let services = heartbeat::HeartbeatServices::new(heartbeat::HeartbeatOptions::default()).unwrap();
    let mut manager = services.create_heartbeat_manager_sender::<_, u32>("task executor");
    let now = runtime_core::Tick::ZERO;
    manager.monitor_target("te-1", 1, now);
    let clock = runtime_core::time::TokioClock::start_at(runtime_core::EpochMillis(0));
    let mut verdict = None;
    for _ in 0..2 {
        assert_eq!(verdict, None, "at the second refusal, not before");
        let request = crate::v1::HeartbeatToTaskExecutorRequest::default();
        let call = gateway.heartbeat_from_resource_manager(request);
        let end = crate::liveness::BeatEnd::of(&clock, std::time::Duration::from_secs(10), call).await;
        assert_eq!(end.outcome(), heartbeat::RpcOutcome::Unreachable, "{end:?}");
        verdict = manager.rpc_outcome(&"te-1", &1, end.end, now);
    }
    let verdict = verdict.unwrap();
    assert_eq!(verdict.reason, heartbeat::Reason::Unreachable);
    assert!(verdict.to_string().contains("last error:"), "{verdict}");
}

#[tokio::test]
async fn a_refused_connection_is_unreachable_and_the_next_call_finds_a_server_that_came_later() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gateway = client(GrpcOptions::default(), &Address::of_socket(port));
    assert_eq!(describe(&gateway).await.unwrap_err().kind, RpcErrorKind::Unreachable);

    let endpoints = only(FakeResourceManager::ready());
    let server = super::transport(GrpcOptions::default());
    let _serving = crate::transport::Transport::serve(&server, &port.to_string(), endpoints).await.unwrap();
    assert_eq!(describe(&gateway).await.unwrap().epoch, 7);
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_call_is_unreachable() {
    let begun = Arc::new(Notify::new());
    let tell = Arc::clone(&begun);
    let role = FakeResourceManager::new(move || {
        tell.notify_one();
        std::future::pending()
    });
    let serving = serve(GrpcOptions::default(), only(role)).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    sender.send(numbered(1)).unwrap();
    assert!(stream.next().await.unwrap().is_ok());

    let call = tokio::spawn(async move { describe(&gateway).await });
    begun.notified().await;
    drop(serving);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Unreachable, "{error}");
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Unreachable, "{error}");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_role_that_does_not_answer_hits_our_own_deadline() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::stuck())).await;
    let options = GrpcOptions { call_timeout: SHORT, ..GrpcOptions::default() };
    let error = describe(&client(options, serving.local_address())).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Deadline);
    assert!(error.message.contains("150ms"), "{error}");
}

#[tokio::test]
async fn a_process_that_accepts_and_never_answers_hits_the_deadline_and_keep_alive_comes_first() {
    // The kernel accepts for a stopped process.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::of_socket(listener.local_addr().unwrap());
    let options = GrpcOptions { call_timeout: SHORT, ..GrpcOptions::default() };
    let error = describe(&client(options, &address)).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Deadline, "{error}");

    let options =
        GrpcOptions { keep_alive_interval: SHORT, keep_alive_timeout: SHORT, ..GrpcOptions::default() };
    let error = describe(&client(options, &address)).await.unwrap_err();
    // Silence is no refusal: it must not count as one, however short keep-alive is.
    assert_eq!(error.kind, RpcErrorKind::Deadline, "{error}");
    assert!(error.message.contains("keep-alive"), "{error}");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_call_and_not_the_server() {
    let role = FakeResourceManager::new(|| async { panic!("a planted panic") });
    let serving = serve(GrpcOptions::default(), only(Arc::clone(&role))).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let error = describe(&gateway).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Application, "{error}");
    let _second = describe(&gateway).await.unwrap_err();
    assert_eq!(role.asked(), 2);
}

#[tokio::test]
async fn garbage_on_the_port_does_not_harm_the_server() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let mut garbage: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 100_000],
        vec![0xff; 9],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0xff; 4_000]].concat(),
    ];
    // A TLS greeting.
    garbage.push([&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3], [7_u8; 500].as_slice()].concat());
    for bytes in garbage {
        let mut socket = TcpStream::connect(serving.local_address().host_port()).await.unwrap();
        // The server may close before it has read all.
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
    }
    let gateway = client(GrpcOptions::default(), serving.local_address());
    assert_eq!(describe(&gateway).await.unwrap().epoch, 7);
}

#[tokio::test]
async fn a_connection_that_stays_silent_is_closed_and_one_that_speaks_is_kept() {
    let options = GrpcOptions { first_byte_timeout: SHORT, ..GrpcOptions::default() };
    let serving = serve(options, only(FakeResourceManager::ready())).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();

    let mut silent = TcpStream::connect(serving.local_address().host_port()).await.unwrap();
    // The server's first frame comes at once; then it hangs up.
    let mut greeting = Vec::new();
    let _ = silent.read_to_end(&mut greeting).await;

    sender.send(numbered(1)).unwrap();
    assert!(stream.next().await.unwrap().is_ok());
}

#[tokio::test]
async fn an_error_in_the_outgoing_messages_is_told_to_the_one_who_opened_the_stream() {
    let serving = serve(GrpcOptions::default(), only(FakeResourceManager::ready())).await;
    let gateway = client(GrpcOptions::default(), serving.local_address());
    let messages = futures::stream::iter([Err(RpcError::application("cannot go on"))]).boxed();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(error.message.ends_with("cannot go on"), "{error}");
}
