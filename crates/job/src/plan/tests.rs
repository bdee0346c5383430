//! Tests of plans: which chains and edges come of which job, and how they are explained.

mod chaining;

use super::*;
use crate::options::FileSourceOptions;

fn planned(text: &str) -> JobGraph {
    plan(&JobFile::parse(text, "j.yaml").unwrap_or_else(|errors| panic!("{errors}"))).unwrap()
}

/// A job with these keys on top, steps, and sink path.
fn job(top: &str, steps: &str, sink: &str) -> JobGraph {
    planned(&format!(
        "{{name: j, {top} source: {{file: {{path: /in/a.jsonl}}}}, steps: [{steps}], sink: {{file: {{path: {sink}}}}}}}"
    ))
}

/// An enrichment with further keys.
fn step(name: &str, keys: &str) -> String {
    format!("{{enrich: {{name: {name}, into: {name}, call: {{rust: f}}, {keys}}}}}")
}

/// `chain names xN` and `from>to how`.
fn shape(graph: &JobGraph) -> (Vec<String>, Vec<String>) {
    let vertices = graph.vertices.iter().map(|v| format!("{} x{}", v.name, v.parallelism)).collect();
    let edges = graph.edges.iter().map(|edge| {
        let how = match &edge.partitioning {
            Partitioning::RoundRobin => "turn",
            Partitioning::KeyGroups { field } => field,
        };
        let what = if edge.output == Output::DeadLetters { " dead" } else { "" };
        format!("{}>{} {how}{what}", edge.from.0, edge.to.0)
    });
    (vertices, edges.collect())
}

fn split(graph: &JobGraph) -> SplitMode {
    match &graph.vertices[0].operators[0] {
        OperatorSpec::Source(SourceOptions::File(FileSourceOptions { split, .. })) => *split,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_of_parallelism_1_is_one_chain_that_keeps_the_order() {
    let keyed = step("k", "order: keyed, key: id");
    let graph = job("", &format!("{{filter: a > 1}}, {}", step("e", "")), "/out/x.jsonl");
    let (vertices, edges) = shape(&graph);
    assert_eq!(vertices, ["source: a.jsonl -> filter-1 -> e -> sink x1"]);
    assert_eq!(edges, Vec::<String>::new());
    assert!(graph.keeps_input_order);
    assert_eq!((graph.slots(), split(&graph)), (1, SplitMode::File));
    let graph = job("", &keyed, "/out/x.jsonl");
    assert_eq!(shape(&graph).0, ["source: a.jsonl -> k -> sink x1"]);
    assert!(!graph.keeps_input_order);
}

#[test]
fn a_single_file_sink_runs_alone_and_a_folder_stays_in_the_chain() {
    let unordered = step("e", "order: unordered");
    let graph = job("parallelism: 2,", &unordered, "/out/x.jsonl");
    assert_eq!(
        shape(&graph),
        (vec!["source: a.jsonl -> e x2".to_owned(), "sink x1".to_owned()], vec!["0>1 turn".to_owned()])
    );
    assert_eq!((graph.slots(), split(&graph)), (2, SplitMode::Range));
    let graph = job("parallelism: 2,", &unordered, "/out/x/");
    assert_eq!(shape(&graph).0, ["source: a.jsonl -> e -> sink x2"]);
    assert!(!graph.keeps_input_order);
}

#[test]
fn a_keyed_step_cuts_the_chain_once_per_key() {
    let (a, b) = (step("a", "order: keyed, key: id"), step("b", "order: keyed, key: id"));
    let other = step("c", "order: keyed, key: other.part");
    let graph = job("parallelism: 2,", &format!("{{filter: x}}, {a}, {{filter: y}}, {b}, {other}"), "/out/");
    let (vertices, edges) = shape(&graph);
    assert_eq!(vertices, ["source: a.jsonl -> filter-1 x2", "a -> filter-2 -> b x2", "c -> sink x2"]);
    assert_eq!(edges, ["0>1 id", "1>2 other.part"]);
    assert_eq!(split(&graph), SplitMode::File);
}

#[test]
fn a_step_that_may_change_the_key_scatters_the_records() {
    let keyed = |name: &str, into: &str| {
        format!("{{enrich: {{name: {name}, {into} order: keyed, key: id.x, call: {{rust: f}}}}}}")
    };
    for (into, chains) in [("into: y,", 2), ("into: id.x,", 3), ("into: id,", 3), ("", 3)] {
        let graph =
            job("parallelism: 2,", &format!("{}, {}", keyed("a", into), keyed("b", "into: z,")), "/out/");
        assert_eq!(graph.vertices.len(), chains, "{into}");
    }
}

#[test]
fn a_change_of_parallelism_cuts_the_chain() {
    let graph = planned(
        "{name: j, parallelism: 2, source: {file: {path: /in/a.jsonl}, parallelism: 1},
          steps: [{filter: x, parallelism: 3}, {filter: y}, {enrich: {name: e, parallelism: 4, call: {rust: f}}}],
          sink: {file: {path: /out/, parallelism: 4}}}",
    );
    let (vertices, edges) = shape(&graph);
    assert_eq!(vertices, ["source: a.jsonl x1", "filter-1 x3", "filter-2 x2", "e -> sink x4"]);
    assert_eq!(edges, ["0>1 turn", "1>2 turn", "2>3 turn"]);
    assert_eq!(graph.slots(), 4);
}

#[test]
fn records_that_move_before_a_keyed_step_move_by_its_key() {
    let steps = format!("{{filter: x}}, {}", step("k", "order: keyed, key: id"));
    let text = format!(
        "{{name: j, parallelism: 2, source: {{file: {{path: /in/a.jsonl}}, parallelism: 1}},
           steps: [{steps}], sink: {{file: {{path: /out/}}}}}}"
    );
    let (vertices, edges) = shape(&planned(&text));
    // Dealt out in turn to the filters, the records of one key would overtake each other before they reach the step.
    assert_eq!(vertices, ["source: a.jsonl x1", "filter-1 -> k -> sink x2"]);
    assert_eq!(edges, ["0>1 id"]);
}

