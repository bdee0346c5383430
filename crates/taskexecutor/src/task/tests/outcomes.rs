//! Failures, timeouts, empties and malformed input, and what the policies make of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use connectors::call::{Answer, CallFailure, CallRequest};

use super::harness::{Cluster, lines, local, numbers};

fn n(request: &CallRequest) -> i64 {
    request.record.field("n").and_then(|n| n.as_i64()).unwrap()
}

/// `n % 5`: 0 fails for good, 1 is empty, 2 never answers, 3 succeeds at the third attempt, 4 at once.
fn register_moody(cluster: &mut Cluster) {
    cluster.calls.register("moody", |request: CallRequest| async move {
        match n(&request) % 5 {
            0 => Err(CallFailure::terminal("the service says no")),
            1 => Ok(Answer::Empty),
            2 => std::future::pending().await,
            3 if request.attempt < 3 => Err(CallFailure::retryable("try again")),
            _ => Ok(Answer::Value("true".into())),
        }
    });
}

fn moody(policies: &str) -> String {
    format!(
        "name: j
source: {{file: {{path: in.jsonl}}}}
steps:
  - enrich:
      {{name: e, capacity: 10, timeout: 10s, attempt_timeout: 1s, into: a, call: {{rust: moody}},
        retry: {{strategy: fixed-delay, max_retries: 3, delay: 100ms}}, {policies}}}
sink: {{file: {{path: out.jsonl}}}}
"
    )
}

