//! Two chains with an exchange between them, on one task executor and on two.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use connectors::call::{Answer, CallRequest};

use super::harness::{Cluster, lines, local, numbers};
use crate::task::{TaskHandle, TaskState};

fn keyed(call: &str) -> String {
    format!(
        "name: j
parallelism: 2
source: {{file: {{path: in.jsonl}}, parallelism: 1}}
steps:
  - enrich: {{name: e, order: keyed, key: k, capacity: 5, timeout: none, into: a, call: {{rust: {call}}}}}
sink: {{file: {{path: out/}}}}
"
    )
}

fn all_parts(cluster: &Cluster) -> Vec<usize> {
    let mut numbers: Vec<_> =
        (0..2).flat_map(|part| numbers(&cluster.read(&format!("out/part-{part}-0.jsonl")))).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test(start_paused = true)]
async fn every_record_crosses_a_local_and_a_remote_exchange_exactly_once() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            cluster.calls.register("echo", |_: CallRequest| async { Ok(Answer::Value("1".into())) });
            cluster.write("in.jsonl", &lines(5000, 37));
            let figures = cluster.run_on(&keyed("echo"), |vertex, _| (vertex % nodes) as usize).await;
            assert_eq!((figures.records_in, figures.records_out), (5000, 5000), "{nodes} task executors");
            assert_eq!(all_parts(&cluster), (0..5000).collect::<Vec<_>>());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_holds_the_source_back() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            let begun = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&begun);
            cluster.calls.register("stuck", move |_: CallRequest| {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::pending()
            });
            cluster.write("in.jsonl", &lines(200_000, 1000));
            let graph = cluster.plan(&keyed("stuck"));
            let handles = cluster.deploy(&graph, |vertex, _| (vertex % nodes) as usize);
            tokio::time::sleep(Duration::from_secs(60)).await;
            let read = handles[&(0, 0)].figures().records_in;
            // For each of the two channels at most: the consumer's buffer, its current batch, what the pump holds, what the
            // writer holds; and the queues.
            let most = 2 * (4 + 1 + 2 + 1) * 200 + 2 * 5 + 200;
            assert!(read >= 1000 && read <= most, "{read} records were read, at most {most} may be");
            assert_eq!(begun.load(Ordering::Relaxed), 10, "both queues are full");
            let figures = handles[&(0, 0)].figures();
            assert!(figures.backpressured_ms > 50_000, "{figures:?}");
            handles.values().for_each(TaskHandle::cancel);
            let ended = cluster.ended(handles.len()).await;
            assert!(ended.iter().all(|event| event.state == TaskState::Canceled), "{ended:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_not_deployed_fails_the_producer_after_its_wait() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            cluster.calls.register("echo", |_: CallRequest| async { Ok(Answer::Empty) });
            cluster.write("in.jsonl", &lines(10, 3));
            let graph = cluster.plan(&keyed("echo"));
            let start = tokio::time::Instant::now();
            let handles = cluster.deploy_only(&graph, 0, |vertex, _| (vertex % nodes) as usize);
            let failed = cluster.ended(handles.len()).await.remove(0);
            assert_eq!(failed.state, TaskState::Failed);
            assert!(!failed.unrecoverable);
            let error = failed.error.unwrap();
            assert!(error.contains("not deployed here within 10 s"), "{error}");
            assert!((10..12).contains(&start.elapsed().as_secs()));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_link_that_breaks_streams_fails_both_ends_recoverably_and_names_the_peer() {
    local(async {
        let mut cluster = Cluster::breaking(2).await;
        cluster.calls.register("slow", |_: CallRequest| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(Answer::Empty)
        });
        cluster.write("in.jsonl", &lines(100_000, 1000));
        let graph = cluster.plan(&keyed("slow"));
        let handles = cluster.deploy(&graph, |vertex, _| (vertex % 2) as usize);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(cluster.terminal().is_empty());
        cluster.network.cut("te0", "te1");
        tokio::time::sleep(Duration::from_millis(500)).await;
        let hasty = cluster.terminal();
        assert!(hasty.is_empty(), "whoever lost a task executor says so first: {hasty:?}");
        let ended = cluster.ended(handles.len()).await;
        for event in &ended {
            assert_eq!((event.state, event.unrecoverable), (TaskState::Failed, false));
            let error = event.error.as_deref().unwrap();
            assert!(error.contains("broke") && error.contains("edge 0"), "{error}");
        }
        assert!(ended.iter().any(|event| event.error.as_deref().unwrap().contains("task executor te1")));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_consumer_waits_for_its_cancellation_when_its_producer_has_failed() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            cluster.calls.register("echo", |_: CallRequest| async { Ok(Answer::Empty) });
            cluster.write("in.jsonl", "{\"n\":0,\"k\":1}\nbroken\n");
            let graph = cluster.plan(&keyed("echo"));
            let handles = cluster.deploy(&graph, |vertex, _| (vertex % nodes) as usize);
            tokio::time::sleep(Duration::from_secs(5)).await;
            let ended = cluster.terminal();
            assert_eq!(ended.len(), 1, "the cause is not hidden by its consequences: {ended:?}");
            assert!(ended[0].unrecoverable && ended[0].attempt.vertex.0 == 0);
            tokio::time::sleep(Duration::from_secs(7)).await;
            let ended = cluster.ended(handles.len()).await;
            assert!(ended[1].error.as_deref().unwrap().contains("is gone"), "{ended:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn equal_jobs_send_equal_messages() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        logs.push(
            local(async {
                let mut cluster = Cluster::new(2).await;
                cluster.calls.register("echo", |_: CallRequest| async {
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    Ok(Answer::Value("1".into()))
                });
                cluster.write("in.jsonl", &lines(3000, 37));
                cluster.run_on(&keyed("echo"), |vertex, subtask| ((vertex + subtask) % 2) as usize).await;
                cluster.network.take_log()
            })
            .await,
        );
    }
    assert!(logs[0].len() > 10, "records crossed the network");
    assert_eq!(logs[0], logs[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exchange_over_grpc_does_the_same_and_takes_lines_beyond_a_batch() {
    let mut cluster = Cluster::grpc(2).await;
    cluster.calls.register("echo", |_: CallRequest| async { Ok(Answer::Value("1".into())) });
    let long = format!("{{\"n\":5000,\"k\":0,\"long\":\"{}\"}}\n", "x".repeat(900_000));
    cluster.write("in.jsonl", &(lines(5000, 37) + &long));
    let figures = cluster.run_on(&keyed("echo"), |vertex, subtask| ((vertex + subtask) % 2) as usize).await;
    assert_eq!((figures.records_in, figures.records_out), (5001, 5001));
    assert_eq!(all_parts(&cluster), (0..=5000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_producer_over_grpc_is_no_broken_connection() {
    let mut cluster = Cluster::grpc(2).await;
    cluster.calls.register("stuck", |_: CallRequest| std::future::pending());
    cluster.write("in.jsonl", &lines(50_000, 1000));
    let graph = cluster.plan(&keyed("stuck"));
    let handles = cluster.deploy(&graph, |vertex, _| (vertex % 2) as usize);
    // Both sides are held up: the queues are full and the channels between them.
    while handles[&(0, 0)].figures().records_in < 1000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    handles[&(0, 0)].cancel();
    assert_eq!(cluster.ended(1).await[0].state, TaskState::Canceled);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(cluster.terminal().len(), 1, "{:?}", cluster.terminal());
    handles.values().for_each(TaskHandle::cancel);
    let ended = cluster.ended(handles.len()).await;
    assert!(ended.iter().all(|event| event.state == TaskState::Canceled), "{ended:?}");
}
