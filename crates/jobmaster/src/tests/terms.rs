//! The beginning and the end of a job master's term.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::peers::FakeResourceManager;
use super::{JOB, World, until};
use crate::status::JobStatus;

/// Longer than all pauses between registrations of a link that was lost.
const QUIET: Duration = Duration::from_millis(700);

#[tokio::test]
async fn c095_a_term_that_ends_while_it_begins_leads_nothing_and_the_next_takes_up_its_jobs() {
    let world = World::new();
    let master = world.start().await;
    let (file, graph) = world.job("first");
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    master.stop().await;

    let (resource_manager, _serving) = FakeResourceManager::serve(&world.network).await;
    let master = world.begin().await;
    master.stop().await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(resource_manager.registrations.load(Ordering::Relaxed), 0, "nobody was told of the term");
    assert!(world.folder(JOB).join("submission").exists());

    let master = world.start().await;
    let view = until(&master, JOB, |view| view.status == JobStatus::Restarting).await;
    assert_eq!(view.restarts, 1, "the term in between began nothing");
    master.stop().await;
}

#[tokio::test]
async fn c105_a_job_master_that_stops_does_not_come_back_to_a_resource_manager_that_goes() {
    let world = World::new();
    let (resource_manager, _serving) = FakeResourceManager::serve(&world.network).await;
    let master = world.start().await;
    let (file, graph) = world.job("first");
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    while resource_manager.streams.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(resource_manager.registrations.load(Ordering::Relaxed), 1);
    let goes = async { resource_manager.streams.lock().unwrap().clear() };
    let stopped = tokio::time::timeout(Duration::from_secs(5), master.stop());
    let (stopped, ()) = tokio::join!(stopped, goes);
    stopped.unwrap();
    tokio::time::sleep(QUIET).await;
    assert_eq!(resource_manager.registrations.load(Ordering::Relaxed), 1);
}
