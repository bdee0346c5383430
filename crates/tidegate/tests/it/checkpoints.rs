//! Jobs with checkpoints, and what is done to them: each record's result is there once, in the order of its key.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use testkit::flights;
use testkit::join;
use testkit::patience::Patience;
use testkit::processes::{ProcessCluster, Role, RunningCommand, Signal};

use crate::world::{FlightsJob, LONG, SHORT, World, expected, subtasks, tailnum};

const FIRST: Role = Role::TaskExecutor(0);
const SECOND: Role = Role::TaskExecutor(1);

fn begun(world: &World, job: &FlightsJob) -> (RunningCommand, String) {
    let running = world.start(job);
    let id = world.await_checkpoints(2);
    let read = world.await_job(&id, |_| true)["result"]["records_in"].as_u64().unwrap();
    assert!(read < SHORT as u64, "too late for the middle: {read} records are read");
    (running, id)
}

/// The job is FINISHED with its whole output, and nothing beside it.
fn assert_right(world: &World, running: RunningCommand) -> Value {
    let output = running.wait(LONG).unwrap().expect_status(0).unwrap();
    let result = output.json().unwrap();
    assert_eq!(result["state"], "FINISHED", "{output}");
    let lines = flights::lines(&world.path("out.jsonl")).unwrap();
    join::same_per_key(&expected().lines[..SHORT], &lines, tailnum).unwrap();
    assert_eq!((&result["records_in"], &result["records_out"]), (&SHORT.into(), &SHORT.into()), "{result}");
    let left: Vec<_> =
        fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "left behind: {left:?}");
    world.await_nothing_at("checkpoints");
    result
}

#[test]
fn a_killed_task_executor_costs_one_restart_and_no_record() {
    let mut world = World::started();
    let (running, id) = begun(&world, &FlightsJob::checkpointed(&world));
    world.cluster.kill(SECOND).unwrap();
    let result = assert_right(&world, running);
    let failures = world.cluster.get(&format!("/jobs/{id}/exceptions")).unwrap();
    assert_eq!(result["restarts"], 1, "{result} {failures}");
    let calls = result["calls"].as_u64().unwrap();
    assert!(calls < 2 * SHORT as u64, "the job began again from its start: {result}");
}

