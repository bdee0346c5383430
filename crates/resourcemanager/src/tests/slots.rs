//! What becomes of slots when their task executor goes.

use wire::v1::resource_manager_to_job_master::Message;

use super::harness::{JOB, World, pass};
use runtime_core::JobId;

#[tokio::test(start_paused = true)]
async fn c053_a_task_executor_that_dies_with_a_promised_slot_is_replaced_within_a_second() {
    let world = World::new().await;
    let first = world.task_executor("te-1", 1).await;
    let talk = world.join("te-1", 1).await;
    let _job_master = world.job_master("jm").await;
    let leader = world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    assert_eq!(first.slot_requests.lock().unwrap().len(), 1, "the slot is promised");
    let second = world.task_executor("te-2", 2).await;
    let _second_talk = world.join("te-2", 2).await;
    // Killed before it has met the job master.
    world.network.crash("te-1");
    drop(talk.say);
    pass(1_000).await;
    let requests = second.slot_requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 1, "the job gets a slot elsewhere");
    assert_eq!(JobId::try_from(requests[0].job_id.as_ref()).ok(), Some(JOB));
    let heard = leader.heard.lock().unwrap().clone();
    let lost = heard.iter().any(|message| {
        matches!(&message.message, Some(Message::TaskExecutorLost(lost)) if lost.resource_id == "te-1")
    });
    assert!(lost, "the job master is told: {heard:?}");
    let all = world.cluster().await;
    assert_eq!((all.len(), all[0].free_slots), (1, 1), "{all:?}");
}
