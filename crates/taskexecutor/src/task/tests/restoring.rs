//! Restores: under another parallelism, and of state that does not fit or is damaged.

use std::collections::BTreeMap;
use std::time::Duration;

use connectors::call::{Answer, CallRequest};

use super::checkpointed::{Completed, Handles};
use super::harness::{Cluster, lines, local, numbers};
use crate::task::{TaskHandle, TaskState};

/// A source, and behind an exchange a step on so many subtasks.
fn yaml(order: &str, parallelism: u32) -> String {
    format!(
        "name: j
checkpoints: {{interval: 1s, dir: chk}}
source: {{file: {{path: in.jsonl}}, parallelism: 2}}
steps:
  - enrich:
      {{name: e, order: {order}, key: k, capacity: 5, timeout: none, into: a, parallelism: {parallelism},
        call: {{rust: call}}}}
sink: {{file: {{path: out/}}, parallelism: {parallelism}}}
"
    )
}

fn register_stuck(cluster: &mut Cluster) {
    cluster.calls.register("call", |_: CallRequest| std::future::pending());
}

fn register_echo(cluster: &mut Cluster) {
    cluster.calls.register("call", |_: CallRequest| async { Ok(Answer::Value("1".into())) });
}

/// The parts of a subtask, in the order in which they became visible.
fn output_of(cluster: &Cluster, subtask: u32) -> Vec<usize> {
    let prefix = format!("part-{subtask}-");
    let mut parts: Vec<_> = std::fs::read_dir(cluster.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&prefix))
        .collect();
    parts.sort();
    parts.iter().flat_map(|name| numbers(&cluster.read(&format!("out/{name}")))).collect()
}

async fn stuck(cluster: &mut Cluster, yaml: &str) -> (Handles, Completed) {
    register_stuck(cluster);
    let graph = cluster.plan(yaml);
    let handles = cluster.deploy(&graph, |_, _| 0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let completed = cluster.checkpoint(&handles, 1).await;
    assert!(completed.parts.values().any(|part| part.state.is_some()));
    (handles, completed)
}

#[tokio::test(start_paused = true)]
async fn more_or_fewer_subtasks_take_over_every_record_once_and_each_key_in_order() {
    for order in ["ordered", "unordered", "keyed"] {
        for (before, after) in [(1, 3), (3, 1), (3, 4), (4, 3), (3, 3)] {
            local(async {
                let mut cluster = Cluster::new(1).await;
                cluster.write("in.jsonl", &lines(3000, 50));
                let (handles, completed) = stuck(&mut cluster, &yaml(order, before)).await;
                cluster.crash(&handles, Some(completed)).await;
                register_echo(&mut cluster);
                let graph = cluster.plan(&yaml(order, after));
                let handles = cluster.deploy(&graph, |_, _| 0);
                cluster.finish(&handles).await;
                let outputs: Vec<_> = (0..after).map(|subtask| output_of(&cluster, subtask)).collect();
                let mut all = outputs.concat();
                all.sort_unstable();
                assert_eq!(all, (0..3000).collect::<Vec<_>>(), "{order}, {before} to {after} subtasks");
                if order == "keyed" {
                    let mut owners = BTreeMap::new();
                    for (subtask, output) in outputs.iter().enumerate() {
                        let mut last = BTreeMap::new();
                        for &n in output {
                            assert!(
                                last.insert(n % 50, n) < Some(n),
                                "{n} comes after a later one of its key"
                            );
                            assert_eq!(*owners.entry(n % 50).or_insert(subtask), subtask);
                        }
                    }
                }
            })
            .await;
        }
    }
}

async fn fails(cluster: &mut Cluster, yaml: &str, handles: &Handles, completed: Completed) -> String {
    cluster.crash(handles, Some(completed)).await;
    let graph = cluster.plan(yaml);
    let handles = cluster.deploy(&graph, |_, _| 0);
    let first = cluster.ended(1).await.remove(0);
    handles.values().for_each(TaskHandle::cancel);
    cluster.ended(handles.len()).await;
    assert_eq!(first.state, TaskState::Failed, "{first:?}");
    first.error.unwrap()
}

#[tokio::test(start_paused = true)]
async fn state_of_a_step_that_the_job_has_no_more_is_named() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", &lines(100, 50));
        let (handles, completed) = stuck(&mut cluster, &yaml("keyed", 1)).await;
        let other = yaml("keyed", 1).replace("name: e,", "name: other,");
        let error = fails(&mut cluster, &other, &handles, completed).await;
        assert!(error.contains("checkpoint 1 holds") && error.contains("the step `e`"), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_held_nothing_may_go_and_another_may_come() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_echo(&mut cluster);
        cluster.max_rate = Some(100.0);
        cluster.write("in.jsonl", &lines(100, 50));
        let graph = cluster.plan(&yaml("keyed", 1));
        let handles = cluster.deploy(&graph, |_, _| 0);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let completed = cluster.checkpoint(&handles, 1).await;
        assert!(completed.parts.values().all(|part| part.state.is_none()));
        cluster.crash(&handles, Some(completed)).await;
        let graph = cluster.plan(&yaml("keyed", 1).replace("name: e,", "name: other,"));
        let handles = cluster.deploy(&graph, |_, _| 0);
        cluster.finish(&handles).await;
        assert_eq!(output_of(&cluster, 0), (0..100).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn damaged_or_missing_state_fails_the_task_in_the_stores_words() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", &lines(3000, 50));
        let (handles, completed) = stuck(&mut cluster, &yaml("keyed", 1)).await;
        let url = cluster.plan(&yaml("keyed", 1)).checkpoints.as_ref().unwrap().dir.clone();
        let store = cluster.stores.store(&url);
        let name = store.names().remove(0);
        store.damage(&name, |bytes| bytes[100] ^= 1);
        let error = fails(&mut cluster, &yaml("keyed", 1), &handles, completed.clone()).await;
        assert!(error.contains("checkpoint 1 cannot be restored: the state of subtask 0"), "{error}");
        assert!(error.contains(&name), "{error}");
        checkpoint::CheckpointStore::remove(&store, &name).unwrap();
        let error = fails(&mut cluster, &yaml("keyed", 1), &BTreeMap::new(), completed).await;
        assert!(error.contains(&format!("has no `{name}`")), "{error}");
    })
    .await;
}
