//! The flights job in each order, and a job that is cancelled.

use serde_json::{Value, json};
use testkit::flights;
use testkit::join;
use testkit::processes::Role;

use crate::world::{FlightsJob, LONG, World, expected, tailnum};

/// Every figure that is known beforehand; calls and retries with `calls` being those of a run without a retry.
fn assert_exact(result: &Value, calls: Option<u64>) {
    let names = [
        "state",
        "records_in",
        "records_out",
        "filtered",
        "dropped",
        "dead_letters",
        "empty",
        "timeouts",
        "restarts",
    ];
    let found: Vec<&Value> = names.iter().map(|name| &result[name]).collect();
    let wanted = json!(["FINISHED", flights::RECORDS, flights::RECORDS, 0, 0, 0, expected().empty(), 0, 0]);
    assert_eq!(json!(found), wanted, "{result}");
    assert_eq!(result["failure"], Value::Null);
    if let Some(calls) = calls {
        let retries = result["retries"].as_u64().unwrap();
        assert!(retries > 0, "one answer in a hundred is a 503: {result}");
        assert_eq!(result["calls"], calls + retries, "{result}");
    }
}

#[test]
fn ordered_output_is_the_input_in_its_order_and_each_call_is_counted() {
    let world = World::started();
    let service = world.service();
    let output = world.path("ordered.jsonl");
    let mut job = FlightsJob::new("ordered", &output);
    job.service = Some(service.address().to_owned());
    let result = world.run(&job);
    assert_exact(&result, Some(expected().called()));
    join::same_sequence(&expected().lines, &flights::lines(&output).unwrap()).unwrap();
}

#[test]
fn keyed_output_keeps_the_order_of_each_plane_across_task_executors() {
    let world = World::started();
    let service = world.service();
    let mut job = FlightsJob::new("keyed", &world.path("keyed.jsonl"));
    job.service = Some(service.address().to_owned());
    (job.order, job.parallelism) = ("keyed", 2);
    let result = world.run(&job);
    assert_exact(&result, Some(expected().called()));
    let lines = flights::lines(&world.path("keyed.jsonl")).unwrap();
    join::same_per_key(&expected().lines, &lines, tailnum).unwrap();
    let detail = world.cluster.get(&format!("/jobs/{}", result["job_id"].as_str().unwrap())).unwrap();
    let mut workers: Vec<_> =
        crate::world::subtasks(&detail).iter().map(|subtask| subtask["taskmanager-id"].to_string()).collect();
    workers.sort();
    workers.dedup();
    assert_eq!(workers, ["\"te-0\"", "\"te-1\""], "slots are taken evenly: {detail}");
}

#[test]
fn unordered_output_has_each_record_once_in_a_file_and_in_a_folder() {
    let mut world = World::started();
    let input = world.path("flights.jsonl");
    std::fs::write(&input, flights::lines(&flights::sample()).unwrap().join(&b'\n')).unwrap();
    for (name, sink) in [("file", "out.jsonl"), ("folder", "out/")] {
        let mut job = FlightsJob::new(name, &world.path(""));
        job.sink.push_str(sink);
        job.input.clone_from(&input);
        (job.order, job.parallelism) = ("unordered", 2);
        assert_exact(&world.run(&job), None);
    }
    join::same_multiset(&expected().lines, &flights::lines(&world.path("out.jsonl")).unwrap()).unwrap();
    join::same_multiset(&expected().lines, &world.parts("out")).unwrap();
    for role in world.cluster.roles() {
        let rest = world.cluster.process(role).map(|process| process.stop().unwrap()).unwrap();
        assert!(rest.0.success(), "{role} ended with {} after {:?}", rest.0, rest.1);
        let more = world.cluster.process(role).unwrap().rest_of_stdout();
        assert_eq!(more, "", "stdout of {role} carries the ready line alone");
    }
}

#[test]
fn c151_a_cancelled_job_leaves_no_output_and_gives_its_slots_back() {
    let world = World::started();
    let running = world.start(&FlightsJob::slow(&world));
    let (id, _) = world.await_middle();
    let cli = world.command_line();
    let cancelled = cli.run(&["cancel", &id, "--json"]).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!(cancelled["jid"], id.as_str());
    let output = running.wait(LONG).unwrap().expect_status(1).unwrap();
    assert_eq!(output.json().unwrap()["state"], "CANCELED", "{output}");
    world.cluster.await_free_slots(4, LONG).unwrap();
    world.await_nothing_at("out");
    assert_eq!(cli.run(&["list", "--json"]).unwrap().json().unwrap(), json!([]));
    let listed = cli.run(&["list", "-a", "--json"]).unwrap().json().unwrap();
    assert_eq!((&listed[0]["jid"], &listed[0]["state"]), (&json!(id), &json!("CANCELED")));
    let finished = world.run(&FlightsJob::new("finished", &world.path("finished.jsonl")));
    let refused =
        cli.run(&["cancel", finished["job_id"].as_str().unwrap()]).unwrap().expect_status(1).unwrap();
    assert!(refused.stderr.contains("has ended already: it is FINISHED"), "{refused}");
    // Once more is no mistake, of an unknown one it is.
    cli.run(&["cancel", &id]).unwrap().expect_status(0).unwrap();
    let unknown = cli.run(&["cancel", "00000000000000000000000000000000"]).unwrap().expect_status(1).unwrap();
    assert_eq!(unknown.stderr.lines().count(), 1, "{unknown}");
    assert!(world.cluster.ready_line(Role::JobMaster).is_some());
}
