//! Checkpoints of running tasks: what is in them, when they complete, and when they do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connectors::call::{Answer, CallFailure, CallRequest};
use runtime_core::EpochMillis;

use super::checkpointed::Handles;
use super::harness::{Cluster, lines, local, numbers};
use crate::task::TaskState;

const SECOND: Duration = Duration::from_secs(1);

fn n(request: &CallRequest) -> i64 {
    request.record.field("n").and_then(|n| n.as_i64()).unwrap()
}

fn register_slow(cluster: &mut Cluster) {
    cluster.calls.register("call", |request: CallRequest| async move {
        tokio::time::sleep(Duration::from_millis(10 + n(&request) as u64 * 7919 % 23)).await;
        Ok(Answer::Value("1".into()))
    });
}

fn register_stuck(cluster: &mut Cluster) {
    cluster.calls.register("call", |_: CallRequest| std::future::pending());
}

fn register_echo(cluster: &mut Cluster) {
    cluster.calls.register("call", |_: CallRequest| async { Ok(Answer::Value("1".into())) });
}

fn one_chain(order: &str) -> String {
    format!(
        "name: j
checkpoints: {{interval: 1s, dir: chk}}
source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich: {{name: e, order: {order}, key: k, capacity: 20, timeout: none, into: a, call: {{rust: call}}}}
sink: {{file: {{path: out.jsonl}}}}
"
    )
}

/// A source, and behind an exchange a keyed step on two subtasks.
fn two_chains(sources: u32) -> String {
    format!(
        "name: j
checkpoints: {{interval: 1s, dir: chk}}
source: {{file: {{path: 'in*.jsonl'}}, parallelism: {sources}}}
steps:
  - enrich: {{name: e, order: keyed, key: k, capacity: 5, timeout: none, into: a, parallelism: 2, call: {{rust: call}}}}
sink: {{file: {{path: out/}}, parallelism: 2}}
"
    )
}

/// All parts there are, each in its order.
fn all_parts(cluster: &Cluster) -> Vec<usize> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(cluster.path("out")).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_str().unwrap().starts_with('.') {
            found.extend(numbers(&std::fs::read_to_string(path).unwrap()));
        }
    }
    found.sort_unstable();
    found
}

