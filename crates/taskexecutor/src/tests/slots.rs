//! Slots: fenced requests, offers, timeouts, reconciliation.

use runtime_core::{Incarnation, InstanceId};
use wire::convert::WireId;
use wire::v1::registration_reply::Outcome;
use wire::{RpcErrorKind, v1};

use super::harness::{
    Cluster, JM_EPOCH, JM_LIFE, JOB, Offers, RM_EPOCH, RM_LIFE, allocation, fence, secs, settle,
};

#[tokio::test(start_paused = true)]
async fn c031_a_request_from_another_term_or_for_another_registration_is_refused() {
    let cluster = Cluster::new().await;
    let right = Cluster::slot_request(1);
    for wrong in [
        v1::RequestSlotRequest { fence: fence(RM_EPOCH + 1, RM_LIFE), ..right.clone() },
        v1::RequestSlotRequest { fence: fence(RM_EPOCH, Incarnation::from_u128(9)), ..right.clone() },
        v1::RequestSlotRequest { instance_id: InstanceId::from_u128(9).to_wire(), ..right.clone() },
    ] {
        let error = cluster.gateway().request_slot(wrong).await.unwrap_err();
        assert_eq!(error.kind, RpcErrorKind::Fencing);
    }
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
    assert_eq!(cluster.jm.script.count("register"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_requested_slot_is_offered_to_its_job_and_active_once_accepted() {
    let cluster = Cluster::new().await;
    assert_eq!(cluster.request_slot(1).await.unwrap().index, 0);
    assert_eq!(cluster.request_slot(1).await.unwrap().index, 0, "the same promise");
    settle().await;
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    assert_eq!(cluster.jm.script.count(&format!("register epoch {JM_EPOCH}")), 1);
}

#[tokio::test(start_paused = true)]
async fn c035_a_rejected_offer_frees_the_slot_and_the_last_one_ends_the_link() {
    let cluster = Cluster::new().await;
    *cluster.jm.offers.lock().unwrap() = Offers::Reject;
    cluster.request_slot(1).await.unwrap();
    settle().await;
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
    assert_eq!(cluster.available(), [allocation(1)]);
    assert!(cluster.said_goodbye_to_job_master());
    assert_eq!(cluster.jm.script.count("stream ended"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_offer_without_an_answer_is_made_again() {
    let cluster = Cluster::new().await;
    *cluster.jm.offers.lock().unwrap() = Offers::Lose;
    cluster.request_slot(1).await.unwrap();
    secs(3).await;
    assert_eq!(cluster.jm.script.count("offer 1"), 2);
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
}

#[tokio::test(start_paused = true)]
async fn c018_a_job_master_that_rejects_gets_nothing_and_the_slots_are_free() {
    let cluster = Cluster::new().await;
    let rejection = v1::RegistrationRejection { reason: "the job is FINISHED".into() };
    cluster.jm.script.registrations.lock().unwrap().push_back(Outcome::Rejection(rejection));
    cluster.request_slot(1).await.unwrap();
    settle().await;
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
    assert_eq!(cluster.available(), [allocation(1)]);
    assert_eq!(cluster.jm.script.count("offer"), 0);
}

#[tokio::test(start_paused = true)]
async fn c038_a_slot_whose_job_does_not_come_is_free_after_ten_seconds() {
    let cluster = Cluster::new().await;
    cluster.network.cut("te", "jm");
    cluster.request_slot(1).await.unwrap();
    secs(9).await;
    assert!(cluster.available().is_empty());
    secs(2).await;
    assert_eq!(cluster.available(), [allocation(1)]);
}

#[tokio::test(start_paused = true)]
async fn c040_a_slot_that_only_the_job_master_knows_is_failed_there() {
    use v1::task_executor_to_job_master::Message;
    let cluster = Cluster::with_active_slot().await;
    cluster.job_master_beats(&[1, 9]).await.unwrap();
    let failed: Vec<_> = cluster
        .jm
        .script
        .heard()
        .into_iter()
        .filter_map(|m| match m.message {
            Some(Message::FailSlot(slot)) => Some(slot.allocation_id),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [allocation(9).to_wire()]);
    assert_eq!(cluster.jm.script.count("heartbeat"), 1);
}

#[tokio::test(start_paused = true)]
async fn c041_an_active_slot_that_the_job_master_does_not_know_is_freed() {
    let cluster = Cluster::with_active_slot().await;
    secs(2).await;
    cluster.job_master_beats(&[]).await.unwrap();
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
    assert_eq!(cluster.available(), [allocation(1)]);
    let error = cluster.job_master_beats(&[]).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::UnknownTarget, "nothing of the job is left");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_was_just_taken_survives_a_heartbeat_that_was_sent_before() {
    let cluster = Cluster::with_active_slot().await;
    cluster.job_master_beats(&[]).await.unwrap();
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_given_back_twice_is_free_and_an_old_job_master_frees_nothing() {
    let cluster = Cluster::with_active_slot().await;
    let request = v1::FreeSlotRequest {
        fence: fence(JM_EPOCH - 1, JM_LIFE),
        job_id: JOB.to_wire(),
        allocation_id: allocation(1).to_wire(),
        cause: "done".into(),
    };
    let error = cluster.gateway().free_slot(request.clone()).await.unwrap_err();
    assert_eq!(error.kind, RpcErrorKind::Fencing);
    let request = v1::FreeSlotRequest { fence: fence(JM_EPOCH, JM_LIFE), ..request };
    cluster.gateway().free_slot(request.clone()).await.unwrap();
    cluster.gateway().free_slot(request).await.unwrap();
    settle().await;
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
    assert_eq!(cluster.available(), [allocation(1)]);
}
