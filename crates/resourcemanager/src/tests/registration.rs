//! Who is registered, and who is not.

use std::sync::atomic::Ordering;

use wire::RpcErrorKind;
use wire::v1::registration_reply::Outcome;

use super::harness::{RM_EPOCH, World, pass};

#[tokio::test(start_paused = true)]
async fn c001_a_task_executor_registers_reports_and_is_listed_and_watched() {
    let world = World::new().await;
    let fake = world.task_executor("te-1", 1).await;
    let Outcome::Success(success) = world.register("te-1", 1).await else { panic!("not registered") };
    assert_eq!((success.epoch, success.instance_id.len()), (RM_EPOCH, 16));
    assert!(success.resource_id.starts_with("resourcemanager-"), "{success:?}");
    let _talk = world.join("te-1", 1).await;
    let all = world.cluster().await;
    assert_eq!((all.len(), all[0].slots, all[0].free_slots), (1, 2, 2), "{all:?}");
    let before = fake.beats.load(Ordering::Relaxed);
    pass(3_500).await;
    let beats = fake.beats.load(Ordering::Relaxed) - before;
    assert!((3..=4).contains(&beats), "one a second: {beats}");
}

#[tokio::test(start_paused = true)]
async fn c002_a_registration_meant_for_another_term_is_refused() {
    let world = World::new().await;
    let _fake = world.task_executor("te-1", 1).await;
    let refused = world.register_with("te-1", 1, RM_EPOCH - 1).await.unwrap_err();
    assert_eq!(refused.kind, RpcErrorKind::Fencing);
    assert!(world.cluster().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn c003_a_task_executor_that_cannot_be_called_back_is_not_registered() {
    let world = World::new().await;
    let Outcome::Failure(failure) = world.register("te-1", 1).await else { panic!("registered") };
    assert!(failure.reason.contains("http://te-1:6000"), "{failure:?}");
    assert!(world.cluster().await.is_empty());
    // An address behind which somebody else is found is as wrong.
    let _other = world.task_executor("te-1", 2).await;
    let Outcome::Failure(failure) = world.register("te-1", 1).await else { panic!("registered") };
    assert!(failure.reason.contains("another process"), "{failure:?}");
    assert!(world.cluster().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn c004_of_two_attempts_the_later_is_registered_although_the_first_ends_last() {
    let world = World::new().await;
    let fake = world.task_executor("te-1", 1).await;
    fake.hang_once.store(1_000, Ordering::Relaxed);
    let later = async {
        pass(100).await;
        world.register("te-1", 1).await
    };
    let (first, later) = tokio::join!(world.register("te-1", 1), later);
    let Outcome::Failure(failure) = first else { panic!("the first attempt was registered: {first:?}") };
    assert!(failure.reason.contains("outdated"), "{failure:?}");
    let Outcome::Success(success) = later else { panic!("{later:?}") };
    let all = world.cluster().await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].instance_id, success.instance_id, "it was never replaced");
}

#[tokio::test(start_paused = true)]
async fn c015_a_job_master_of_an_older_term_is_refused_and_a_newer_one_leads() {
    let world = World::new().await;
    let _fake = world.job_master("jm").await;
    assert!(matches!(world.register_job_master("jm", 1, 5).await, Ok(Outcome::Success(_))));
    let refused = world.register_job_master("jm", 2, 4).await.unwrap_err();
    assert_eq!(refused.kind, RpcErrorKind::Fencing);
    assert!(matches!(world.register_job_master("jm", 3, 6).await, Ok(Outcome::Success(_))));
    let refused = world.register_job_master("jm", 1, 5).await.unwrap_err();
    assert_eq!(refused.kind, RpcErrorKind::Fencing, "its term is over");
}

#[tokio::test(start_paused = true)]
async fn c016_a_job_master_that_registers_twice_is_watched_once() {
    let world = World::new().await;
    let fake = world.job_master("jm").await;
    for _ in 0..2 {
        assert!(matches!(world.register_job_master("jm", 1, 5).await, Ok(Outcome::Success(_))));
    }
    let _talk = world.lead("jm", 1, 5, 0).await;
    fake.beats.store(0, Ordering::Relaxed);
    pass(3_500).await;
    let beats = fake.beats.load(Ordering::Relaxed);
    assert!((3..=4).contains(&beats), "one a second: {beats}");
}
