//! Savepoints: where their state goes, who stands still behind them, and who begins with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use connectors::call::{Answer, CallRequest};
use runtime_core::EpochMillis;

use super::checkpointed::Completed;
use super::harness::{Cluster, lines, local, numbers};
use crate::task::{SavepointTarget, TaskHandle, TaskState};

const URL: &str = "memory://savepoint";

/// A source, and behind an exchange a keyed step on so many subtasks; checkpoints or none.
fn yaml(checkpoints: &str, parallelism: u32) -> String {
    format!(
        "name: j
{checkpoints}source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich:
      {{name: e, order: keyed, key: k, capacity: 20, timeout: none, into: a, parallelism: {parallelism},
        call: {{rust: call}}}}
sink: {{file: {{path: out.jsonl}}}}
"
    )
}

const CHECKPOINTS: &str = "checkpoints: {interval: 1s, dir: chk}\n";

/// Calls that take some time, and are counted.
fn register(cluster: &mut Cluster) -> Arc<AtomicU64> {
    // So that there is a middle.
    cluster.max_rate = Some(2_000.0);
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    cluster.calls.register("call", move |request: CallRequest| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let n = request.record.field("n").and_then(|n| n.as_i64()).unwrap() as u64;
            tokio::time::sleep(Duration::from_millis(10 + n * 7919 % 23)).await;
            Ok(Answer::Value("1".into()))
        }
    });
    calls
}

async fn millis(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn each(cluster: &Cluster) -> Vec<usize> {
    let mut all = numbers(&cluster.read("out.jsonl"));
    all.sort_unstable();
    all
}

/// Announces a savepoint to all, lets the sources begin it, and waits until all have had their part.
async fn saved(
    cluster: &Cluster,
    handles: &std::collections::BTreeMap<(u32, u32), TaskHandle>,
    checkpoint: u64,
    stop: bool,
) -> Completed {
    handles.values().for_each(|task| task.announce(checkpoint, SavepointTarget { url: URL.into(), stop }));
    // The barrier is faster than the word of it everywhere but at the source.
    handles[&(0, 0)].trigger(checkpoint, EpochMillis(1_000_000));
    let completed = async {
        loop {
            if let Some(outcome) = cluster.outcome(handles, checkpoint) {
                return outcome.unwrap();
            }
            millis(1).await;
        }
    };
    let completed = tokio::time::timeout(Duration::from_secs(1), completed).await.unwrap();
    Completed { store: URL.into(), ..completed }
}

#[tokio::test(start_paused = true)]
async fn behind_a_savepoint_that_ends_the_job_tasks_stand_still_and_end_when_it_is_complete() {
    for (checkpoints, after) in [(CHECKPOINTS, 3), ("", 4), (CHECKPOINTS, 2)] {
        local(async {
            let mut cluster = Cluster::new(1).await;
            let calls = register(&mut cluster);
            cluster.write("in.jsonl", &lines(600, 30));
            let handles = cluster.deploy(&cluster.plan(&yaml(checkpoints, 2)), |_, _| 0);
            millis(100).await;
            let completed = saved(&cluster, &handles, 1, true).await;
            let at_the_barrier = calls.load(Ordering::Relaxed);
            millis(5_000).await;
            assert_eq!(calls.load(Ordering::Relaxed), at_the_barrier, "nothing is asked behind it");
            assert_eq!(cluster.terminal().len(), 0);
            completed.commit();
            handles.values().for_each(|task| task.confirm(1));
            let ended = cluster.ended(handles.len()).await;
            assert!(ended.iter().all(|event| event.state == TaskState::Finished), "{ended:?}");
            let before = each(&cluster);
            assert!(!before.is_empty() && before.len() < 600, "{} records", before.len());
            cluster.crash(&handles, Some(completed)).await;
            let handles = cluster.deploy(&cluster.plan(&yaml(CHECKPOINTS, after)), |_, _| 0);
            cluster.finish(&handles).await;
            assert!(each(&cluster).into_iter().eq(0..600), "each once");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_savepoint_is_given_up_the_tasks_go_on_as_if_nothing_had_been() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register(&mut cluster);
        cluster.write("in.jsonl", &lines(600, 30));
        let handles = cluster.deploy(&cluster.plan(&yaml(CHECKPOINTS, 2)), |_, _| 0);
        millis(100).await;
        saved(&cluster, &handles, 1, true).await;
        millis(1_000).await;
        handles.values().for_each(|task| task.abort(1));
        cluster.checkpoint(&handles, 2).await;
        cluster.finish(&handles).await;
        assert!(each(&cluster).into_iter().eq(0..600), "each once");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_savepoint_that_ends_nothing_holds_nobody_up_and_its_state_is_in_its_own_folder() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("call", |_: CallRequest| std::future::pending());
        cluster.write("in.jsonl", &lines(3_000, 500));
        let handles = cluster.deploy(&cluster.plan(&yaml(CHECKPOINTS, 1)), |_, _| 0);
        millis(500).await;
        let completed = saved(&cluster, &handles, 1, false).await;
        let state =
            completed.parts.values().find_map(|part| part.state.clone()).expect("records are in flight");
        assert!(state.length > 0);
        if let Some(wire::v1::state_handle::Place::Object(name)) = state.place {
            assert!(cluster.stores.store(URL).names().contains(&name), "{name}");
        }
        cluster.checkpoint(&handles, 2).await;
        handles.values().for_each(TaskHandle::cancel);
        cluster.ended(handles.len()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drained_job_finishes_what_it_has_read_and_says_where_it_left_its_input() {
    for checkpoints in [CHECKPOINTS, ""] {
        local(async {
            let mut cluster = Cluster::new(1).await;
            register(&mut cluster);
            cluster.write("in.jsonl", &lines(600, 30));
            let handles = cluster.deploy(&cluster.plan(&yaml(checkpoints, 2)), |_, _| 0);
            millis(100).await;
            handles.values().for_each(TaskHandle::drain);
            let ended = cluster.ended(handles.len()).await;
            let last = |place: &(u32, u32)| {
                let event = ended.iter().find(|event| event.attempt == handles[place].attempt()).unwrap();
                assert_eq!(event.state, TaskState::Finished, "{event:?}");
                *event.last.clone().unwrap()
            };
            let parts = handles.keys().map(|place| (*place, last(place))).collect();
            let completed = cluster.completed(1, parts);
            assert!(completed.parts[&(0, 0)].source.as_ref().unwrap().reading.is_some());
            assert!(completed.finished.is_empty());
            completed.commit();
            let before = each(&cluster);
            assert!(!before.is_empty() && before.len() < 600, "{} records", before.len());
            assert_eq!(before.len() as u64, completed.parts[&(0, 0)].figures.records_in);
            cluster.crash(&handles, Some(completed)).await;
            let handles = cluster.deploy(&cluster.plan(&yaml(CHECKPOINTS, 3)), |_, _| 0);
            cluster.finish(&handles).await;
            assert!(each(&cluster).into_iter().eq(0..600), "each once");
        })
        .await;
    }
}
