//! Orders, partitioning and time in whole jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use connectors::call::{Answer, CallRequest};

use super::harness::{Cluster, lines, local, numbers};

fn number(request: &CallRequest) -> u64 {
    request.record.field("n").and_then(|n| n.as_i64()).unwrap() as u64
}

/// Answers `n` after a time that differs from record to record, so that answers come out of order.
fn register_uneven(cluster: &mut Cluster) {
    cluster.calls.register("uneven", |request: CallRequest| async move {
        let n = number(&request);
        tokio::time::sleep(Duration::from_millis(n * 7919 % 23)).await;
        Ok(Answer::Value(n.to_string().into()))
    });
}

fn enrich(order: &str, parallelism: u32) -> String {
    format!(
        "name: j
parallelism: {parallelism}
source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich: {{name: e, {order}, capacity: 10, timeout: 10s, into: a, call: {{rust: uneven}}}}
sink: {{file: {{path: out.jsonl}}}}
"
    )
}

#[tokio::test(start_paused = true)]
async fn ordered_output_has_the_order_of_the_input() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_uneven(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 7));
        let figures = cluster.run(&enrich("order: ordered", 1)).await;
        let output = cluster.read("out.jsonl");
        assert_eq!(numbers(&output), (0..300).collect::<Vec<_>>());
        assert!(output.starts_with("{\"n\":0,\"k\":0,\"a\":0}\n{\"n\":1,\"k\":1,\"a\":1}\n"), "{output}");
        assert_eq!((figures.records_in, figures.records_out, figures.calls), (300, 300, 300));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unordered_output_has_every_record_once_and_is_sooner_done() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_uneven(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 7));
        cluster.run(&enrich("order: unordered", 1)).await;
        let mut output = numbers(&cluster.read("out.jsonl"));
        assert_ne!(output, (0..300).collect::<Vec<_>>(), "answers came out of order");
        output.sort_unstable();
        assert_eq!(output, (0..300).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn keyed_output_keeps_the_order_of_each_key_across_subtasks() {
    local(async {
        let mut cluster = Cluster::new(2).await;
        register_uneven(&mut cluster);
        cluster.write("in.jsonl", &lines(300, 7));
        let yaml = enrich("order: keyed, key: k", 2);
        let figures = cluster.run_on(&yaml, |vertex, subtask| ((vertex + subtask) % 2) as usize).await;
        assert_eq!(figures.records_out, 300);
        let mut by_key: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in numbers(&cluster.read("out.jsonl")) {
            by_key.entry(n % 7).or_default().push(n);
        }
        assert_eq!(by_key.len(), 7);
        assert!(by_key.values().all(|numbers| numbers.is_sorted()), "{by_key:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn several_asynchronous_steps_in_one_chain_do_not_block_each_other() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_uneven(&mut cluster);
        cluster.write("in.jsonl", &lines(200, 7));
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps:
  - enrich: {name: first, capacity: 1, timeout: 10s, into: a, call: {rust: uneven}}
  - filter: 'n % 2 == 0'
  - enrich: {name: second, order: unordered, capacity: 3, timeout: 10s, into: b, call: {rust: uneven}}
  - enrich: {name: third, capacity: 2, timeout: 10s, into: c, call: {rust: uneven}}
sink: {file: {path: out.jsonl}}
";
        let figures = cluster.run(yaml).await;
        assert_eq!((figures.records_out, figures.filtered, figures.calls), (100, 100, 400));
        let mut output = numbers(&cluster.read("out.jsonl"));
        output.sort_unstable();
        assert_eq!(output, (0..200).step_by(2).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_table_answers_at_once_and_a_missing_row_is_empty() {
    local(async {
        let cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", &lines(1000, 10));
        let table: String = (0..9).map(|k| format!("{{\"id\":{k},\"name\" : \"row {k}\"}}\n")).collect();
        cluster.write("table.jsonl", &table);
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps:
  - enrich: {name: t, order: unordered, into: row, call: {table: {file: table.jsonl, key: id, by: k}}}
sink: {file: {path: out.jsonl}}
";
        let figures = cluster.run(yaml).await;
        assert_eq!((figures.records_out, figures.empty, figures.calls), (1000, 100, 1000));
        let output = cluster.read("out.jsonl");
        let line = |n: usize| output.lines().nth(n).unwrap();
        assert_eq!(line(8), r#"{"n":8,"k":8,"row":{"id":8,"name":"row 8"}}"#);
        assert_eq!(line(9), r#"{"n":9,"k":9,"row":null}"#);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_source_keeps_to_its_rate() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.max_rate = Some(100.0);
        cluster.write("in.jsonl", &lines(501, 1));
        let yaml = "name: j
source: {file: {path: in.jsonl, max_rate: 100}}
steps: [{filter: 'true'}]
sink: {file: {path: out.jsonl}}
";
        let start = tokio::time::Instant::now();
        cluster.run(yaml).await;
        let took = start.elapsed().as_millis();
        assert!((4900..5300).contains(&took), "501 records at 100 a second took {took} ms");
        assert_eq!(
            numbers(&cluster.read("out.jsonl")),
            (0..501).collect::<Vec<_>>(),
            "no split is read twice"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_watermark_reaches_the_sink_over_an_exchange() {
    local(async {
        let mut cluster = Cluster::new(2).await;
        register_uneven(&mut cluster);
        let timed: String =
            (0..50).map(|n| format!("{{\"n\":{n},\"k\":{n},\"ts\":{}}}\n", n * 1000)).collect();
        cluster.write("in.jsonl", &timed);
        let yaml =
            enrich("order: keyed, key: k", 2).replace("path: in.jsonl", "path: in.jsonl, event_time: ts");
        cluster.run_on(&yaml, |vertex, _| (vertex % 2) as usize).await;
        let watermarks: Vec<_> = cluster.terminal().iter().map(|event| event.figures.watermark).collect();
        assert!(watermarks.iter().all(|&at| at == Some(i64::MAX)), "{watermarks:?}");
    })
    .await;
}