#[tokio::test(start_paused = true)]
async fn dropped_records_are_counted_and_leave_the_others_alone() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_moody(&mut cluster);
        cluster.write("in.jsonl", &lines(20, 1));
        let figures = cluster.run(&moody("on_empty: drop, on_failure: drop")).await;
        assert_eq!((figures.records_out, figures.dropped, figures.empty), (8, 12, 4));
        // Of five records: one attempt each for 0, 1 and 4, four for 2, three for 3.
        assert_eq!((figures.calls, figures.retries, figures.timeouts), (40, 20, 16));
        assert_eq!(numbers(&cluster.read("out.jsonl")), [3, 4, 8, 9, 13, 14, 18, 19]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn kept_records_get_null_for_an_answer() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_moody(&mut cluster);
        cluster.write("in.jsonl", &lines(5, 1));
        let figures = cluster.run(&moody("on_empty: keep, on_failure: keep")).await;
        assert_eq!((figures.records_out, figures.empty), (5, 1));
        let answers: Vec<_> =
            cluster.read("out.jsonl").lines().map(|l| l.rsplit_once(':').unwrap().1.to_owned()).collect();
        assert_eq!(answers, ["null}", "null}", "null}", "true}", "true}"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dead_letters_say_what_was_tried_and_where_the_record_stood() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        register_moody(&mut cluster);
        cluster.write("in.jsonl", &lines(5, 1));
        let yaml = moody("on_empty: dead-letter") + "dead_letters: {file: {path: dead.jsonl}}\n";
        let figures = cluster.run(&yaml).await;
        assert_eq!((figures.records_out, figures.dead_letters), (2, 3));
        let dead: Vec<serde_json::Value> =
            cluster.read("dead.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let reasons: Vec<_> =
            dead.iter().map(|d| (d["reason"].as_str().unwrap(), d["attempts"].as_u64())).collect();
        assert_eq!(reasons, [("error", Some(1)), ("empty", Some(1)), ("timeout", Some(4))]);
        assert_eq!(dead[0]["error"], "the service says no");
        assert_eq!(dead[2]["record"], serde_json::json!({"n": 2, "k": 0}));
        assert_eq!(dead[2]["step"], "e");
        let source = serde_json::json!({"file": cluster.path("in.jsonl"), "line": 3, "offset": 28});
        assert_eq!(dead[2]["source"], source);
        // Three attempts of a second each and three pauses lie before the last one.
        assert_eq!(dead[2]["first_attempt_at"], "1970-01-01T00:16:40.000Z");
        assert_eq!(dead[2]["last_attempt_at"], "1970-01-01T00:16:43.300Z");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn failing_by_policy_names_task_place_and_cause() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("broken", |request: CallRequest| async move {
            if n(&request) == 1 {
                Err(CallFailure::retryable("503 from the service"))
            } else {
                Ok(Answer::Empty)
            }
        });
        cluster.write("in.jsonl", &lines(3, 1));
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps: [{enrich: {name: e, timeout: 5s, into: a, call: {rust: broken}}}]
sink: {file: {path: out.jsonl}}
";
        let failed = cluster.fails(yaml).await;
        let error = failed.error.unwrap();
        let place = format!("{}, line 2, byte offset 14", cluster.path("in.jsonl").display());
        assert!(error.starts_with("task source") && error.contains("(1/1)"), "{error}");
        assert!(
            error.contains(&place) && error.contains("step `e`") && error.ends_with("503 from the service"),
            "{error}"
        );
        assert!(!failed.unrecoverable, "a service may come back");
        assert_eq!(cluster.files(), ["in.jsonl"], "nothing is left of the output");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_malformed_line_fails_a_job_without_dead_letters_for_good() {
    local(async {
        let cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", "{\"n\":0}\n\n{\"n\":\n{\"n\":2}\n");
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps: [{filter: 'true'}]
sink: {file: {path: out.jsonl}}
";
        let failed = cluster.fails(yaml).await;
        let error = failed.error.unwrap();
        let place =
            format!("malformed input at {}, line 3, byte offset 9", cluster.path("in.jsonl").display());
        assert!(error.contains(&place), "{error}");
        assert!(failed.unrecoverable);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn malformed_lines_and_event_times_go_to_the_dead_letters() {
    local(async {
        let cluster = Cluster::new(2).await;
        cluster.write(
            "in.jsonl",
            "{\"n\":0,\"ts\":1}\nno record\n{\"n\":2,\"ts\":\"never\"}\n{\"n\":3,\"ts\":4}\n",
        );
        let yaml = "name: j
source: {file: {path: in.jsonl, event_time: ts}}
steps: [{filter: 'true'}]
sink: {file: {path: out.jsonl}}
dead_letters: {file: {path: dead.jsonl}}
";
        let figures = cluster.run_on(yaml, |vertex, _| (vertex % 2) as usize).await;
        assert_eq!((figures.records_in, figures.records_out, figures.dead_letters), (4, 2, 2));
        assert_eq!(numbers(&cluster.read("out.jsonl")), [0, 3]);
        let dead = cluster.read("dead.jsonl");
        let dead: Vec<serde_json::Value> =
            dead.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(dead[0]["record"], "no record");
        assert_eq!((&dead[0]["reason"], &dead[0]["attempts"]), (&"malformed".into(), &0.into()));
        assert!(dead[0].get("step").is_none());
        assert_eq!((&dead[1]["source"]["line"], &dead[1]["source"]["offset"]), (&3.into(), &25.into()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_cannot_be_evaluated_follows_its_policy() {
    local(async {
        let cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", "{\"n\":1}\n{\"n\":null}\n{\"n\":9}\n");
        let yaml = |policy: &str| {
            format!(
                "name: j
source: {{file: {{path: in.jsonl}}}}
steps: [{{filter: {{if: 'n > 5', on_failure: {policy}}}}}]
sink: {{file: {{path: out-{policy}.jsonl}}}}
"
            )
        };
        let dropped = cluster.run(&yaml("drop")).await;
        assert_eq!((dropped.records_out, dropped.filtered, dropped.dropped), (1, 1, 1));
        cluster.events.lock().unwrap().clear();
        let kept = cluster.run(&yaml("keep")).await;
        assert_eq!((kept.records_out, kept.filtered, kept.dropped), (2, 1, 0));
        cluster.events.lock().unwrap().clear();
        let failed = cluster.fails(&yaml("fail")).await;
        assert!(failed.unrecoverable && failed.error.unwrap().contains("line 2, byte offset 8"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_is_a_failed_record() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("fragile", |request: CallRequest| async move {
            assert!(n(&request) != 1, "one is too much");
            Ok(Answer::Value("1".into()))
        });
        cluster.write("in.jsonl", &lines(3, 1));
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps: [{enrich: {name: e, timeout: 5s, into: a, call: {rust: fragile}}}]
sink: {file: {path: out.jsonl}}
dead_letters: {file: {path: dead.jsonl}}
";
        let figures = cluster.run(yaml).await;
        assert_eq!((figures.records_out, figures.dead_letters), (2, 1));
        assert!(cluster.read("dead.jsonl").contains("one is too much"), "{}", cluster.read("dead.jsonl"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_attempt_at_a_record_carries_the_same_key_and_no_two_records_do() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        let seen: Arc<Mutex<BTreeMap<String, Vec<i64>>>> = Arc::default();
        let noted = Arc::clone(&seen);
        cluster.calls.register("note", move |request: CallRequest| {
            noted.lock().unwrap().entry(request.idempotency_key.to_string()).or_default().push(n(&request));
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if request.attempt == 1 { Err(CallFailure::retryable("once more")) } else { Ok(Answer::Empty) }
            }
        });
        cluster.write("in.jsonl", &lines(10, 1));
        let yaml = "name: j
source: {file: {path: in.jsonl}}
steps:
  - enrich: {name: e, timeout: 5s, into: a, call: {rust: note},
             retry: {strategy: exponential-delay, max_retries: 2, initial: 10ms, max: 1s, multiplier: 2, jitter: 0.1}}
sink: {file: {path: out.jsonl}}
";
        let figures = cluster.run(yaml).await;
        assert_eq!((figures.calls, figures.retries), (20, 10));
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 10);
        assert!(seen.iter().all(|(key, who)| key.len() == 32 && who.len() == 2 && who[0] == who[1]), "{seen:?}");
    })
    .await;
}
