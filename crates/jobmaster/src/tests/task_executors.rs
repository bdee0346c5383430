//! Task executors that register, again and in another life.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runtime_core::{AllocationId, Incarnation, JobId};
use wire::convert::WireId as _;
use wire::v1::registration_reply::Outcome;
use wire::{JobMasterGateway, Transport as _, v1};

use super::peers::FakeTaskExecutor;
use super::{JOB, OTHER, World, until};
use crate::JobMaster;
use crate::status::{ExecutionState, JobStatus};

fn fence(life: u128) -> Option<v1::Fence> {
    // Epoch 0: it has not heard from the job master yet.
    Some(v1::Fence { epoch: 0, incarnation: Incarnation::from_u128(life).to_wire() })
}

fn gateway(world: &World, master: &JobMaster) -> Arc<dyn JobMasterGateway> {
    world.network.node("te-1").connect_job_master(&master.rpc_address)
}

async fn register(gateway: &dyn JobMasterGateway, job: JobId, life: u128) -> Outcome {
    let request = v1::RegisterAtJobMasterRequest {
        fence: fence(life),
        job_id: job.to_wire(),
        resource_id: "te-1".into(),
        rpc_address: "http://te-1:6000".into(),
        data_address: "http://te-1:6001".into(),
        rust_calls: Vec::new(),
    };
    gateway.register_task_executor(request).await.unwrap().outcome.unwrap()
}

/// A job with a task at the task executor's first life.
async fn with_a_task(world: &World, master: &JobMaster) -> Arc<dyn JobMasterGateway> {
    let restart = "restart: {strategy: fixed-delay, attempts: 3, delay: 0}\n";
    let (file, graph) = world.job_with("first", restart);
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(master, JOB, |view| view.status == JobStatus::Created).await;
    let gateway = gateway(world, master);
    let Outcome::Success(_) = register(&*gateway, JOB, 1).await else { panic!("not registered") };
    let offer = v1::SlotOffer { allocation_id: AllocationId::from_u128(5).to_wire(), index: 0 };
    let offers = v1::OfferSlotsRequest {
        fence: fence(1),
        job_id: JOB.to_wire(),
        resource_id: "te-1".into(),
        offers: vec![offer],
    };
    assert_eq!(gateway.offer_slots(offers).await.unwrap().accepted.len(), 1);
    until(master, JOB, |view| view.status == JobStatus::Running).await;
    gateway
}

#[tokio::test]
async fn c020_the_same_life_again_is_a_success_and_its_tasks_go_on() {
    let world = World::new();
    let (fake, _serving) = FakeTaskExecutor::serve(&world.network, 1).await;
    let master = world.start().await;
    let gateway = with_a_task(&world, &master).await;
    let Outcome::Success(success) = register(&*gateway, JOB, 1).await else { panic!("refused") };
    assert!(success.resumed);
    let view = master.dispatcher.view(JOB).unwrap();
    let task = &view.vertices[0].subtasks[0];
    assert_eq!((view.status, view.restarts, task.attempt.attempt), (JobStatus::Running, 0, 0));
    assert_eq!(task.state, ExecutionState::Deploying);
    assert_eq!(fake.submitted.lock().unwrap().len(), 1);
    master.stop().await;
}

#[tokio::test]
async fn c019_another_life_under_the_same_id_fails_the_tasks_of_the_old_and_is_watched() {
    let world = World::new();
    let (old, serving) = FakeTaskExecutor::serve(&world.network, 1).await;
    let master = world.start().await;
    let gateway = with_a_task(&world, &master).await;
    serving.shutdown().await;
    let (new, _serving) = FakeTaskExecutor::serve(&world.network, 2).await;
    let Outcome::Success(success) = register(&*gateway, JOB, 2).await else { panic!("refused") };
    assert!(!success.resumed);
    let view = until(&master, JOB, |view| view.restarts == 1).await;
    assert!(view.failures[0].text.contains("started again under the same id"), "{:?}", view.failures);
    let before = old.beats.load(Ordering::Relaxed);
    for _ in 0..5_000 {
        if new.beats.load(Ordering::Relaxed) > 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(new.beats.load(Ordering::Relaxed) > 1, "it is asked for heartbeats");
    assert_eq!(old.beats.load(Ordering::Relaxed), before);
    assert!(view.failures.len() == 1, "one loss is one failure: {:?}", view.failures);
    master.stop().await;
}

/// Nobody serves at the resource manager's address here (FLINK-18372).
#[tokio::test]
async fn c048_slots_are_taken_and_used_while_no_resource_manager_is_there() {
    let world = World::new();
    let (fake, _serving) = FakeTaskExecutor::serve(&world.network, 1).await;
    let master = world.start().await;
    with_a_task(&world, &master).await;
    let (status, overview) = super::ask(&master, "GET", "/taskmanagers").await;
    assert_eq!(status, 503, "no resource manager has told of its task executors: {overview}");
    for _ in 0..5_000 {
        if !fake.submitted.lock().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(fake.submitted.lock().unwrap().len(), 1);
    master.stop().await;
}

#[tokio::test]
async fn a_task_executor_that_asks_for_a_job_that_nobody_leads_is_rejected() {
    let world = World::new();
    let master = world.start().await;
    let gateway = gateway(&world, &master);
    assert!(matches!(register(&*gateway, OTHER, 1).await, Outcome::Rejection(_)));
    master.stop().await;
}
