//! What REST answers, and how it refuses.

use std::time::Duration;

use runtime_core::EpochMillis;
use serde_json::{Value, json};

use super::{JOB, OTHER, World, ask, ask_router, ask_with, until};
use crate::checkpoint::{CheckpointEntry, CheckpointStatus};
use crate::dispatcher::Started;
use crate::rest::{checkpoints, exceptions, router};
use crate::status::{ExecutionState, JobStatus};

#[tokio::test]
async fn c160_the_overview_counts_every_execution_state_and_a_running_job_has_no_end() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    let (status, overview) = ask(&master, "GET", "/jobs/overview").await;
    assert_eq!(status, 200);
    let job = &overview["jobs"][0];
    assert_eq!((&job["jid"], &job["end-time"]), (&json!(JOB.to_string()), &json!(-1)), "{job}");
    for state in ExecutionState::ALL {
        assert!(job["tasks"][state.as_str().to_lowercase()].is_u64(), "{state:?}: {job}");
    }
    let states = ExecutionState::ALL.len() + 1;
    assert_eq!((job["tasks"]["total"].as_u64(), job["tasks"].as_object().unwrap().len()), (Some(1), states));
    master.stop().await;
}

#[tokio::test]
async fn c161_stop_by_patch_is_a_redirect_and_rescaling_is_unavailable() {
    let world = World::new();
    let master = world.start().await;
    for (path, expected) in [(format!("/jobs/{JOB}?mode=stop"), 308), (format!("/jobs/{JOB}/rescaling"), 503)]
    {
        let (status, body) = ask(&master, "PATCH", &path).await;
        assert_eq!(status, expected, "{body}");
        assert_refusal(&body);
    }
    master.stop().await;
}

/// Exactly one key, as clients tell errors by it.
fn assert_refusal(body: &Value) {
    let fields = body.as_object().unwrap();
    assert_eq!(fields.len(), 1, "{body}");
    assert!(fields["errors"].as_array().is_some_and(|errors| errors.iter().all(Value::is_string)), "{body}");
}

#[tokio::test]
async fn whatever_is_refused_is_refused_with_a_body_of_one_key() {
    let world = World::new();
    let master = world.start().await;
    let unknown = "0123456789abcdef0123456789abcdef";
    for (method, path, expected) in [
        ("GET", format!("/v1/jobs/{unknown}"), 404),
        ("GET", format!("/v1/jobs/{unknown}/status"), 404),
        ("GET", format!("/v1/jobs/{unknown}/exceptions"), 404),
        ("GET", format!("/v1/jobs/{unknown}/checkpoints"), 404),
        ("GET", format!("/v1/jobs/{unknown}/checkpoints/config"), 404),
        ("GET", format!("/v1/jobs/{unknown}/execution-result"), 404),
        ("GET", "/v1/jobs/xyz".to_owned(), 400),
        ("GET", format!("/v1/jobs/{unknown}/exceptions?maxExceptions=many"), 400),
        ("PATCH", format!("/v1/jobs/{unknown}?mode=cancel"), 404),
        ("PATCH", format!("/v1/jobs/{unknown}?mode=maim"), 400),
        ("POST", "/v1/jobs".to_owned(), 400),
        ("GET", "/v1/nothing".to_owned(), 404),
        ("DELETE", "/v1/jobs".to_owned(), 405),
    ] {
        let (status, body) = ask(&master, method, &path).await;
        assert_eq!(status, expected, "{method} {path}: {body}");
        assert_refusal(&body);
    }
    master.stop().await;
}

#[tokio::test]
async fn c163_a_job_that_ends_is_listed_once_while_it_is_of_both_lists() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    master.dispatcher.cancel(JOB).await;
    while master.dispatcher.past_job(JOB).is_none() {
        tokio::task::yield_now().await;
    }
    assert!(master.dispatcher.view(JOB).is_some(), "it is of both lists now");
    let (_, overview) = ask(&master, "GET", "/jobs/overview").await;
    assert_eq!(overview["jobs"].as_array().unwrap().len(), 1, "{overview}");
    let (_, jobs) = ask(&master, "GET", "/jobs").await;
    assert_eq!(jobs, json!({"jobs": [{"id": JOB.to_string(), "status": "CANCELED"}]}));
    master.stop().await;
}

