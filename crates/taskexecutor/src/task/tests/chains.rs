//! Several asynchronous steps in one chain: their results, their ends, and failures behind them. Names that begin with a
//! letter and a number are cases of the asynchronous operator's specification.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use connectors::call::{Answer, CallRequest};

use super::harness::{Cluster, lines, local, numbers};
use crate::task::TaskState;

fn field(request: &CallRequest, name: &str) -> i64 {
    request.record.field(name).and_then(|value| value.as_i64()).unwrap()
}

/// `double-n`, `double-b` and `plus-a`, which waits for nobody; and who was called, in order.
fn register(cluster: &mut Cluster) -> Arc<Mutex<Vec<String>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    for (name, of, waits) in [("double-n", "n", true), ("plus-a", "a", false), ("double-b", "b", true)] {
        let calls = Arc::clone(&calls);
        cluster.calls.register(name, move |request: CallRequest| {
            let calls = Arc::clone(&calls);
            async move {
                let (n, value) = (field(&request, "n"), field(&request, of));
                calls.lock().unwrap().push(format!("{name} {n}"));
                if waits {
                    tokio::time::sleep(Duration::from_millis(n as u64 * 7919 % 23)).await;
                }
                let answer = if waits { 2 * value } else { value + 1 };
                Ok(Answer::Value(answer.to_string().into()))
            }
        });
    }
    calls
}

fn chain(first: u32, last: u32) -> String {
    format!(
        "name: j
source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich: {{name: first, capacity: {first}, timeout: 10s, into: a, call: {{rust: double-n}}}}
  - enrich: {{name: plus, timeout: 10s, into: b, call: {{rust: plus-a}}}}
  - enrich: {{name: last, order: unordered, capacity: {last}, timeout: 10s, into: c, call: {{rust: double-b}}}}
sink: {{file: {{path: out.jsonl}}}}
"
    )
}

fn answers(text: &str) -> Vec<i64> {
    let answer = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["c"].as_i64().unwrap();
    let mut answers: Vec<i64> = text.lines().map(answer).collect();
    answers.sort_unstable();
    answers
}

#[tokio::test(start_paused = true)]
async fn g06_results_pass_through_a_chain_of_asynchronous_steps_each_once() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        let calls = register(&mut cluster);
        let input: String = lines(10, 1).lines().skip(5).map(|line| format!("{line}\n")).collect();
        cluster.write("in.jsonl", &input);
        let figures = cluster.run(&chain(6, 3)).await;
        assert_eq!(answers(&cluster.read("out.jsonl")), [22, 26, 30, 34, 38]);
        assert_eq!((figures.records_in, figures.records_out, figures.calls), (5, 5, 15));
        let calls = calls.lock().unwrap();
        let first: Vec<_> = calls.iter().filter(|call| call.starts_with("plus-a")).collect();
        assert_eq!(
            first,
            ["plus-a 5", "plus-a 6", "plus-a 7", "plus-a 8", "plus-a 9"],
            "the first keeps the order"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn g08_steps_with_pending_results_end_one_after_the_other_and_nothing_is_lost() {
    for (first, last) in [(1, 1), (6, 3), (3, 6), (100, 1)] {
        local(async {
            let mut cluster = Cluster::new(1).await;
            let calls = register(&mut cluster);
            cluster.write("in.jsonl", &lines(60, 1));
            let figures = cluster.run(&chain(first, last)).await;
            assert_eq!(figures.records_out, 60);
            let expected: Vec<i64> = (0..60).map(|n| 2 * (2 * n + 1)).collect();
            assert_eq!(answers(&cluster.read("out.jsonl")), expected);
            let calls = calls.lock().unwrap();
            let at = |call: String| calls.iter().position(|made| *made == call).unwrap();
            for n in 0..60 {
                assert!(at(format!("double-n {n}")) < at(format!("plus-a {n}")));
                assert!(at(format!("plus-a {n}")) < at(format!("double-b {n}")));
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn c10_an_error_behind_an_asynchronous_step_fails_the_task_with_that_error() {
    for order in ["ordered", "unordered"] {
        local(async {
            let mut cluster = Cluster::new(1).await;
            cluster.calls.register("word", |_: CallRequest| async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(Answer::Value("\"word\"".into()))
            });
            cluster.write("in.jsonl", &lines(10, 1));
            let yaml = format!(
                "name: j
source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich: {{name: e, order: {order}, capacity: 10, timeout: 10s, into: a, call: {{rust: word}}}}
  - filter: {{if: 'a > 1', on_failure: fail}}
sink: {{file: {{path: out.jsonl}}}}
"
            );
            let failed = cluster.fails(&yaml).await;
            let error = failed.error.unwrap();
            assert!(error.contains("step `filter-1` failed for the record"), "{error}");
            assert_eq!(cluster.files(), ["in.jsonl"], "nothing of the output is left");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn h08_after_an_error_behind_it_a_step_with_calls_that_never_end_lets_the_task_end() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("some", |request: CallRequest| async move {
            if field(&request, "n") == 0 {
                Ok(Answer::Value("\"word\"".into()))
            } else {
                std::future::pending().await
            }
        });
        cluster.write("in.jsonl", &lines(5, 1));
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps:
  - enrich: {name: e, order: unordered, timeout: none, into: a, call: {rust: some}}
  - filter: {if: 'a > 1', on_failure: fail}
sink: {file: {path: out.jsonl}}
";
        let begun = tokio::time::Instant::now();
        let failed = cluster.fails(yaml).await;
        assert_eq!(failed.state, TaskState::Failed);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn h08_a_step_without_room_behind_it_holds_its_results_and_loses_none() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 1));
        cluster.run(&chain(50, 1)).await;
        let mut output = numbers(&cluster.read("out.jsonl"));
        output.sort_unstable();
        assert_eq!(output, (0..300).collect::<Vec<_>>());
    })
    .await;
}
