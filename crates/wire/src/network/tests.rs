//! Tests of the in-memory network, on a paused clock.

use super::{Fate, Faults, InMemoryNetwork, Loss, NetworkOptions, NodeTransport};
use crate::error::RpcErrorKind;
use crate::gateway::ResourceManagerGateway;
use crate::testing::{FakeResourceManager, by_hand, numbered, only};
use crate::transport::{Serving, Transport as _};
use crate::v1;
use futures::future::FutureExt as _;
use futures::stream::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const CALL: v1::DescribeClusterRequest = v1::DescribeClusterRequest {};
const MS: Duration = Duration::from_millis(1);

/// A resource manager on node `rm` and a way to it from node `te`.
async fn pair(
    options: NetworkOptions,
    role: Arc<FakeResourceManager>,
) -> (InMemoryNetwork, Serving, Arc<dyn ResourceManagerGateway>) {
    let network = InMemoryNetwork::new(options);
    let serving = network.node("rm").serve("0.0.0.0:6120", only(role)).await.unwrap();
    assert_eq!(serving.local_address().as_str(), "http://rm:6120");
    let gateway = network.node("te").connect_resource_manager(serving.local_address());
    (network, serving, gateway)
}

fn with(faults: Faults) -> NetworkOptions {
    NetworkOptions { faults, ..NetworkOptions::calm(1) }
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_the_delay_of_both_ways() {
    let (network, _serving, gateway) = pair(NetworkOptions::calm(1), FakeResourceManager::ready()).await;
    let begun = Instant::now();
    assert_eq!(gateway.describe_cluster(CALL).await.unwrap().epoch, 7);
    assert_eq!(begun.elapsed(), 2 * MS);
    let lines: Vec<String> = network.log().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "    0.000000 te -> rm resource_manager.describe_cluster > delivered after 1ms",
            "    0.001000 rm -> te resource_manager.describe_cluster < delivered after 1ms",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_at_the_address_is_unreachable_and_a_missing_role_an_unknown_target() {
    let (network, serving, gateway) = pair(NetworkOptions::calm(1), FakeResourceManager::ready()).await;
    let data = network.node("te").connect_data(serving.local_address());
    let (_frames, messages) = by_hand();
    assert_eq!(data.exchange(messages).await.map(|_| ()).unwrap_err().kind, RpcErrorKind::UnknownTarget);
    serving.shutdown().await;
    let error = gateway.describe_cluster(CALL).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Unreachable);
    assert!(error.message.contains("resource_manager.describe_cluster at http://rm:6120"), "{error}");
    assert_eq!(network.log().last().unwrap().fate, Fate::Refused(MS));
}

#[tokio::test(start_paused = true)]
async fn a_call_over_a_cut_link_ends_at_its_deadline_and_passes_again_when_healed() {
    let role = FakeResourceManager::ready();
    let (network, _serving, gateway) = pair(NetworkOptions::calm(1), Arc::clone(&role)).await;
    network.cut("te", "rm");
    let begun = Instant::now();
    assert_eq!(gateway.describe_cluster(CALL).await.unwrap_err().kind, RpcErrorKind::Deadline);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(role.asked(), 0);
    network.heal("te", "rm");
    assert!(gateway.describe_cluster(CALL).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn where_only_answers_are_cut_the_call_is_carried_out_and_its_answer_lost() {
    let role = FakeResourceManager::ready();
    let (network, _serving, gateway) = pair(NetworkOptions::calm(1), Arc::clone(&role)).await;
    network.cut_one_way("rm", "te");
    assert_eq!(gateway.describe_cluster(CALL).await.unwrap_err().kind, RpcErrorKind::Deadline);
    assert_eq!(role.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_loss_shows_as_the_faults_say() {
    for (loss_shows, kind) in
        [(Loss::Silent, RpcErrorKind::Deadline), (Loss::Unreachable, RpcErrorKind::Unreachable)]
    {
        let faults = Faults { loss: 1.0, loss_shows, ..Faults::default() };
        let (_network, _serving, gateway) = pair(with(faults), FakeResourceManager::ready()).await;
        assert_eq!(gateway.describe_cluster(CALL).await.unwrap_err().kind, kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_call_is_carried_out_twice_and_answered_once() {
    let role = FakeResourceManager::ready();
    let faults = Faults { duplication: 1.0, ..Faults::default() };
    let (_network, _serving, gateway) = pair(with(faults), Arc::clone(&role)).await;
    assert!(gateway.describe_cluster(CALL).await.is_ok());
    tokio::time::sleep(5 * MS).await;
    assert_eq!(role.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_handler_goes_on_when_its_caller_gives_up() {
    let (done, told) = tokio::sync::mpsc::unbounded_channel();
    let role = FakeResourceManager::new(move || {
        let done = done.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            done.send(()).unwrap();
            Ok(v1::ClusterDescription::default())
        }
    });
    let (_network, _serving, gateway) = pair(NetworkOptions::calm(1), role).await;
    assert_eq!(gateway.describe_cluster(CALL).await.unwrap_err().kind, RpcErrorKind::Deadline);
    let mut told = told;
    assert_eq!(told.recv().await, Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_calls_streams_and_services_and_the_next_life_serves_again() {
    let (network, _serving, gateway) = pair(NetworkOptions::calm(1), FakeResourceManager::stuck()).await;
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    let asked = Arc::clone(&gateway);
    let call = tokio::spawn(async move { asked.describe_cluster(CALL).await });
    tokio::time::sleep(5 * MS).await;
    let old = network.node("rm");
    network.crash("rm");
    assert_eq!(call.await.unwrap().unwrap_err().kind, RpcErrorKind::Unreachable);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, RpcErrorKind::Unreachable);
    assert!(stream.next().await.is_none());
    tokio::time::sleep(5 * MS).await;
    assert!(sender.is_closed(), "the sender learns it as well");
    assert_eq!(gateway.describe_cluster(CALL).await.unwrap_err().kind, RpcErrorKind::Unreachable);

    assert!(old.serve("rm:6120", only(FakeResourceManager::ready())).await.is_err(), "the old life is over");
    let te = network.node("te").serve("te:0", only(FakeResourceManager::ready())).await.unwrap();
    let from_old = old.connect_resource_manager(te.local_address());
    assert_eq!(from_old.describe_cluster(CALL).await.unwrap_err().kind, RpcErrorKind::Unreachable);
    let _serving = network.node("rm").serve("rm:6120", only(FakeResourceManager::ready())).await.unwrap();
    assert!(gateway.describe_cluster(CALL).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stream_over_a_cut_link_stalls_and_delivers_everything_in_order_when_healed() {
    let (network, _serving, gateway) = pair(NetworkOptions::calm(1), FakeResourceManager::ready()).await;
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    sender.send(numbered(1)).unwrap();
    assert_eq!(ack(stream.next().await), 1);
    network.cut("te", "rm");
    for number in 2..=4 {
        sender.send(numbered(number)).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(stream.next().now_or_never().is_none());
    network.heal("te", "rm");
    for number in 2..=4 {
        assert_eq!(ack(stream.next().await), number);
    }
}

#[tokio::test(start_paused = true)]
async fn where_cuts_break_streams_both_sides_learn_it() {
    let options = NetworkOptions { break_streams: true, ..NetworkOptions::calm(1) };
    let (network, _serving, gateway) = pair(options, FakeResourceManager::ready()).await;
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    network.cut_one_way("te", "rm");
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, RpcErrorKind::Unreachable);
    sender.closed().await;
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_stream_stay_in_order_whatever_their_delays() {
    let faults = Faults { max_delay: 50 * MS, ..Faults::default() };
    let (_network, _serving, gateway) = pair(with(faults), FakeResourceManager::ready()).await;
    let (sender, messages) = by_hand();
    let mut stream = gateway.task_executor_stream(messages).await.unwrap();
    for number in 1..=200 {
        sender.send(numbered(number)).unwrap();
    }
    drop(sender);
    for number in 1..=200 {
        assert_eq!(ack(stream.next().await), number);
    }
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_port_is_served_once_and_port_zero_is_a_free_one() {
    let network = InMemoryNetwork::new(NetworkOptions::calm(1));
    let node = network.node("te");
    let first = node.serve("127.0.0.1:0", only(FakeResourceManager::ready())).await.unwrap();
    let second = node.serve("127.0.0.1:0", only(FakeResourceManager::ready())).await.unwrap();
    assert_ne!(first.local_address(), second.local_address());
    let place = first.local_address().host_port().to_owned();
    assert!(node.serve(&place, only(FakeResourceManager::ready())).await.is_err());
    drop(first);
    assert!(node.serve(&place, only(FakeResourceManager::ready())).await.is_ok());
}

fn ack(item: Option<Result<v1::ResourceManagerToTaskExecutor, crate::RpcError>>) -> u64 {
    use crate::stream::Envelope as _;
    item.unwrap().unwrap().acknowledged().unwrap()
}

/// A scenario with every fault, run on a clock of its own; what happened, as text.
fn scenario(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let faults = Faults {
            min_delay: MS,
            max_delay: 20 * MS,
            loss: 0.1,
            loss_shows: Loss::Either,
            duplication: 0.1,
            stream_break: 0.01,
        };
        let call_timeout = 200 * MS;
        let network =
            InMemoryNetwork::new(NetworkOptions { faults, call_timeout, ..NetworkOptions::calm(seed) });
        let _serving = network.node("rm").serve("rm:6120", only(FakeResourceManager::ready())).await.unwrap();
        let callers: Vec<_> =
            (0..4).map(|n| tokio::spawn(caller(network.node(&format!("te-{n}"))))).collect();
        let disturb = network.clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                tokio::time::sleep(300 * MS).await;
                disturb.cut("te-1", "rm");
                disturb.cut("te-0", "rm");
                disturb.cut_one_way("rm", "te-2");
                tokio::time::sleep(200 * MS).await;
                disturb.heal_all();
            }
            disturb.crash("te-3");
        });
        let mut told = Vec::new();
        for caller in callers {
            told.extend(caller.await.unwrap());
        }
        told.extend(network.log().iter().map(ToString::to_string));
        told
    })
}

async fn caller(node: NodeTransport) -> Vec<String> {
    let gateway = node.connect_resource_manager(&"http://rm:6120".parse().unwrap());
    let mut told = Vec::new();
    for round in 0..20 {
        let outcome = gateway.describe_cluster(CALL).await.map(|answer| answer.epoch);
        told.push(format!("{} {round} {outcome:?}", node.name()));
        let (sender, messages) = by_hand();
        let Ok(mut stream) = gateway.task_executor_stream(messages).await else { continue };
        for number in 1..=20 {
            let _ = sender.send(numbered(number));
            tokio::time::sleep(7 * MS).await;
        }
        drop(sender);
        while let Some(message) = stream.next().await {
            told.push(format!("{} {round} {:?}", node.name(), message.map(|_| ())));
        }
    }
    told
}

#[test]
fn equal_seeds_give_equal_event_logs_and_other_seeds_others() {
    let first = scenario(7);
    assert!(first.len() > 500, "the scenario is no scenario: {} lines", first.len());
    for fate in ["lost", "twice", "cut", "broken", "held", "crashed"] {
        assert!(first.iter().any(|line| line.contains(fate)), "nothing was {fate}");
    }
    assert_eq!(first, scenario(7));
    assert_ne!(first, scenario(8));
}
