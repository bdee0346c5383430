//! Checkpoints: fenced, triggered, answered. Names that begin with a letter and a number are cases of the cluster's
//! specification.

use runtime_core::Incarnation;
use wire::v1::task_executor_to_job_master::Message;
use wire::{RpcErrorKind, v1};

use super::harness::{Cluster, JM_EPOCH, JM_LIFE, attempt, fence, secs, settle};

fn trigger(numbers: &[u32], checkpoint: u64) -> v1::TriggerCheckpointRequest {
    v1::TriggerCheckpointRequest {
        fence: fence(JM_EPOCH, JM_LIFE),
        attempts: numbers.iter().map(|n| attempt(*n).into()).collect(),
        checkpoint,
        begun_at: 1_000_000,
        savepoint: None,
    }
}

/// Numbers of messages, attempts, checkpoints, and whether they are acknowledged.
fn answers(cluster: &Cluster) -> Vec<(u64, u32, u64, bool)> {
    let answer = |m: v1::TaskExecutorToJobMaster| match m.message? {
        Message::CheckpointAcknowledged(a) => Some((m.number, a.attempt?.attempt, a.checkpoint, true)),
        Message::CheckpointDeclined(d) => Some((m.number, d.attempt?.attempt, d.checkpoint, false)),
        _ => None,
    };
    cluster.jm.script.heard().into_iter().filter_map(answer).collect()
}

/// A job that takes checkpoints, whose source waits for a split.
async fn running() -> Cluster {
    let cluster = Cluster::with_active_slot().await;
    let mut task = cluster.task(0);
    let dir = cluster.dir.path().display();
    let text = format!(
        "{}checkpoints: {{interval: 1s, dir: {dir}/chk}}\n",
        std::str::from_utf8(&task.job_file).unwrap()
    );
    task.job_file = text.into_bytes().into();
    cluster.gateway().submit_task(task).await.unwrap();
    settle().await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn c113_an_unknown_task_is_named_and_nobody_is_told() {
    let cluster = running().await;
    let error = cluster.gateway().trigger_checkpoint(trigger(&[0, 7], 1)).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget);
    assert!(error.message.contains(&attempt(7).to_string()), "{error}");
    assert!(!error.message.contains(&attempt(0).to_string()), "{error}");
    settle().await;
    assert_eq!(answers(&cluster), []);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_from_another_term_or_life_is_refused() {
    let cluster = running().await;
    for wrong in [fence(JM_EPOCH - 1, JM_LIFE), fence(JM_EPOCH, Incarnation::from_u128(9))] {
        let request = v1::TriggerCheckpointRequest { fence: wrong, ..trigger(&[0], 1) };
        let error = cluster.gateway().trigger_checkpoint(request).await.unwrap_err();
        assert_eq!(error.kind, RpcErrorKind::Fencing);
    }
    settle().await;
    assert_eq!(answers(&cluster), []);
}

#[tokio::test(start_paused = true)]
async fn a_task_acknowledges_once_however_often_and_late_it_is_told() {
    let cluster = running().await;
    for checkpoint in [3, 3, 2] {
        cluster.gateway().trigger_checkpoint(trigger(&[0], checkpoint)).await.unwrap();
    }
    settle().await;
    let answered = answers(&cluster);
    assert!(matches!(answered[..], [(_, 0, 3, true)]), "{answered:?}");
    use v1::job_master_to_task_executor::Message;
    for message in [
        Message::CheckpointAborted(v1::CheckpointAborted { checkpoint: 4, latest_completed: 3 }),
        Message::CheckpointConfirmed(v1::CheckpointConfirmed { checkpoint: 3 }),
        Message::CheckpointConfirmed(v1::CheckpointConfirmed { checkpoint: 1 }),
    ] {
        cluster.jm.script.say(v1::JobMasterToTaskExecutor { number: 0, message: Some(message) });
    }
    settle().await;
    // The word of an aborted one comes late.
    cluster.gateway().trigger_checkpoint(trigger(&[0], 4)).await.unwrap();
    settle().await;
    assert_eq!(answers(&cluster).len(), 1);
    cluster.gateway().trigger_checkpoint(trigger(&[0], 5)).await.unwrap();
    settle().await;
    let answered = answers(&cluster);
    assert!(matches!(answered[1..], [(_, 0, 5, true)]), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_said_again_on_a_new_stream_until_it_is_acknowledged() {
    let cluster = running().await;
    cluster.gateway().trigger_checkpoint(trigger(&[0], 1)).await.unwrap();
    settle().await;
    let (number, ..) = answers(&cluster)[0];
    cluster.jm.script.end_streams();
    secs(3).await;
    assert_eq!(answers(&cluster), [(number, 0, 1, true), (number, 0, 1, true)]);
    cluster.acknowledge(number);
    settle().await;
    cluster.jm.script.end_streams();
    secs(3).await;
    assert_eq!(answers(&cluster).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_no_error_until_its_end_is_acknowledged() {
    let cluster = running().await;
    cluster.jm.splits.lock().unwrap().push_back(None);
    secs(7).await;
    let (number, last) = cluster.updates().pop().unwrap();
    assert_eq!(last.state(), v1::TaskState::Finished, "{last:?}");
    let part = last.last.unwrap();
    assert!(part.source.is_some() && part.figures.is_some());
    cluster.gateway().trigger_checkpoint(trigger(&[0], 1)).await.unwrap();
    settle().await;
    assert_eq!(answers(&cluster), [], "its last word is its answer");
    cluster.acknowledge(number);
    settle().await;
    let error = cluster.gateway().trigger_checkpoint(trigger(&[0], 2)).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget);
}

#[tokio::test(start_paused = true)]
async fn a_task_stopped_for_want_of_its_job_master_answers_nothing() {
    let cluster = running().await;
    secs(2).await;
    let gateway = cluster.gateway();
    // The slot is taken back, which stops the task, right after the word of the checkpoint.
    let (triggered, beaten) =
        tokio::join!(gateway.trigger_checkpoint(trigger(&[0], 1)), cluster.job_master_beats(&[]));
    triggered.unwrap();
    beaten.unwrap();
    settle().await;
    let answered = answers(&cluster);
    let states = cluster.states();
    let ended = states.iter().find(|(_, _, state)| *state == "FAILED").expect("it is stopped");
    assert!(answered.iter().all(|(number, ..)| *number < ended.0), "{answered:?} {states:?}");
}