#[test]
fn dead_letters_are_a_chain_fed_by_those_that_can_give_some() {
    let steps = format!(
        "{}, {}",
        step("a", "order: keyed, key: id, on_failure: fail"),
        step("b", "order: keyed, key: other, on_failure: drop, on_empty: dead-letter")
    );
    let top = "parallelism: 2, dead_letters: {file: {path: /out/dead.jsonl}},";
    let (vertices, edges) = shape(&job(top, &steps, "/out/x.jsonl"));
    assert_eq!(vertices, ["source: a.jsonl x2", "a x2", "b x2", "sink x1", "dead letters x1"]);
    assert_eq!(edges, ["0>1 id", "1>2 other", "2>3 turn", "0>4 turn dead", "2>4 turn dead"]);
    let top = "parallelism: 2, dead_letters: {file: {path: /out/dead/}},";
    let (vertices, _) = shape(&job(top, "{filter: x}", "/out/x.jsonl"));
    assert_eq!(vertices, ["source: a.jsonl -> filter-1 x2", "sink x1", "dead letters x2"]);
}

#[test]
fn dead_letters_do_not_cost_the_order() {
    let graph = job("dead_letters: {file: {path: /out/dead.jsonl}},", "{filter: x}", "/out/x.jsonl");
    assert!(graph.keeps_input_order);
    assert_eq!(graph.slots(), 1);
}

#[test]
fn a_source_is_named_by_the_end_of_its_path() {
    for (path, name) in
        [("/in/a.jsonl", "a.jsonl"), ("/in/day/", "day"), ("/in/day/*.jsonl", "day/*.jsonl"), ("a", "a")]
    {
        let text = format!(
            "{{name: j, source: {{file: {{path: {path}}}}}, steps: [{{filter: x}}], sink: {{file: {{path: /o}}}}}}"
        );
        assert!(planned(&text).vertices[0].name.starts_with(&format!("source: {name} -> ")), "{path}");
    }
}

#[test]
fn an_explanation_spells_every_default_out() {
    let graph = job("", &format!("{{filter: a > 1}}, {}", step("e", "")), "/out/x.jsonl");
    let expected = "\
job: j
  slots needed: 1
  output order: that of the input
  max_parallelism: 128
  checkpoints: none
  restart: none

chain 0: source: a.jsonl -> filter-1 -> e -> sink
  parallelism: 1
  source: file
    path: /in/a.jsonl
    split: file (each file is read from start to end by one subtask)
    event_time: none
    watermark_lag: 0ms
    max_rate: none
    max_record: 1MiB
  filter: filter-1
    if: a > 1
    on_failure: fail
  enrich: e
    order: ordered
    capacity: 100 per subtask
    timeout: 30s
    attempt_timeout: none
    retry: none
    on_empty: keep
    on_failure: fail
    into: e
    max_answer: 1MiB
    call: rust f
  sink: file
    path: /out/x.jsonl (a single file)
    overwrite: false
";
    assert_eq!(explain(&graph), expected);
}

#[test]
fn the_examples_are_right_and_are_explained() {
    let explained = [
        (include_str!("../../../../examples/jobs/big-orders.yaml"), include_str!("explained/big-orders.txt")),
        (
            include_str!("../../../../examples/jobs/enrich-flights.yaml"),
            include_str!("explained/enrich-flights.txt"),
        ),
        (
            include_str!("../../../../examples/jobs/enrich-orders.yaml"),
            include_str!("explained/enrich-orders.txt"),
        ),
    ];
    for (text, expected) in explained {
        let mut file = JobFile::parse(text, "example").unwrap_or_else(|errors| panic!("{errors}"));
        file.absolute_paths("/jobs".as_ref());
        assert_eq!(explain(&plan(&file).unwrap()), expected);
    }
}

#[test]
fn an_explanation_names_what_costs_the_order_and_hides_secrets() {
    let http = "{enrich: {name: e, order: unordered, timeout: 1s, retry: {strategy: fixed-delay}, call: {http: {url: \"http://h/{a}\", \
                headers: {Authorization: Bearer x, X-Id: \"{id}\"}, method: post, body: \"{{}}\"}}}}";
    let top = "checkpoints: {interval: 1s, dir: /c}, restart: {strategy: failure-rate},";
    let text = explain(&job(top, http, "/out/x.jsonl"));
    for line in [
        "  output order: not that of the input, as e is not ordered",
        "  checkpoints: interval 1s, min_pause 0ms, timeout 10m, tolerable_failures 0, retain 1, dir /c",
        "  restart: failure-rate, max_failures 1, interval 1m, delay 1s",
        "    retry: fixed-delay, max_retries 3, delay 100ms",
        "    into: none (the answer replaces the record)",
        "      method: POST",
        "      header Authorization: (not shown)",
        "      header X-Id: {id}",
        "      body: {{}}",
        "      empty: 204, 404",
        "      success: 200-299",
        "      retryable: 408, 429, 500-599 and transport errors",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}