#[tokio::test]
async fn nothing_is_answered_before_the_jobs_of_before_are_taken_up() {
    let world = World::new();
    let master = world.start().await;
    let (_never, started) = tokio::sync::watch::channel(false);
    let mut api = master.api.clone();
    api.dispatcher.started = Started(started);
    let (status, body) = ask_router(router(api), "GET", &format!("/v1/jobs/{JOB}"), "").await;
    assert_eq!(status, 503);
    assert_refusal(&body);
    master.stop().await;
}

#[tokio::test]
async fn the_checkpoints_of_a_job_are_counted_and_their_options_shown_where_there_are_any() {
    let world = World::new();
    let master = world.start().await;
    let checkpoints =
        format!("checkpoints: {{interval: 2s, dir: {}}}\n", world.dir.path().join("c").display());
    for (job, more) in [(JOB, checkpoints.as_str()), (OTHER, "")] {
        let (file, graph) = world.job_with("first", more);
        master.dispatcher.submit(job, file, graph).await.unwrap();
    }
    let (status, body) = ask(&master, "GET", &format!("/jobs/{JOB}/checkpoints")).await;
    let none = json!({"restored": 0, "total": 0, "in_progress": 0, "completed": 0, "failed": 0});
    assert_eq!((status, &body["counts"], &body["history"]), (200, &none, &json!([])), "{body}");
    let (status, body) = ask(&master, "GET", &format!("/jobs/{JOB}/checkpoints/config")).await;
    assert_eq!(
        (status, &body["interval"], &body["mode"]),
        (200, &json!(2000), &json!("exactly_once")),
        "{body}"
    );
    let (status, body) = ask(&master, "GET", &format!("/jobs/{OTHER}/checkpoints/config")).await;
    assert_eq!(status, 404, "{body}");
    assert_refusal(&body);
    master.stop().await;
}

#[test]
fn a_checkpoint_is_shown_with_how_it_ended() {
    let entry = |status| CheckpointEntry {
        id: 3,
        status,
        triggered_at: EpochMillis(1_000),
        latest_ack_at: None,
        duration: Duration::from_millis(40),
        state_size: 7,
        subtasks: 4,
        acknowledged: 3,
        savepoint: false,
    };
    let shown = checkpoints::entry(&entry(CheckpointStatus::InProgress));
    let fields = ["className", "status", "latest_ack_timestamp", "end_to_end_duration", "state_size"];
    let found: Vec<_> = fields.iter().map(|name| shown[name].clone()).collect();
    assert_eq!(json!(found), json!(["in_progress", "IN_PROGRESS", -1, 40, 7]));
    let shown = checkpoints::entry(&entry(CheckpointStatus::Completed { path: "file:///c/3".into() }));
    assert_eq!((&shown["className"], &shown["external_path"]), (&json!("completed"), &json!("file:///c/3")));
    let failed = CheckpointStatus::Failed { at: EpochMillis(1_040), cause: "the disk is full".into() };
    let shown = checkpoints::entry(&entry(failed));
    assert_eq!(
        (&shown["status"], &shown["failure_timestamp"], &shown["failure_message"]),
        (&json!("FAILED"), &json!(1_040), &json!("the disk is full"))
    );
}

#[test]
fn c164_the_request_bounds_the_failures_that_are_shown() {
    let failures: Vec<Value> = (0..16).map(|n| json!({ "timestamp": n, "failureLabels": {} })).collect();
    let shown = |most| exceptions::history(&failures, most)["exceptionHistory"].clone();
    let all = shown(20);
    assert_eq!((all["entries"].as_array().unwrap().len(), &all["truncated"]), (16, &json!(false)));
    let some = shown(5);
    assert_eq!((some["entries"].as_array().unwrap().len(), &some["truncated"]), (5, &json!(true)));
    assert_eq!(some["entries"][0]["timestamp"], 0, "the newest come first");
}

