//! A task executor goes while its tasks run.

use std::time::Duration;

use testkit::join;
use testkit::patience::{Look, Patience};
use testkit::processes::{Role, Signal};

use crate::world::{FlightsJob, LONG, SHORT, World, expected, subtasks, tailnum};

const LOST: Role = Role::TaskExecutor(1);

/// A job that runs on both task executors, in its middle.
fn in_the_middle(restart: &'static str) -> (World, testkit::processes::RunningCommand, String) {
    let world = World::started();
    let mut job = FlightsJob::slow(&world);
    job.restart = restart;
    let running = world.start(&job);
    let (id, detail) = world.await_middle();
    let on_lost = subtasks(&detail).iter().filter(|subtask| subtask["taskmanager-id"] == "te-1").count();
    assert!(on_lost > 0, "nothing runs where the loss will be: {detail}");
    (world, running, id)
}

fn assert_right_output(world: &World) {
    join::same_per_key(&expected().lines[..SHORT], &world.parts("out"), tailnum).unwrap();
}

#[test]
fn a_killed_task_executor_costs_one_restart_and_leaves_no_trace() {
    let (mut world, running, _) = in_the_middle("{strategy: fixed-delay, attempts: 3, delay: 100ms}");
    world.cluster.kill(LOST).unwrap();
    let output = running.wait(LONG).unwrap().expect_status(0).unwrap();
    let result = output.json().unwrap();
    assert_eq!(
        (result["state"].as_str(), result["restarts"].as_u64()),
        (Some("FINISHED"), Some(1)),
        "{output}"
    );
    assert_eq!((&result["records_in"], &result["records_out"]), (&SHORT.into(), &SHORT.into()), "{output}");
    assert_right_output(&world);
}

#[test]
fn without_a_restart_a_killed_task_executor_fails_the_job_and_is_named() {
    let (mut world, running, _) = in_the_middle("none");
    world.cluster.kill(LOST).unwrap();
    let output = running.wait(LONG).unwrap().expect_status(1).unwrap();
    let result = output.json().unwrap();
    assert_eq!(
        (result["state"].as_str(), result["restarts"].as_u64()),
        (Some("FAILED"), Some(0)),
        "{output}"
    );
    let failure = result["failure"].as_str().unwrap();
    assert!(failure.contains("te-1"), "the cause is not named: {failure}");
    world.cluster.await_free_slots(2, LONG).unwrap();
    world.await_nothing_at("out");
}

#[test]
fn c071_a_task_executor_that_stands_still_for_less_than_the_timeout_costs_no_restart() {
    let (mut world, running, id) = in_the_middle("none");
    // The one that is sent records by the other: a connection must outlast it, too.
    let detail = world.await_job(&id, |_| true);
    let mut sources = detail["vertices"][0]["subtasks"].as_array().unwrap().iter();
    let reader = &sources.find(|subtask| subtask["status"] == "RUNNING").unwrap()["taskmanager-id"];
    let still_one = Role::TaskExecutor(usize::from(reader == "te-0"));
    world.cluster.process(still_one).unwrap().signal(Signal::Stop).unwrap();
    // Of a timeout of ten seconds, as thirty of fifty.
    let still: anyhow::Result<()> =
        Patience::of(Duration::from_secs(6)).until("nothing", || Ok(Look::NotYet("waiting".into())));
    assert!(still.is_err());
    world.cluster.process(still_one).unwrap().signal(Signal::Continue).unwrap();
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!((&result["state"], &result["restarts"]), (&"FINISHED".into(), &0.into()), "{result}");
    assert_right_output(&world);
}

#[test]
fn c073_a_task_executor_that_is_told_to_stop_is_replaced_within_two_seconds() {
    let (mut world, running, id) = in_the_middle("{strategy: fixed-delay, attempts: 3, delay: 0}");
    let begun = Patience::endless();
    let (status, _) = world.cluster.stop(LOST).unwrap();
    assert!(status.success(), "{status}");
    world.await_job(&id, |detail| {
        let all = subtasks(detail);
        // A source subtask that finds no split ends at once: it has run again as well.
        let again = |subtask: &&serde_json::Value| {
            let status = subtask["status"].as_str();
            subtask["attempt"].as_u64() > Some(0) && matches!(status, Some("RUNNING" | "FINISHED"))
        };
        detail["state"] == "RUNNING" && !all.is_empty() && all.iter().all(again)
    });
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!(result["restarts"], 1, "{result}");
    assert_right_output(&world);
}
