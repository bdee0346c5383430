//! The resource manager: two steps, rejections, the clock.

use std::time::Duration;

use tokio::time::Instant;
use wire::v1;
use wire::v1::registration_reply::Outcome;

use super::harness::{Cluster, secs, settle};
use crate::Fatal;

#[tokio::test(start_paused = true)]
async fn the_slots_are_reported_before_the_stream_is_opened() {
    let cluster = Cluster::new().await;
    settle().await;
    assert_eq!(
        *cluster.rm.script.calls.lock().unwrap(),
        ["register te1 epoch 0", "report epoch 7", "stream"]
    );
    assert_eq!(cluster.rm.reports.lock().unwrap()[0].slots.len(), 2);
    use v1::task_executor_to_resource_manager::Message;
    assert!(matches!(cluster.rm.script.heard()[0].message, Some(Message::Hello(_))));
}

#[tokio::test(start_paused = true)]
async fn c012_a_rejection_ends_the_process_at_once() {
    let begun = Instant::now();
    let rejection = v1::RegistrationRejection { reason: "who are you".into() };
    let mut cluster = Cluster::starting(|rm| {
        rm.script.registrations.lock().unwrap().push_back(Outcome::Rejection(rejection));
    })
    .await;
    let fatal = cluster.te.registered().await.unwrap_err();
    assert!(fatal.to_string().contains("who are you"), "{fatal}");
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn c013_without_a_resource_manager_it_gives_up_after_five_minutes() {
    let begun = Instant::now();
    let mut cluster = Cluster::starting(|_| {}).await;
    cluster.network.cut("rm", "te");
    let fatal = cluster.te.registered().await.unwrap_err();
    assert!(matches!(fatal, Fatal::NotRegistered { .. }), "{fatal}");
    assert_eq!(begun.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn c013_the_clock_starts_again_with_a_lost_connection() {
    let mut cluster = Cluster::new().await;
    secs(20).await;
    cluster.network.crash("rm");
    let begun = Instant::now();
    let fatal = cluster.te.failed().await;
    assert!(matches!(fatal, Fatal::NotRegistered { .. }), "{fatal}");
    assert_eq!(begun.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_followed_by_another_registration_and_tasks_go_on() {
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    cluster.rm.script.end_streams();
    settle().await;
    assert_eq!(cluster.rm.script.count("register"), 2);
    assert_eq!(cluster.rm.script.count("report"), 2);
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    assert!(!cluster.states().iter().any(|(_, _, state)| *state == "FAILED"));
}

#[tokio::test(start_paused = true)]
async fn a_resource_manager_that_says_disconnect_is_registered_at_again() {
    use v1::resource_manager_to_task_executor::Message;
    let cluster = Cluster::new().await;
    let bye = Message::Disconnect(v1::Disconnect { cause: "you were silent".into() });
    cluster.rm.script.say(v1::ResourceManagerToTaskExecutor { number: 1, message: Some(bye) });
    // The old stream is given a second to end.
    secs(2).await;
    assert_eq!(cluster.rm.script.count("register"), 2);
    assert!(cluster.request_slot(1).await.is_ok());
}