const REQUEST: &str = "000000000000000000000000000000aa";

fn saving(more: &str) -> String {
    format!("{{\"target-directory\":\"/tmp/s\",\"triggerId\":\"{REQUEST}\"{more}}}")
}

async fn completed(master: &crate::JobMaster, path: &str) -> Value {
    loop {
        let (status, body) = ask(master, "GET", path).await;
        assert_eq!(status, 200, "{body}");
        if body["status"]["id"] == "COMPLETED" {
            return body["operation"].clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn c155_a_savepoint_of_an_unknown_job_is_taken_and_its_failure_is_polled() {
    let world = World::new();
    let master = world.start().await;
    let savepoints = format!("/v1/jobs/{JOB}/savepoints");
    for _ in 0..2 {
        let (status, body) = ask_with(&master, "POST", &savepoints, &saving("")).await;
        assert_eq!((status, &body), (202, &json!({ "request-id": REQUEST })));
    }
    let operation = completed(&master, &format!("{savepoints}/{REQUEST}")).await;
    let text = operation["failure-cause"]["stack-trace"].as_str().unwrap();
    assert!(text.contains(&format!("there is no job {JOB}")), "{operation}");
    let (status, body) =
        ask_with(&master, "POST", &format!("/v1/jobs/{OTHER}/savepoints"), &saving("")).await;
    assert_eq!(status, 409, "the number is another request's: {body}");
    assert_refusal(&body);
    master.stop().await;
}

#[tokio::test]
async fn c157_an_unknown_request_is_404_with_a_body_of_one_key() {
    let world = World::new();
    let master = world.start().await;
    for path in [
        format!("/v1/jobs/{JOB}/savepoints/{REQUEST}"),
        format!("/v1/jobs/{JOB}/checkpoints/{REQUEST}"),
        format!("/v1/savepoint-disposal/{REQUEST}"),
    ] {
        let (status, body) = ask(&master, "GET", &path).await;
        assert_eq!(status, 404, "{path}: {body}");
        assert_refusal(&body);
    }
    master.stop().await;
}

#[tokio::test]
async fn a_request_for_a_savepoint_that_makes_no_sense_is_refused_at_once() {
    let world = World::new();
    let master = world.start().await;
    for (path, body) in [
        ("savepoints", String::new()),
        ("savepoints", "{\"target-directory\":null}".to_owned()),
        ("savepoints", "[".to_owned()),
        ("savepoints", saving(",\"cancel-job\":true")),
        ("savepoints", "{\"target-directory\":\"/s\",\"triggerId\":\"x\"}".to_owned()),
        ("stop", "{\"drain\":true}".to_owned()),
    ] {
        let (status, answer) = ask_with(&master, "POST", &format!("/jobs/{JOB}/{path}"), &body).await;
        assert_eq!(status, 400, "{path} {body}: {answer}");
        assert_refusal(&answer);
    }
    master.stop().await;
}

#[tokio::test]
async fn a_job_without_its_tasks_running_cannot_be_saved_and_runs_on() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    let (status, body) =
        ask_with(&master, "POST", &format!("/jobs/{JOB}/stop"), "{\"targetDirectory\":\"/s\"}").await;
    assert_eq!(status, 202, "{body}");
    let request = body["request-id"].as_str().unwrap().to_owned();
    let operation = completed(&master, &format!("/jobs/{JOB}/savepoints/{request}")).await;
    assert!(
        operation["failure-cause"]["stack-trace"].as_str().unwrap().contains("not all tasks"),
        "{operation}"
    );
    let (status, body) = ask(&master, "POST", &format!("/jobs/{JOB}/checkpoints")).await;
    assert_eq!(status, 202, "{body}");
    let request = body["request-id"].as_str().unwrap().to_owned();
    let operation = completed(&master, &format!("/jobs/{JOB}/checkpoints/{request}")).await;
    assert!(operation["failureCause"]["stack-trace"].is_string(), "{operation}");
    assert_eq!(master.dispatcher.view(JOB).unwrap().status, JobStatus::Created);
    master.stop().await;
}
