//! A resource manager with a driver: task executors come when jobs need them, and go when none does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use runtime_core::ResourceId;
use wire::v1::registration_reply::Outcome;
use wire::v1::resource_manager_to_job_master::Message;
use wire::{Address, v1};

use super::harness::{FakeTaskExecutor, Talk, World, pass};
use crate::workers::{DriverEvent, DriverEvents, Ending, WorkerDriver};

/// A driver of which a test is told what it was asked for, and which does nothing by itself.
#[derive(Default)]
struct FakeDriver {
    recovered: Vec<ResourceId>,
    events: Mutex<Option<DriverEvents>>,
    asked: Mutex<Vec<Asked>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Start(String),
    Stop(String),
}

impl WorkerDriver for FakeDriver {
    fn begin(&self, _resource_manager: &Address, events: DriverEvents) -> Vec<ResourceId> {
        *self.events.lock().unwrap() = Some(events);
        self.recovered.clone()
    }

    fn start(&self, id: &ResourceId) {
        self.asked.lock().unwrap().push(Asked::Start(id.to_string()));
    }

    fn stop(&self, id: &ResourceId) {
        self.asked.lock().unwrap().push(Asked::Stop(id.to_string()));
    }
}

impl FakeDriver {
    fn tell(&self, event: DriverEvent) {
        let events = self.events.lock().unwrap().clone().unwrap();
        events(event);
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// The workers that were asked for since the last look: all of them are allocated, and nothing was to be stopped.
    fn started(&self) -> Vec<String> {
        let names: Vec<String> = self
            .asked()
            .into_iter()
            .map(|asked| match asked {
                Asked::Start(name) => name,
                Asked::Stop(name) => panic!("{name} was to be stopped"),
            })
            .collect();
        names.iter().for_each(|name| self.tell(DriverEvent::Started(name.parse().unwrap())));
        names
    }

    fn ended(&self, name: &str, status: &str) {
        let ending = Ending { status: status.to_owned(), ..Ending::default() };
        self.tell(DriverEvent::Ended(name.parse().unwrap(), ending));
    }
}

type TaskExecutorTalk = Talk<v1::TaskExecutorToResourceManager, v1::ResourceManagerToTaskExecutor>;

struct WorkersWorld {
    world: World,
    driver: Arc<FakeDriver>,
    fakes: BTreeMap<String, (Arc<FakeTaskExecutor>, TaskExecutorTalk)>,
}

impl WorkersWorld {
    async fn new() -> Self {
        Self::after(&[], &[]).await
    }

    /// Of a resource manager whose earlier life has left these workers.
    async fn after(recovered: &[&str], set: &[&str]) -> Self {
        let recovered = recovered.iter().map(|name| name.parse().unwrap()).collect();
        let driver = Arc::new(FakeDriver { recovered, ..FakeDriver::default() });
        // The job master here does not answer, and is not what is tested: its silence is to last.
        let set: Vec<&str> = ["heartbeat.timeout=1h"].iter().chain(set).copied().collect();
        let world = World::with(&set, Some(Arc::clone(&driver) as Arc<dyn WorkerDriver>)).await;
        Self { world, driver, fakes: BTreeMap::new() }
    }

    /// A worker comes up, registers and reports two free slots.
    async fn come(&mut self, name: &str) {
        let life = self.fakes.len() as u128 + 100;
        let fake = self.world.task_executor(name, life).await;
        let talk = self.world.join(name, life).await;
        self.fakes.insert(name.to_owned(), (fake, talk));
        pass(100).await;
    }