async fn millis(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_at_the_barrier_is_in_the_snapshot_and_all_else_before_or_after_it() {
    for order in ["ordered", "unordered", "keyed"] {
        local(async {
            let mut cluster = Cluster::new(1).await;
            register_slow(&mut cluster);
            cluster.write("in.jsonl", &lines(300, 10));
            let graph = cluster.plan(&one_chain(order));
            let handles = cluster.deploy(&graph, |_, _| 0);
            millis(60).await;
            let completed = cluster.checkpoint(&handles, 1).await;
            let part = &completed.parts[&(0, 0)];
            let before = numbers(&cluster.read("out.jsonl"));
            assert!(!before.is_empty() && before.len() < 100, "{order}: {} records", before.len());
            assert_eq!(part.figures.records_out as usize, before.len());
            // Whatever was read is in the output or in the snapshot.
            let state = part.state.clone().expect("records are in flight");
            let held = checkpoint::operators::decode(&match state.place.unwrap() {
                wire::v1::state_handle::Place::Inline(bytes) => bytes.to_vec(),
                wire::v1::state_handle::Place::Object(name) => panic!("{name}"),
            });
            let held = held.unwrap().operators.remove(0);
            assert_eq!(held.name, "e");
            let held = asyncio::Snapshot::decode(&held.held, |_| Ok::<_, ()>(())).unwrap();
            assert_eq!(held.len() as u64 + part.figures.records_out, part.figures.records_in);
            // What is done after the checkpoint is lost with the crash, and done again.
            millis(40).await;
            cluster.crash(&handles, Some(completed)).await;
            let handles = cluster.deploy(&graph, |_, _| 0);
            cluster.finish(&handles).await;
            let mut after = numbers(&cluster.read("out.jsonl"));
            if order == "ordered" {
                assert!(after.is_sorted(), "{after:?}");
            }
            after.sort_unstable();
            assert_eq!(after, (0..300).collect::<Vec<_>>(), "{order}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_step_whose_service_hangs_holds_up_no_checkpoint_and_parks_in_order() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            register_stuck(&mut cluster);
            cluster.write("in.jsonl", &lines(20_000, 100));
            let graph = cluster.plan(&two_chains(1));
            let handles = cluster.deploy(&graph, |vertex, _| (vertex % nodes) as usize);
            millis(1000).await;
            let read = handles[&(0, 0)].figures().records_in;
            assert!(read < 20_000, "the source is held back");
            let completed = cluster.checkpoint_within(&handles, 1, SECOND).await.unwrap();
            millis(1100).await;
            let parked = || -> u64 {
                (0..2).map(|subtask| handles[&(1, subtask)].checkpoint_figures().parked.get()).sum()
            };
            // All that the source had sent stands in the two steps: five in each, and the others beyond.
            let sent = completed.parts[&(0, 0)].figures.records_in;
            assert_eq!(parked(), sent - 10, "{nodes} task executors");
            // What is parked does not grow with every checkpoint: the source is asked to send barriers only.
            let mut counts = Vec::new();
            for checkpoint in 2..=4 {
                cluster.checkpoint_within(&handles, checkpoint, SECOND).await.unwrap();
                millis(1100).await;
                counts.push(parked());
            }
            assert_eq!(counts, [counts[0]; 3]);
            cluster.crash(&handles, Some(completed)).await;
            register_echo(&mut cluster);
            let handles = cluster.deploy(&graph, |vertex, _| (vertex % nodes) as usize);
            cluster.finish(&handles).await;
            assert_eq!(all_parts(&cluster), (0..20_000).collect::<Vec<_>>());
            for part in ["out/part-0-2.jsonl", "out/part-1-2.jsonl"] {
                let mut last = std::collections::BTreeMap::new();
                for n in numbers(&cluster.read(part)) {
                    assert!(last.insert(n % 100, n) < Some(n), "{n} comes after a later one of its key");
                }
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn barriers_of_two_producers_are_aligned_on_one_task_executor_and_on_two() {
    for nodes in [1_u32, 2] {
        local(async {
            let mut cluster = Cluster::new(nodes as usize).await;
            register_slow(&mut cluster);
            let all = lines(2000, 37);
            let (first, second) = all.split_at(all.find("{\"n\":900,").unwrap());
            cluster.write("in1.jsonl", first);
            cluster.write("in2.jsonl", second);
            let graph = cluster.plan(&two_chains(2));
            let place = |vertex: u32, subtask: u32| ((vertex + subtask) % nodes) as usize;
            let handles = cluster.deploy(&graph, place);
            for checkpoint in 1..=3 {
                millis(150).await;
                cluster.checkpoint(&handles, checkpoint).await;
            }
            millis(150).await;
            let completed = cluster.checkpoint(&handles, 4).await;
            let committed = all_parts(&cluster).len();
            assert!(committed > 50 && committed < 1900, "{committed}");
            millis(77).await;
            cluster.crash(&handles, Some(completed)).await;
            let handles = cluster.deploy(&graph, place);
            cluster.finish(&handles).await;
            assert_eq!(all_parts(&cluster), (0..2000).collect::<Vec<_>>(), "{nodes} task executors");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_has_ended_holds_up_no_checkpoint_and_reads_nothing_again() {
    local(async {
        let mut cluster = Cluster::new(2).await;
        cluster.max_rate = Some(50.0);
        register_slow(&mut cluster);
        cluster.write("in1.jsonl", &lines(3, 37));
        cluster.write("in2.jsonl", &lines(200, 37).replace("\"n\":", "\"n\":1"));
        let graph = cluster.plan(&two_chains(2));
        let place = |vertex: u32, subtask: u32| ((vertex + subtask) % 2) as usize;
        let handles = cluster.deploy(&graph, place);
        millis(1500).await;
        let ended = cluster.terminal();
        assert_eq!(ended.len(), 1, "one source has read its file: {ended:?}");
        let completed = cluster.checkpoint(&handles, 1).await;
        let finished: Vec<_> = completed.parts.values().filter_map(|part| part.source.as_ref()).collect();
        assert_eq!(finished.iter().map(|progress| progress.finished.len()).sum::<usize>(), 1);
        assert_eq!(finished.iter().filter(|progress| progress.reading.is_some()).count(), 1);
        cluster.crash(&handles, Some(completed)).await;
        cluster.max_rate = None;
        let handles = cluster.deploy(&graph, place);
        cluster.finish(&handles).await;
        assert_eq!(all_parts(&cluster).len(), 203);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn after_an_abort_the_next_checkpoint_completes_and_late_words_change_nothing() {
    local(async {
        let mut cluster = Cluster::new(2).await;
        // Both sources read for some seconds.
        cluster.max_rate = Some(200.0);
        register_slow(&mut cluster);
        cluster.write("in1.jsonl", &lines(1000, 37));
        cluster.write("in2.jsonl", &lines(1000, 37));
        let graph = cluster.plan(&two_chains(2));
        let place = |vertex: u32, subtask: u32| ((vertex + subtask) % 2) as usize;
        let handles = cluster.deploy(&graph, place);
        millis(200).await;
        // One of the sources is not told.
        let told: Handles = handles.clone().into_iter().filter(|(place, _)| *place != (0, 1)).collect();
        cluster.trigger(&told, 1);
        millis(500).await;
        assert!(cluster.outcome(&told, 1).is_none(), "two tasks wait for a barrier");
        let stopped = handles[&(1, 0)].figures().calls;
        handles.values().for_each(|task| task.abort(1));
        cluster.trigger(&handles, 1);
        millis(200).await;
        assert!(cluster.outcome(&handles, 1).is_none(), "it was given up before it was said again");
        assert!(handles[&(1, 0)].figures().calls > stopped, "blocked channels are read on");
        let completed = cluster.checkpoint(&handles, 2).await;
        // Said again, aborted too late, confirmed twice and out of order.
        cluster.trigger(&handles, 2);
        handles.values().for_each(|task| {
            task.abort(2);
            task.confirm(2);
            task.confirm(1);
        });
        millis(20).await;
        cluster.crash(&handles, Some(completed)).await;
        let handles = cluster.deploy(&graph, place);
        cluster.finish(&handles).await;
        assert_eq!(all_parts(&cluster).len(), 2000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_checkpoint_makes_the_task_decline_the_one_it_waits_for() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        // Both sources read for some seconds.
        cluster.max_rate = Some(200.0);
        register_slow(&mut cluster);
        cluster.write("in1.jsonl", &lines(500, 37));
        cluster.write("in2.jsonl", &lines(500, 37));
        let graph = cluster.plan(&two_chains(2));
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        let told: Handles = handles.clone().into_iter().filter(|(place, _)| *place != (0, 1)).collect();
        cluster.trigger(&told, 1);
        millis(100).await;
        cluster.checkpoint(&handles, 2).await;
        let declined = cluster.outcome(&handles.into_iter().filter(|(p, _)| p.0 == 1).collect(), 1);
        let cause = declined.unwrap().unwrap_err();
        assert!(cause.contains("checkpoint 2 began before"), "{cause}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_store_or_a_disk_that_takes_nothing_makes_the_task_decline_and_go_on() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_stuck(&mut cluster);
        let long = "x".repeat(2000);
        let input: String = (0..50).map(|n| format!("{{\"n\":{n},\"k\":0,\"long\":\"{long}\"}}\n")).collect();
        cluster.write("in.jsonl", &input);
        let graph = cluster.plan(&one_chain("ordered"));
        let url = graph.checkpoints.as_ref().unwrap().dir.clone();
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        cluster.stores.store(&url).set_full(true);
        let cause = cluster.checkpoint_within(&handles, 1, SECOND).await.unwrap_err();
        assert!(cause.contains(&url) && cause.contains("chk-1/v0-0-1-0"), "{cause}");
        cluster.stores.store(&url).set_full(false);
        let completed = cluster.checkpoint(&handles, 2).await;
        assert!(completed.parts[&(0, 0)].state.as_ref().unwrap().length > 40_000);
        let names = cluster.stores.store(&url).names();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].ends_with("/chk-2/v0-0-1-0"), "{names:?}");
        let figures = handles[&(0, 0)].checkpoint_figures();
        assert_eq!(figures.started.get(), 2);
        assert_eq!(figures.completed.load(Ordering::Relaxed), 1);
        assert_eq!(figures.declined.load(Ordering::Relaxed), 1);
        assert!(figures.snapshot_bytes.load(Ordering::Relaxed) > 40_000);
        assert!(cluster.terminal().is_empty(), "{:?}", cluster.terminal());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_cannot_stage_makes_the_task_decline() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_slow(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 10));
        let graph = cluster.plan(&one_chain("ordered").replace("out.jsonl", "out/a.jsonl"));
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        std::fs::remove_dir_all(cluster.path("out")).unwrap();
        let cause = cluster.checkpoint_within(&handles, 1, SECOND).await.unwrap_err();
        assert!(cause.contains("a.jsonl"), "{cause}");
        assert!(cluster.terminal().is_empty(), "{:?}", cluster.terminal());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_with_a_failed_record_makes_the_task_decline() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("call", |request: CallRequest| async move {
            if n(&request) != 5 {
                return Ok(Answer::Value("1".into()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(CallFailure::terminal("no"))
        });
        cluster.calls.register("stuck", |_: CallRequest| std::future::pending());
        cluster.write("in.jsonl", &lines(20, 1));
        // The failure cannot leave its step, as there is no room behind it.
        let second = "  - enrich: {name: f, capacity: 2, timeout: none, into: b, call: {rust: stuck}}\nsink:";
        let yaml =
            one_chain("ordered").replace("into: a", "on_failure: fail, into: a").replace("sink:", second);
        let graph = cluster.plan(&yaml);
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        let cause = cluster.checkpoint_within(&handles, 1, SECOND).await.unwrap_err();
        assert!(cause.contains("`e` takes no snapshot after a failed record"), "{cause}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_in_the_same_checkpoint() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("call", |request: CallRequest| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if n(&request) % 3 == 0 {
                Err(CallFailure::terminal("no"))
            } else {
                Ok(Answer::Value("1".into()))
            }
        });
        cluster.write("in.jsonl", &lines(300, 10));
        let yaml = one_chain("ordered") + "dead_letters: {file: {path: dead.jsonl}}\n";
        let graph = cluster.plan(&yaml);
        assert_eq!(graph.vertices.len(), 2);
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(73).await;
        let completed = cluster.checkpoint(&handles, 1).await;
        let (out, dead) = (numbers(&cluster.read("out.jsonl")), cluster.read("dead.jsonl"));
        let figures = &completed.parts[&(0, 0)].figures;
        assert_eq!(figures.dead_letters as usize, dead.lines().count());
        assert_eq!((figures.records_out as usize, out.len() > 20), (out.len(), true));
        millis(41).await;
        cluster.crash(&handles, Some(completed)).await;
        let handles = cluster.deploy(&graph, |_, _| 0);
        cluster.finish(&handles).await;
        assert_eq!(numbers(&cluster.read("out.jsonl")).len(), 200);
        let dead: std::collections::BTreeSet<u64> = cluster
            .read("dead.jsonl")
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["record"]["n"].as_u64().unwrap()
            })
            .collect();
        assert_eq!(cluster.read("dead.jsonl").lines().count(), 100);
        assert_eq!(dead.len(), 100);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_told_to_stop_stages_and_says_nothing() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_slow(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 10));
        let graph = cluster.plan(&one_chain("ordered"));
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        cluster.trigger(&handles, 1);
        handles[&(0, 0)].cancel();
        assert_eq!(cluster.ended(1).await[0].state, TaskState::Canceled);
        millis(100).await;
        assert!(cluster.answers.lock().unwrap().is_empty());
        assert_eq!(cluster.files(), ["in.jsonl"], "nothing is staged");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_word_comes_after_the_answers_and_has_all_that_is_not_visible() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        let go = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&go);
        cluster.calls.register("call", move |_: CallRequest| {
            let gone = Arc::clone(&gone);
            async move {
                while !gone.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok(Answer::Value("1".into()))
            }
        });
        cluster.write("in.jsonl", &lines(5, 1));
        let graph = cluster.plan(&one_chain("ordered"));
        let handles = cluster.deploy(&graph, |_, _| 0);
        millis(100).await;
        // Everything is read, and the word of the checkpoint comes with the last answers.
        handles[&(0, 0)].trigger(1, EpochMillis(5));
        go.store(true, Ordering::Relaxed);
        let last = cluster.ended(1).await.remove(0).last.unwrap();
        let answers = cluster.answers.lock().unwrap().clone();
        assert_eq!(answers.len(), 1);
        assert!(answers[0].outcome.as_ref().unwrap().state.is_some());
        let source = last.source.unwrap();
        assert_eq!((source.finished, source.reading), (vec![0], None));
        assert_eq!((last.staged.len(), last.committed_length), (1, last.staged[0].length));
        assert_eq!(last.figures.records_out, 5);
        // A word that comes later is not answered: the task has said its last.
        handles[&(0, 0)].trigger(2, EpochMillis(5));
        millis(100).await;
        assert_eq!(cluster.answers.lock().unwrap().len(), 1);
    })
    .await;
}

/// To be run by `cargo test --release -p taskexecutor -- --ignored --nocapture measured`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, which is of interest in a release build only"]
async fn measured_a_checkpoint_of_100_000_records_in_flight() {
    const RECORDS: usize = 100_000;
    let mut cluster = Cluster::grpc(1).await;
    register_stuck(&mut cluster);
    cluster.write("in.jsonl", &lines(RECORDS + 1000, 10));
    for order in ["ordered", "unordered"] {
        let yaml = one_chain(order).replace("capacity: 20", &format!("capacity: {RECORDS}"));
        let graph = cluster.plan(&yaml.replace("path: out.jsonl", &format!("path: {order}.jsonl")));
        let handles = cluster.deploy(&graph, |_, _| 0);
        let task = &handles[&(0, 0)];
        while task.figures().steps[0].in_flight < RECORDS as u64 {
            millis(10).await;
        }
        for checkpoint in 1..=5 {
            millis(200).await;
            let (begun, busy) = (tokio::time::Instant::now(), task.figures().busy_ms);
            cluster.checkpoint_within(&handles, checkpoint, 10 * SECOND).await.unwrap();
            let took = begun.elapsed();
            let bytes = task.checkpoint_figures().snapshot_bytes.load(Ordering::Relaxed);
            millis(50).await;
            let held_up = task.figures().busy_ms - busy;
            println!(
                "{order}: {took:?}, the task's thread was busy for {held_up} ms, {bytes} bytes of state"
            );
            assert!(took < Duration::from_millis(300), "{took:?}");
        }
        cluster.crash(&handles, None).await;
    }
}
