//! The masters go and come back.

use testkit::join;
use testkit::processes::Role;

use crate::world::{FlightsJob, LONG, SHORT, World, expected, tailnum};

#[test]
fn a_job_does_not_need_the_resource_manager_to_go_on() {
    let mut world = World::started();
    let running = world.start(&FlightsJob::slow(&world));
    world.await_middle();
    world.cluster.kill(Role::ResourceManager).unwrap();
    world.cluster.start(Role::ResourceManager).unwrap();
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!(result["restarts"], 0, "{result}");
    join::same_per_key(&expected().lines[..SHORT], &world.parts("out"), tailnum).unwrap();
    // Everybody finds the new one, and it can hand out what the job had.
    world.cluster.await_free_slots(4, LONG).unwrap();
}

#[test]
fn a_job_survives_a_resource_manager_that_stays_away() {
    let mut world = World::started();
    let running = world.start(&FlightsJob::slow(&world));
    world.await_middle();
    world.cluster.kill(Role::ResourceManager).unwrap();
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!((&result["state"], &result["restarts"]), (&"FINISHED".into(), &0.into()), "{result}");
}

#[test]
fn a_lost_job_master_frees_its_slots_for_the_next() {
    // So long they wait for a master that comes back to the job.
    let mut world = World::new(World::builder().set("taskexecutor.slot.timeout", "500ms"));
    let mut running = world.start(&FlightsJob::slow(&world));
    let (id, _) = world.await_middle();
    world.cluster.kill(Role::JobMaster).unwrap();
    world.cluster.start(Role::JobMaster).unwrap();
    world.cluster.await_free_slots(4, LONG).unwrap();
    let cli = world.command_line();
    let workers = cli.run(&["taskexecutors", "--json"]).unwrap().expect_status(0).unwrap().json().unwrap();
    let free: Vec<_> =
        workers.as_array().unwrap().iter().map(|worker| worker["freeSlots"].as_u64()).collect();
    assert_eq!(free, [Some(2), Some(2)], "{workers}");
    running.signal(testkit::processes::Signal::Terminate).unwrap();
    drop(running);
    // Its tasks have stopped, so the same output can be written anew.
    let again = world.path("again.jsonl");
    let mut job = FlightsJob::new("again", &again);
    job.parallelism = 1;
    let result = world.run(&job);
    assert_ne!(result["job_id"], id.as_str());
    join::same_sequence(&expected().lines, &testkit::flights::lines(&again).unwrap()).unwrap();
}

#[test]
fn task_executor_and_job_master_wait_for_a_resource_manager_that_comes_late() {
    let mut cluster = World::builder().task_executors(1).prepare().unwrap();
    cluster.launch(Role::TaskExecutor(0)).unwrap();
    cluster.start(Role::JobMaster).unwrap();
    let log = |cluster: &mut testkit::processes::ProcessCluster| {
        let log = cluster.process(Role::TaskExecutor(0)).unwrap().log();
        log.lines().filter(|line| line.contains("resource manager")).map(str::to_owned).collect::<Vec<_>>()
    };
    testkit::patience::Patience::of(LONG)
        .until("a line that says what it waits for", || {
            let lines = log(&mut cluster);
            Ok(testkit::patience::Look::of((!lines.is_empty()).then_some(()), || "nothing".into()))
        })
        .unwrap();
    cluster.start(Role::ResourceManager).unwrap();
    cluster.await_ready(Role::TaskExecutor(0)).unwrap();
    cluster.await_free_slots(2, LONG).unwrap();
}
