//! One job on the simulated cluster: links are cut and healed, and equal seeds give equal runs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use connectors::call::{Answer, RustCalls};
use runtime_core::Clock as _;
use testkit::simulation::{Shape, simulate};
use tidegate::client::JobResult;

const RECORDS: u64 = 400;

/// A keyed job of two subtasks whose records are exchanged between two task executors; 100 records a second.
const JOB: &str = "\
name: simulated
parallelism: 2
restart: {strategy: fixed-delay, attempts: 3, delay: 100ms}
source: {file: {path: in.jsonl, max_rate: 100}}
steps:
  - enrich: {name: double, order: keyed, key: k, into: doubled, timeout: 5s, call: {rust: double}}
sink: {file: {path: out.jsonl}}
";

fn shape(seed: u64) -> Shape {
    let mut calls = RustCalls::default();
    calls.register("double", |request: connectors::call::CallRequest| async move {
        let n = request.record.field("n").and_then(|n| n.as_i64()).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(Answer::Value((n * 2).to_string().into()))
    });
    Shape { calls, slots: 1, ..Shape::of_seed(seed) }
}

fn input(folder: &Path) -> String {
    let mut text = String::new();
    for n in 0..RECORDS {
        writeln!(text, "{{\"n\":{n},\"k\":{}}}", n % 7).unwrap();
    }
    std::fs::write(folder.join("in.jsonl"), &text).unwrap();
    text
}

/// Runs the job while `from` and `to` cannot reach each other for `cut`, beginning a second after its start.
fn run(seed: u64, from: &str, to: &str, cut: Duration) -> (JobResult, Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let (result, log) = simulate(shape(seed), async |simulation| {
        let job = simulation.submit(JOB, folder.path()).await?;
        simulation.pass(Duration::from_secs(1)).await;
        simulation.network.cut(from, to);
        simulation.pass(cut).await;
        simulation.network.heal(from, to);
        let view = simulation.cluster.wait(job, Duration::from_millis(100), |_| {}).await?;
        Ok(view.result(simulation.cluster.clock().wall()))
    })
    .unwrap();
    let output = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap_or_default();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "left behind: {left:?}");
    (result, log, output)
}

fn assert_complete(result: &JobResult, output: &str) {
    assert_eq!(result.state, "FINISHED", "{result:?}");
    assert_eq!((result.records_in, result.records_out), (RECORDS, RECORDS));
    let mut numbers: Vec<u64> = Vec::new();
    let mut last_of_key = [None; 7];
    for line in output.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let (n, k) = (row["n"].as_u64().unwrap(), row["k"].as_u64().unwrap() as usize);
        assert_eq!(row["doubled"].as_u64(), Some(n * 2));
        assert!(last_of_key[k] < Some(n), "key {k} is out of order at {n}");
        last_of_key[k] = Some(n);
        numbers.push(n);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..RECORDS).collect::<Vec<_>>());
}

#[test]
fn a_link_that_is_cut_for_less_than_the_timeout_restarts_nothing() {
    for (from, to) in [
        ("jobmaster", "taskexecutor-1"),
        ("resourcemanager", "taskexecutor-2"),
        ("resourcemanager", "jobmaster"),
        ("taskexecutor-1", "taskexecutor-2"),
    ] {
        let (result, log, output) = run(1, from, to, Duration::from_secs(2));
        assert_complete(&result, &output);
        assert_eq!(result.restarts, 0, "{from} and {to} were cut for less than the timeout");
        assert!(log.iter().any(|line| line.contains("held") || line.contains("cut")), "nothing met the cut");
    }
}

#[test]
fn a_job_master_that_loses_a_task_executor_for_good_runs_the_job_again_when_the_link_heals() {
    let (result, _, output) = run(2, "jobmaster", "taskexecutor-1", Duration::from_secs(12));
    assert_complete(&result, &output);
    assert_eq!(result.restarts, 1, "{result:?}");
}

/// The job master hears the task executor all the time; the resource manager does not, and what it finds holds (FLINK-34526).
#[test]
fn c069_who_is_lost_to_the_resource_manager_is_dropped_by_job_masters_at_once() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let mut after = None;
    let (result, _) = simulate(shape(3), async |simulation| {
        // Ten seconds, or it would be over before the timeout.
        let job = simulation.submit(&JOB.replace("max_rate: 100", "max_rate: 40"), folder.path()).await?;
        simulation.pass(Duration::from_secs(1)).await;
        simulation.network.cut("resourcemanager", "taskexecutor-1");
        let began = simulation.cluster.clock().now();
        let restarted = async {
            while simulation.cluster.result(job).is_some_and(|result| result.restarts == 0) {
                simulation.pass(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(9), restarted).await?;
        after = Some(simulation.cluster.clock().now().since(began));
        let failures = simulation.cluster.dispatcher().and_then(|d| d.view(job)).unwrap().failures.clone();
        assert!(failures[0].text.contains("taskexecutor-1"), "{failures:?}");
        simulation.network.heal("resourcemanager", "taskexecutor-1");
        let view = simulation.cluster.wait(job, Duration::from_millis(100), |_| {}).await?;
        Ok(view.result(simulation.cluster.clock().wall()))
    })
    .unwrap();
    let after = after.unwrap();
    // Its timeout, and no second one; the word of it takes milliseconds.
    assert!(after <= Duration::from_millis(6_200), "{after:?} after the cut");
    assert_complete(&result, &std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap());
    assert_eq!(result.restarts, 1, "{result:?}");
}

#[test]
fn equal_seeds_give_equal_logs_and_another_seed_another_one() {
    let once = run(7, "jobmaster", "taskexecutor-1", Duration::from_secs(12));
    let again = run(7, "jobmaster", "taskexecutor-1", Duration::from_secs(12));
    let first_difference = once.1.iter().zip(&again.1).position(|(a, b)| a != b);
    assert_eq!(first_difference.map(|at| (&once.1[at], &again.1[at])), None);
    assert_eq!(once.1.len(), again.1.len());
    assert_eq!((once.0, once.2), (again.0, again.2));
    let other = run(8, "jobmaster", "taskexecutor-1", Duration::from_secs(12));
    assert_ne!(once.1, other.1);
}
