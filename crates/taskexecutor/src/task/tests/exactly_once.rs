//! Random schedules of records, answers, checkpoints, savepoints, aborts and crashes: the output has every record once, and each key
//! in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use connectors::call::{Answer, CallRequest};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::checkpointed::{Completed, Handles};
use super::harness::{Cluster, local, numbers};
use crate::task::{SavepointTarget, TaskState};

/// Each takes most of a second. `TIDEGATE_SEEDS` sets another number.
const SEEDS: u64 = 8;
const RECORDS: usize = 1200;
const KEYS: usize = 29;

fn yaml(order: &str, parallelism: u32, capacity: u32) -> String {
    format!(
        "name: j
checkpoints: {{interval: 1s, dir: chk}}
source: {{file: {{path: 'in*.jsonl'}}, parallelism: 2}}
steps:
  - filter: 'n >= 0'
  - enrich:
      {{name: first, order: {order}, key: k, capacity: {capacity}, timeout: none, into: a, parallelism: {parallelism},
        call: {{rust: call}}}}
  - enrich:
      {{name: second, order: {order}, key: k, capacity: 3, timeout: none, into: b, parallelism: {parallelism},
        call: {{rust: call}}}}
sink: {{file: {{path: out/}}, parallelism: {parallelism}}}
"
    )
}

/// What became visible, in that order, by what the job master does with what tasks have staged.
#[derive(Default)]
struct Output {
    committed: BTreeSet<PathBuf>,
    numbers: Vec<usize>,
}

impl Output {
    fn commit(&mut self, completed: &Completed) {
        for staged in completed.parts.values().flat_map(|part| &part.staged) {
            if self.committed.insert(staged.staged_path.clone()) {
                self.numbers.extend(numbers(&std::fs::read_to_string(&staged.staged_path).unwrap()));
            }
        }
        completed.commit();
    }
}

fn place(nodes: u32) -> impl Fn(u32, u32) -> usize {
    move |vertex, subtask| ((vertex + subtask) % nodes) as usize
}

async fn wait(random: &mut SmallRng, most: u64) {
    tokio::time::sleep(Duration::from_millis(random.random_range(0..most))).await;
}

/// Both files have the keys of their own, so that the order within a file is that of its keys.
fn write_input(cluster: &Cluster) {
    for file in 0..2 {
        let line = |n: &usize| format!("{{\"n\":{n},\"k\":{}}}\n", (n / 2 % KEYS) * 2 + file);
        let text: String =
            (0..RECORDS).filter(|n| n % 2 == file).collect::<Vec<_>>().iter().map(line).collect();
        cluster.write(&format!("in{file}.jsonl"), &text);
    }
}

fn register(cluster: &mut Cluster, seed: u64) {
    cluster.calls.register("call", move |request: CallRequest| async move {
        let n = request.record.field("n").and_then(|n| n.as_i64()).unwrap() as u64;
        let drawn = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // Now and then one takes long, so that queues fill behind it.
        let millis = if drawn.is_multiple_of(97) { 400 } else { drawn % 13 };
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        Ok(Answer::Value("1".into()))
    });
}

fn all_finished(cluster: &Cluster, handles: &Handles) -> bool {
    let ended = cluster.terminal();
    assert!(ended.iter().all(|event| event.state == TaskState::Finished), "{ended:?}");
    ended.len() == handles.len()
}

async fn run(seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let nodes = random.random_range(1..=2);
    let order = ["ordered", "unordered", "keyed"][random.random_range(0..3)];
    let mut cluster = Cluster::new(nodes as usize).await;
    write_input(&cluster);
    register(&mut cluster, seed);
    let job = |random: &mut SmallRng| yaml(order, random.random_range(2..=4), random.random_range(1..=30));
    let mut handles = cluster.deploy(&cluster.plan(&job(&mut random)), place(nodes));
    let (mut output, mut latest, mut checkpoint) = (Output::default(), None::<Completed>, 0);
    let mut crashes = 0;
    while !all_finished(&cluster, &handles) {
        wait(&mut random, 150).await;
        checkpoint += 1;
        let stop = random.random_bool(0.2);
        if stop {
            let target = SavepointTarget { url: "memory://s".into(), stop };
            handles.values().for_each(|task| task.announce(checkpoint, target.clone()));
        }
        cluster.trigger(&handles, checkpoint);
        wait(&mut random, 120).await;
        match (cluster.outcome(&handles, checkpoint), random.random_range(0..4)) {
            (Some(Ok(completed)), 0..=2) if stop => {
                let completed = Completed { store: "memory://s".into(), ..completed };
                output.commit(&completed);
                handles.values().for_each(|task| task.confirm(checkpoint));
                cluster.ended(handles.len()).await;
                cluster.crash(&handles, Some(completed.clone())).await;
                latest = Some(completed);
                handles = cluster.deploy(&cluster.plan(&job(&mut random)), place(nodes));
            }
            (Some(Ok(completed)), 0..=2) => {
                output.commit(&completed);
                if random.random_bool(0.7) {
                    handles.values().for_each(|task| task.confirm(checkpoint));
                }
                latest = Some(completed);
            }
            (Some(Err(cause)), _) => panic!("seed {seed}: {cause}"),
            _ => handles.values().for_each(|task| task.abort(checkpoint)),
        }
        if crashes < 4 && random.random_bool(0.3) {
            crashes += 1;
            cluster.crash(&handles, latest.clone()).await;
            if let Some(completed) = &latest {
                output.commit(completed);
            }
            // Another parallelism only where there is state to take over.
            handles = cluster.deploy(&cluster.plan(&job(&mut random)), place(nodes));
        }
    }
    let parts = handles.iter().map(|(place, task)| {
        let ended = cluster.terminal().into_iter().find(|event| event.attempt == task.attempt());
        (*place, *ended.unwrap().last.unwrap())
    });
    output.commit(&cluster.completed(checkpoint + 1, parts.collect()));
    if order == "keyed" {
        let mut last = BTreeMap::new();
        for &n in &output.numbers {
            let key = (n / 2 % KEYS) * 2 + n % 2;
            assert!(last.insert(key, n) < Some(n), "seed {seed}: {n} comes after a later one of its key");
        }
    }
    let mut all = output.numbers;
    all.sort_unstable();
    assert_eq!(all, (0..RECORDS).collect::<Vec<_>>(), "seed {seed}, {order}, {crashes} crashes");
}

#[tokio::test(start_paused = true)]
async fn random_schedules_lose_and_double_nothing() {
    let seeds = std::env::var("TIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        local(run(seed)).await;
    }
}