    fn slot_requests(&self, name: &str) -> usize {
        self.fakes[name].0.slot_requests.lock().unwrap().len()
    }
}

fn requirements(
    job_master: &Talk<v1::JobMasterToResourceManager, v1::ResourceManagerToJobMaster>,
    number: u64,
    slots: u32,
) {
    use v1::job_master_to_resource_manager::Message::Requirements;
    let needs = Requirements(v1::ResourceRequirements { version: number, slots });
    job_master.say.send(Ok(v1::JobMasterToResourceManager { number, message: Some(needs) })).unwrap();
}

#[tokio::test(start_paused = true)]
async fn c012_a_task_executor_that_no_driver_has_started_is_rejected() {
    let mut all = WorkersWorld::new().await;
    let _stranger = all.world.task_executor("stranger", 1).await;
    let Outcome::Rejection(rejection) = all.world.register("stranger", 1).await else {
        panic!("not rejected")
    };
    assert!(rejection.reason.contains("worker.driver"), "{rejection:?}");
    assert!(all.world.cluster().await.is_empty());
    let _job_master = all.world.job_master("jm").await;
    let _leader = all.world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    let names = all.driver.started();
    all.come(&names[0]).await;
    assert_eq!(all.world.cluster().await.len(), 1, "its own worker is registered");
}

#[tokio::test(start_paused = true)]
async fn c130_workers_come_for_the_slots_that_a_job_needs_and_the_idle_one_goes() {
    let mut all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let leader = all.world.lead("jm", 7, 5, 3).await;
    pass(100).await;
    let names = all.driver.started();
    assert_eq!(names.len(), 2, "three slots are two workers of two");
    assert_eq!(all.world.describe().await.pending_workers, 2);
    all.come(&names[0]).await;
    all.come(&names[1]).await;
    assert_eq!(all.slot_requests(&names[0]) + all.slot_requests(&names[1]), 3);
    assert_eq!(all.world.describe().await.pending_workers, 0);
    // The job is over.
    requirements(&leader, 2, 0);
    for name in &names {
        let requests = all.fakes[name].0.slot_requests.lock().unwrap().clone();
        for (number, request) in (1..).zip(requests) {
            let slot = v1::SlotId { task_executor: name.clone(), index: request.index as u32 };
            let free = v1::SlotAvailable { slot: Some(slot), allocation_id: request.allocation_id };
            let message = v1::task_executor_to_resource_manager::Message::SlotAvailable(free);
            let said = v1::TaskExecutorToResourceManager { number, message: Some(message) };
            all.fakes[name].1.say.send(Ok(said)).unwrap();
        }
    }
    pass(29_000).await;
    assert!(all.driver.asked().is_empty(), "too early");
    pass(2_000).await;
    let mut stopped = all.driver.asked();
    stopped.sort_by_key(|asked| format!("{asked:?}"));
    assert_eq!(stopped, names.iter().cloned().map(Asked::Stop).collect::<Vec<_>>());
    // Nothing is promised to one that is on its way out.
    requirements(&leader, 3, 1);
    pass(100).await;
    assert_eq!(all.driver.started().len(), 1, "a new one is started instead");
}

#[tokio::test(start_paused = true)]
async fn c052_a_worker_that_comes_after_its_job_has_no_more_needs_gets_no_slot_of_it() {
    let all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let leader = all.world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    let names = all.driver.started();
    // It registers, and while it does so the job needs nothing any more.
    let fake = all.world.task_executor(&names[0], 1).await;
    requirements(&leader, 2, 0);
    let _talk = all.world.join(&names[0], 1).await;
    pass(1_000).await;
    assert!(fake.slot_requests.lock().unwrap().is_empty());
    let cluster = all.world.cluster().await;
    assert!(cluster.iter().all(|worker| worker.free_slots == 2), "{cluster:?}");
}

#[tokio::test(start_paused = true)]
async fn c053_a_worker_whose_process_ends_with_a_promised_slot_is_replaced_within_a_second() {
    let mut all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let leader = all.world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    let names = all.driver.started();
    all.come(&names[0]).await;
    assert_eq!(all.slot_requests(&names[0]), 1, "the slot is promised");
    // Its streams stand still, so that the driver alone tells.
    all.driver.ended(&names[0], "signal: 9 (SIGKILL)");
    pass(200).await;
    let next = all.driver.started();
    assert_eq!(next.len(), 1, "another is started");
    assert!(all.world.cluster().await.is_empty());
    let heard = leader.heard.lock().unwrap().clone();
    let told = heard.iter().find_map(|message| match &message.message {
        Some(Message::TaskExecutorLost(lost)) if lost.resource_id == names[0] => Some(lost.cause.clone()),
        _ => None,
    });
    assert!(
        told.as_ref().is_some_and(|cause| cause.contains("signal: 9")),
        "the job master is told: {told:?}"
    );
    all.come(&next[0]).await;
    assert_eq!(all.slot_requests(&next[0]), 1, "the job has its slot");
}

#[tokio::test(start_paused = true)]
async fn c134_a_restarted_resource_manager_takes_its_workers_up_and_requests_no_other() {
    let mut all = WorkersWorld::after(&["old-1", "old-2", "old-3"], &[]).await;
    let _job_master = all.world.job_master("jm").await;
    let _leader = all.world.lead("jm", 7, 5, 6).await;
    pass(5_000).await;
    assert!(all.driver.asked().is_empty());
    for name in ["old-1", "old-2", "old-3"] {
        all.come(name).await;
    }
    pass(40_000).await;
    assert!(all.driver.asked().is_empty());
    assert_eq!(all.world.cluster().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn c136_when_the_requirement_drops_before_a_worker_is_allocated_its_request_is_cancelled() {
    let all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let leader = all.world.lead("jm", 7, 5, 4).await;
    pass(100).await;
    assert_eq!(all.driver.asked().len(), 2);
    requirements(&leader, 2, 2);
    pass(100).await;
    let asked = all.driver.asked();
    assert!(matches!(&asked[..], [Asked::Stop(_)]), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn c131_a_worker_that_registers_under_another_name_or_never_is_replaced_and_says_why() {
    let all = WorkersWorld::after(&[], &["worker.registration-timeout=10s"]).await;
    let _job_master = all.world.job_master("jm").await;
    let _leader = all.world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    let names = all.driver.started();
    let _other = all.world.task_executor("other", 1).await;
    assert!(matches!(all.world.register("other", 1).await, Outcome::Rejection(_)));
    pass(10_100).await;
    let asked = all.driver.asked();
    assert_eq!(asked[0], Asked::Stop(names[0].clone()));
    assert!(matches!(&asked[1..], [Asked::Start(_)]), "{asked:?}");
    let described = all.world.describe().await;
    assert!(described.worker_trouble.contains("has not registered within 10s"), "{described:?}");
}

#[tokio::test(start_paused = true)]
async fn c132_workers_that_crash_at_once_are_started_slowly_after_ten() {
    let all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let _leader = all.world.lead("jm", 7, 5, 1).await;
    let mut starts = 0;
    // A minute, in steps shorter than any pause.
    for _ in 0..600 {
        pass(100).await;
        for name in all.driver.started() {
            starts += 1;
            all.driver.ended(&name, "exit status: 1");
        }
    }
    assert!((11 + 15..=11 + 21).contains(&starts), "eleven at once and one in three seconds: {starts}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_worker_is_stopped_when_it_is_given_up() {
    let mut all = WorkersWorld::new().await;
    let _job_master = all.world.job_master("jm").await;
    let _leader = all.world.lead("jm", 7, 5, 1).await;
    pass(100).await;
    let names = all.driver.started();
    all.come(&names[0]).await;
    all.world.network.crash(&names[0]);
    pass(20_000).await;
    let asked = all.driver.asked();
    assert!(asked.contains(&Asked::Stop(names[0].clone())), "{asked:?}");
    assert!(matches!(asked.last(), Some(Asked::Start(_))), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_all_task_executors_are_no_more_than_may_be() {
    let world = World::with(&["slots.max=3"], None).await;
    let _one = world.task_executor("te-1", 1).await;
    let _talk = world.join("te-1", 1).await;
    let _two = world.task_executor("te-2", 2).await;
    let Outcome::Failure(failure) = world.register("te-2", 2).await else { panic!("registered") };
    assert!(failure.reason.contains("slots.max (3)"), "{failure:?}");
    assert!(
        matches!(world.register("te-1", 1).await, Outcome::Success(_)),
        "one that is there may come again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_is_repeated_before_its_report_keeps_its_name() {
    let world = World::with(&[], None).await;
    let _fake = world.task_executor("te-1", 1).await;
    let instance = |outcome| match outcome {
        Outcome::Success(success) => success.instance_id,
        other => panic!("{other:?}"),
    };
    let first = instance(world.register("te-1", 1).await);
    let again = instance(world.register("te-1", 1).await);
    assert_eq!(first, again, "whoever waits for the first answer may use it");
    let _talk = world.join("te-1", 1).await;
    let after_report = instance(world.register("te-1", 1).await);
    assert_ne!(after_report, first, "with its report it was in use: another begins anew (C-005)");
}
