//! The masters go and come back.

use testkit::join;
use testkit::processes::Role;

use crate::world::{FlightsJob, LONG, SHORT, World, expected, subtasks, tailnum};

#[test]
fn c093_a_resource_manager_that_is_started_again_learns_all_and_no_task_stops() {
    let mut world = World::started();
    let mut service = world.service();
    let mut job = FlightsJob::slow(&world);
    job.service = Some(service.address().to_owned());
    let running = world.start(&job);
    let (id, before) = world.await_middle();
    // The job stays in its middle for as long as this takes.
    service.pause().unwrap();
    world.cluster.kill(Role::ResourceManager).unwrap();
    world.cluster.start(Role::ResourceManager).unwrap();
    // Two of four slots are the job's, before and after: nothing is promised to it twice.
    world.cluster.await_free_slots(2, LONG).unwrap();
    let after = world.await_job(&id, |detail| detail["state"] == "RUNNING");
    assert!(after["end-time"] == -1, "too late for the middle: {after}");
    let attempts = |detail: &serde_json::Value| -> Vec<(u64, String)> {
        let of = |task: &serde_json::Value| {
            (task["attempt"].as_u64().unwrap(), task["taskmanager-id"].to_string())
        };
        subtasks(detail).into_iter().map(of).collect()
    };
    assert_eq!(attempts(&before), attempts(&after), "the same tasks at the same places");
    service.resume().unwrap();
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

/// A job without checkpoints begins again, although nothing may restart it after a failure: it has not failed.
fn taken_up_again(end: impl FnOnce(&mut World)) {
    let mut world = World::started();
    let running = world.start(&FlightsJob::slow(&world));
    let (id, _) = world.await_middle();
    end(&mut world);
    world.cluster.start(Role::JobMaster).unwrap();
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    let found = (&result["job_id"], &result["state"], &result["restarts"]);
    assert_eq!(found, (&id.into(), &"FINISHED".into(), &1.into()), "{result}");
    assert_eq!((&result["records_in"], &result["records_out"]), (&SHORT.into(), &SHORT.into()), "{result}");
    join::same_per_key(&expected().lines[..SHORT], &world.parts("out"), tailnum).unwrap();
    world.cluster.await_free_slots(4, LONG).unwrap();
}

#[test]
fn a_killed_job_master_takes_its_jobs_up_when_it_is_started_again() {
    taken_up_again(|world| world.cluster.kill(Role::JobMaster).unwrap());
}

#[test]
fn a_job_master_that_is_told_to_stop_suspends_its_jobs_for_the_next() {
    taken_up_again(|world| {
        let (status, took) = world.cluster.stop(Role::JobMaster).unwrap();
        assert!(status.success() && took < std::time::Duration::from_secs(5), "{status} after {took:?}");
    });
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
