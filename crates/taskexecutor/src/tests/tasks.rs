//! Tasks: fenced and idempotent deployment, states, figures, the end.

use std::process::Command;
use std::time::Duration;

use runtime_core::Incarnation;
use wire::convert::WireId;
use wire::{RpcErrorKind, v1};

use crate::processor::Fatal;

use super::harness::{Cluster, JM_EPOCH, JM_LIFE, allocation, attempt, fence, secs, settle};

#[tokio::test(start_paused = true)]
async fn a_task_runs_once_and_stays_deployed_until_its_end_is_acknowledged() {
    let cluster = Cluster::with_active_slot().await;
    std::fs::write(cluster.dir.path().join("in.jsonl"), "{\"n\":1}\n{\"n\":2}\n").unwrap();
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    assert_eq!(cluster.states(), [(1, 0, "INITIALIZING"), (2, 0, "RUNNING")]);
    // The source has asked and was not answered; it asks again with the same number.
    let path = cluster.dir.path().join("in.jsonl").display().to_string();
    let split =
        v1::FileSplit { id: 0, path, start: 0, end: u64::MAX, gzip: false, resume: None, subtask: None };
    cluster.jm.splits.lock().unwrap().extend([Some(split), None]);
    secs(7).await;
    let (number, last) = cluster.updates().pop().unwrap();
    assert_eq!(last.state(), v1::TaskState::Finished, "{last:?}");
    assert_eq!(last.figures.as_ref().map(|f| (f.records_in, f.records_out)), Some((2, 2)));
    assert_eq!(last.last.as_ref().unwrap().staged.len(), 1);
    cluster.job_master_beats(&[1]).await.unwrap();
    assert_eq!(*cluster.jm.deployed.lock().unwrap(), [attempt(0)], "its end may be under way");
    cluster.acknowledge(number);
    settle().await;
    cluster.job_master_beats(&[1]).await.unwrap();
    assert!(cluster.jm.deployed.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn c060_a_task_from_another_term_or_life_is_refused() {
    let cluster = Cluster::with_active_slot().await;
    let right = cluster.task(0);
    for wrong in [
        v1::SubmitTaskRequest { fence: fence(JM_EPOCH - 1, JM_LIFE), ..right.clone() },
        v1::SubmitTaskRequest { fence: fence(JM_EPOCH, Incarnation::from_u128(9)), ..right.clone() },
    ] {
        let error = cluster.gateway().submit_task(wrong).await.unwrap_err();
        assert_eq!(error.kind, RpcErrorKind::Fencing);
    }
    settle().await;
    assert!(cluster.states().is_empty());
}

#[tokio::test(start_paused = true)]
async fn c061_a_task_for_a_slot_that_is_not_the_jobs_is_refused() {
    let cluster = Cluster::with_active_slot().await;
    let wrong = v1::SubmitTaskRequest { allocation_id: allocation(2).to_wire(), ..cluster.task(0) };
    let error = cluster.gateway().submit_task(wrong).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget);
    assert!(error.message.contains("no slot is allocated"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_registered_and_a_table_that_is_not_there_are_named() {
    let cluster = Cluster::with_active_slot().await;
    let rust = "  - enrich: {name: risk, into: r, call: {rust: risk_score}}\n";
    let error = cluster.gateway().submit_task(cluster.task_of(0, rust)).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Application);
    assert!(error.message.contains("step `risk`") && error.message.contains("`risk_score`"), "{error}");
    let table =
        "  - enrich: {name: rates, into: r, call: {table: {file: /nowhere/rates.jsonl, key: k, by: n}}}\n";
    let error = cluster.gateway().submit_task(cluster.task_of(0, table)).await.unwrap_err();
    assert!(
        error.message.contains("step `rates`") && error.message.contains("/nowhere/rates.jsonl"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_once_and_an_absent_one_is_unknown() {
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    let request =
        |n| v1::CancelTaskRequest { fence: fence(JM_EPOCH, JM_LIFE), attempt: Some(attempt(n).into()) };
    let error = cluster.gateway().cancel_task(request(5)).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget);
    cluster.gateway().cancel_task(request(0)).await.unwrap();
    cluster.gateway().cancel_task(request(0)).await.unwrap();
    settle().await;
    assert_eq!(cluster.states().last().map(|(_, _, state)| *state), Some("CANCELED"));
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"], "the slot stays the job's");
}

#[tokio::test(start_paused = true)]
async fn a_running_task_tells_its_figures_once_a_second() {
    use v1::task_executor_to_job_master::Message;
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    secs(5).await;
    let heard = cluster.jm.script.heard();
    let figures = heard.iter().filter(|m| matches!(m.message, Some(Message::Figures(_)))).count();
    assert!((4..=5).contains(&figures), "{figures} reports in 5 s");
    let numbers: Vec<u64> = heard.iter().map(|m| m.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slot_taken_back_while_a_task_runs_is_free_when_the_task_has_stopped() {
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    secs(2).await;
    cluster.job_master_beats(&[]).await.unwrap();
    settle().await;
    assert_eq!(cluster.available(), [allocation(1)]);
    let (_, last) = cluster.updates().pop().unwrap();
    assert_eq!(last.state(), v1::TaskState::Failed);
    assert!(cluster.said_goodbye_to_job_master());
}

/// Polls, as the clock is the real one here.
async fn patiently<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1_000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within 10 s")
}

/// The input is a pipe that nobody writes to: whoever opens it to read is held, and no word reaches him.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c083_a_task_executor_ends_when_a_task_ignores_that_it_was_cancelled() {
    let settings = ["task.cancellation.interval=50ms", "task.cancellation.timeout=300ms"];
    let mut cluster = Cluster::on_threads(&settings).await;
    let pipe = cluster.dir.path().join("in.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = pipe.display().to_string();
    let split =
        v1::FileSplit { id: 0, path, start: 0, end: u64::MAX, gzip: false, resume: None, subtask: None };
    cluster.jm.splits.lock().unwrap().push_back(Some(split));
    cluster.request_slot(1).await.unwrap();
    let submit = async || cluster.gateway().submit_task(cluster.task(0)).await.ok();
    patiently("the task is taken", submit).await;
    let opened = async || cluster.jm.splits.lock().unwrap().is_empty().then_some(());
    patiently("the task reads", opened).await;
    settle().await;
    let cancel = v1::CancelTaskRequest { fence: fence(JM_EPOCH, JM_LIFE), attempt: Some(attempt(0).into()) };
    cluster.gateway().cancel_task(cancel).await.unwrap();
    let fatal = tokio::time::timeout(Duration::from_secs(10), cluster.te.failed()).await.unwrap();
    let Fatal::TaskStuck { attempt: stuck, waited, .. } = &fatal else { panic!("{fatal}") };
    assert_eq!(*stuck, attempt(0));
    assert!(*waited >= Duration::from_millis(300), "{fatal}");
    assert_ne!(
        cluster.states().last().map(|(_, _, state)| *state),
        Some("CANCELED"),
        "it still stands there"
    );
}