#[test]
fn c068_a_job_on_two_task_executors_goes_on_with_the_spare_one_from_its_last_checkpoint() {
    // Heartbeats as they are by default. The spare one comes when the job has its slots, or it would be given one.
    let mut world = World::new(ProcessCluster::builder().task_executors(3).slots(2));
    let spare = Role::TaskExecutor(2);
    world.cluster.stop(spare).unwrap();
    let (running, id) = begun(&world, &FlightsJob { parallelism: 4, ..FlightsJob::checkpointed(&world) });
    world.cluster.start(spare).unwrap();
    let places = |detail: &Value| -> BTreeSet<String> {
        let all = subtasks(detail).into_iter();
        all.map(|subtask| subtask["taskmanager-id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let used = places(&world.await_job(&id, |detail| detail["state"] == "RUNNING"));
    assert_eq!(used.len(), 2, "{used:?}");
    let lost = used.first().unwrap();
    let role = (0..3).find(|n| *lost == format!("te-{n}")).map(Role::TaskExecutor).unwrap();
    let checkpoints = |world: &World| world.cluster.get(&format!("/jobs/{id}/checkpoints")).unwrap();
    let before = checkpoints(&world)["latest"]["completed"]["id"].as_u64().unwrap();
    let begun = Patience::endless();
    world.cluster.kill(role).unwrap();
    world.await_job(&id, |detail| {
        let on_survivors = !places(detail).contains(lost);
        let running = |subtask: &&Value| matches!(subtask["status"].as_str(), Some("RUNNING" | "FINISHED"));
        detail["state"] == "RUNNING" && on_survivors && subtasks(detail).iter().all(running)
    });
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let restored = checkpoints(&world)["latest"]["restored"]["id"].as_u64().unwrap();
    assert!(restored >= before, "checkpoint {restored} was restored, {before} was complete");
    let result = assert_right(&world, running);
    assert_eq!(result["restarts"], 1, "{result}");
}

#[test]
fn output_becomes_visible_with_each_checkpoint_and_only_grows() {
    let mut world = World::started();
    let (running, id) = begun(&world, &FlightsJob::checkpointed(&world));
    let seen = fs::read(world.path("out.jsonl")).unwrap();
    assert!(!seen.is_empty() && seen.ends_with(b"\n"), "{} bytes", seen.len());
    world.cluster.kill(SECOND).unwrap();
    world.await_job(&id, |detail| detail["result"]["restarts"] == 1 && detail["state"] == "RUNNING");
    let after = fs::read(world.path("out.jsonl")).unwrap();
    assert!(after.starts_with(&seen), "what was visible has changed");
    assert_right(&world, running);
    assert!(fs::read(world.path("out.jsonl")).unwrap().starts_with(&after));
}

#[test]
fn a_killed_job_master_takes_its_job_up_again_under_the_same_id() {
    let mut world = World::started();
    let (running, id) = begun(&world, &FlightsJob::checkpointed(&world));
    world.cluster.kill(Role::JobMaster).unwrap();
    world.cluster.start(Role::JobMaster).unwrap();
    world.await_job(&id, |detail| detail["state"] == "RUNNING");
    let result = assert_right(&world, running);
    assert_eq!(result["job_id"], id.as_str());
    assert!(result["calls"].as_u64().unwrap() < 2 * SHORT as u64, "{result}");
}

#[test]
fn a_job_master_that_is_told_to_stop_leaves_its_job_for_the_next() {
    let mut world = World::started();
    let (running, id) = begun(&world, &FlightsJob::checkpointed(&world));
    let (status, took) = world.cluster.stop(Role::JobMaster).unwrap();
    assert!(status.success() && took < Duration::from_secs(5), "{status} after {took:?}");
    world.cluster.start(Role::JobMaster).unwrap();
    world.await_job(&id, |detail| detail["state"] == "RUNNING");
    assert_right(&world, running);
}

#[test]
fn everything_is_killed_and_started_again() {
    let mut world = World::started();
    let (running, _) = begun(&world, &FlightsJob::checkpointed(&world));
    for role in world.cluster.roles() {
        world.cluster.kill(role).unwrap();
    }
    world.cluster.start_all().unwrap();
    assert_right(&world, running);
}

#[test]
fn a_task_executor_that_was_given_up_and_wakes_does_no_harm() {
    let mut world =
        World::new(World::builder().heartbeat(Duration::from_millis(200), Duration::from_secs(2)));
    let (running, id) = begun(&world, &FlightsJob::checkpointed(&world));
    world.cluster.process(SECOND).unwrap().signal(Signal::Stop).unwrap();
    world.await_job(&id, |detail| detail["result"]["restarts"].as_u64() >= Some(1));
    world.cluster.process(SECOND).unwrap().signal(Signal::Continue).unwrap();
    assert_right(&world, running);
    world.cluster.await_free_slots(4, LONG).unwrap();
}

#[test]
fn a_checkpoint_completes_within_a_second_while_the_queue_is_full_and_the_service_hangs() {
    let world = World::started();
    // It takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = FlightsJob::checkpointed(&world);
    job.service = Some(silent.local_addr().unwrap().to_string());
    job.max_rate = None;
    let running = world.start(&job);
    let id = world.await_checkpoints(1);
    world.await_job(&id, |detail| detail["result"]["calls"].as_u64().is_some_and(|calls| calls >= 1_000));
    let done = |detail: &Value| detail["result"]["checkpoints"].as_u64().unwrap();
    let before = done(&world.await_job(&id, |_| true));
    let since = Patience::endless();
    // The next one began before the queue was full, perhaps; the one after it did not.
    world.await_job(&id, |detail| done(detail) >= before + 2);
    let took = since.elapsed();
    assert!(took < Duration::from_secs(2), "two checkpoints took {took:?}");
    world.command_line().run(&["cancel", &id]).unwrap().expect_status(0).unwrap();
    running.wait(LONG).unwrap().expect_status(1).unwrap();
}

#[test]
fn parts_are_numbered_by_their_checkpoints_and_hold_each_record_once() {
    let mut world = World::started();
    let mut job = FlightsJob::checkpointed(&world);
    job.sink = format!("{}/", world.path("out").display());
    let (running, _) = begun(&world, &job);
    world.cluster.kill(FIRST).unwrap();
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!((&result["state"], &result["records_out"]), (&"FINISHED".into(), &SHORT.into()), "{result}");
    // By subtask and number, which is the order of a key's records: one subtask has them all.
    let mut parts: Vec<((u64, u64), std::path::PathBuf)> = join::parts(&world.path("out"))
        .unwrap()
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut numbers = name.split('-').skip(1).map(|number| number.parse::<u64>().unwrap());
            ((numbers.next().unwrap(), numbers.next().unwrap()), path)
        })
        .collect();
    parts.sort();
    assert!(parts.len() > 4, "{parts:?}");
    let lines: Vec<_> = parts.iter().flat_map(|(_, path)| flights::lines(path).unwrap()).collect();
    join::same_per_key(&expected().lines[..SHORT], &lines, tailnum).unwrap();
}
