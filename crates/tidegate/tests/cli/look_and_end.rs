//! The commands that look at jobs and end them, against a job master that answers what is written down.

use crate::support::{JOB, ScriptedJobMaster, detail, ended, nobody, running, tidegate, unknown_job};
use serde_json::{Value, json};

fn overview(jid: &str, state: &str) -> Value {
    json!({
        "jid": jid, "name": "orders", "state": state, "start-time": 1_709_251_200_000_i64, "end-time": -1,
        "duration": 125_000, "last-modification": 1, "tasks": {"running": 2, "total": 3}, "pending-operators": 0,
    })
}

fn two_jobs() -> ScriptedJobMaster {
    let other = "00000000000000000000000000000002";
    let jobs = json!({ "jobs": [overview(JOB, "RUNNING"), overview(other, "FAILED")] });
    ScriptedJobMaster::start(&[("GET /v1/jobs/overview", 200, jobs)])
}

#[test]
fn list_shows_what_runs_and_everything_when_asked() {
    let job_master = two_jobs();
    let ran = job_master.tidegate(&["list"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stdout);
    let words: Vec<&str> = lines[1].split("  ").filter(|word| !word.is_empty()).map(str::trim).collect();
    assert_eq!(words, [JOB, "orders", "RUNNING", "2024-03-01 00:00:00 UTC", "2m 05s", "2/3"]);
    assert_eq!(job_master.tidegate(&["list", "-a"]).stdout.lines().count(), 3);
}

#[test]
fn list_as_json_is_the_array_of_the_overview() {
    let job_master = two_jobs();
    assert_eq!(job_master.tidegate(&["list", "--json"]).json(), json!([overview(JOB, "RUNNING")]));
    let all = job_master.tidegate(&["list", "-a", "--json"]).json();
    assert_eq!(all[0], overview(JOB, "RUNNING"));
    assert_eq!(all[1]["state"], "FAILED");
    assert_eq!(all.as_array().unwrap().len(), 2);
}

/// Flink's `list -a` prints three headings; here they are the order of one table.
#[test]
fn c150_running_jobs_come_first_then_those_that_wait_then_those_that_are_over() {
    let id = |n: u32| format!("{n:032}");
    let at = |n: u32, state: &str, start: i64| {
        let mut job = overview(&id(n), state);
        job["start-time"] = json!(start);
        job
    };
    let jobs = [
        at(1, "FINISHED", 9),
        at(2, "CREATED", 1),
        at(3, "RUNNING", 8),
        at(4, "RESTARTING", 7),
        at(5, "FAILED", 2),
    ];
    let job_master = ScriptedJobMaster::start(&[("GET /v1/jobs/overview", 200, json!({ "jobs": jobs }))]);
    let ran = job_master.tidegate(&["list", "-a"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let listed: Vec<&str> =
        ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, [4, 3, 2, 5, 1].map(id));
    assert_eq!(job_master.tidegate(&["list"]).stdout.lines().count(), 4);
}

#[test]
fn an_empty_cluster_is_said_to_be_empty() {
    let job_master = ScriptedJobMaster::start(&[
        ("GET /v1/jobs/overview", 200, json!({ "jobs": [] })),
        ("GET /v1/taskmanagers", 200, json!({ "taskmanagers": [], "resourceManagerAgeMs": 0 })),
    ]);
    assert_eq!(job_master.tidegate(&["list"]).stdout, "no jobs\n");
    assert_eq!(job_master.tidegate(&["list", "--json"]).stdout, "[]\n");
    assert_eq!(job_master.tidegate(&["taskexecutors"]).stdout, "no task executors\n");
    assert_eq!(job_master.tidegate(&["taskexecutors", "--json"]).stdout, "[]\n");
}

#[test]
fn show_has_the_figures_of_chains_subtasks_and_steps() {
    let job_master = ScriptedJobMaster::start(&[("GET /v1/jobs/*", 200, detail("RUNNING"))]);
    let ran = job_master.tidegate(&["show", JOB]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for text in ["state         RUNNING\n", "1,234", "4.0 KiB", "te-1", "customer", "1,250", "35 ms"] {
        assert!(ran.stdout.contains(text), "{text} is missing:\n{}", ran.stdout);
    }
    assert_eq!(job_master.tidegate(&["show", JOB, "--json"]).json(), detail("RUNNING"));
}

#[test]
fn show_lists_checkpoints_and_failures_newest_first() {
    let checkpoint = |id: u64, status: &str, message: serde_json::Value| {
        json!({
            "className": "completed", "id": id, "status": status, "trigger_timestamp": 1_709_251_200_000_i64,
            "end_to_end_duration": 35, "state_size": 2048, "num_subtasks": 4, "num_acknowledged_subtasks": 3,
            "failure_message": message,
        })
    };
    let mut shown = detail("RUNNING");
    shown["checkpoints"] = json!({"counts": {}, "history": [
        checkpoint(8, "FAILED", json!("task `sink` (1/1) declined")),
        checkpoint(7, "COMPLETED", json!(null)),
    ]});
    shown["failures"] = json!([{"timestamp": 1_709_251_200_000_i64, "stacktrace": "task `sink` was lost"}]);
    let job_master = ScriptedJobMaster::start(&[("GET /v1/jobs/*", 200, shown)]);
    let ran = job_master.tidegate(&["show", JOB]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let line = |start: &str| {
        let line = ran.stdout.lines().find(|line| line.trim_start().starts_with(start));
        let words = line.unwrap_or_else(|| panic!("no line {start}:\n{}", ran.stdout)).split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("8 "), "8 FAILED 2024-03-01 00:00:00 UTC 35 ms 2.0 KiB 3/4 task `sink` (1/1) declined");
    assert_eq!(line("7 "), "7 COMPLETED 2024-03-01 00:00:00 UTC 35 ms 2.0 KiB 3/4");
    assert!(ran.stdout.contains("task `sink` was lost"), "{}", ran.stdout);
}

#[test]
fn a_job_of_before_the_job_masters_start_is_shown_without_chains() {
    let past = json!({
        "jid": JOB, "name": "orders", "state": "FINISHED", "start-time": 1, "end-time": 2, "duration": 1,
        "result": crate::support::result("FINISHED", None), "vertices": [],
    });
    let job_master = ScriptedJobMaster::start(&[("GET /v1/jobs/*", 200, past)]);
    let ran = job_master.tidegate(&["show", JOB]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.stdout.contains("CHAIN"), "{}", ran.stdout);
}

#[test]
fn an_unknown_id_is_status_1_and_one_line_for_every_command() {
    let job_master = ScriptedJobMaster::start(&[
        ("GET /v1/jobs/*", 404, unknown_job()),
        ("GET /v1/jobs/*/execution-result", 404, unknown_job()),
        ("PATCH /v1/jobs/*", 404, unknown_job()),
    ]);
    for command in ["show", "cancel", "savepoint", "stop"] {
        for id in [JOB, "orders", "3f1c"] {
            let ran = job_master.tidegate(&[command, id, "--json"]);
            assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{command} {id}: {ran:?}");
            assert_eq!(ran.stderr.lines().count(), 1, "{command} {id}: {}", ran.stderr);
            assert!(ran.stderr.contains(id), "{command}: {}", ran.stderr);
        }
    }
}

#[test]
fn cancel_waits_until_the_job_has_ended_and_prints_it() {
    let result = format!("GET /v1/jobs/{JOB}/execution-result");
    let job_master = ScriptedJobMaster::start(&[
        ("PATCH /v1/jobs/*", 202, json!({})),
        (&result, 200, running()),
        (&result, 200, running()),
        (&result, 200, ended("CANCELED", None)),
        ("GET /v1/jobs/*", 200, detail("CANCELED")),
    ]);
    let ran = job_master.tidegate(&["cancel", JOB, "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(ran.json(), detail("CANCELED"));
    assert_eq!(job_master.asked()[0].query, "mode=cancel");
    assert_eq!(job_master.count("GET", &format!("/v1/jobs/{JOB}/execution-result")), 3);
}

#[test]
fn a_job_that_came_to_its_own_end_is_not_cancelled() {
    let result = format!("GET /v1/jobs/{JOB}/execution-result");
    let refused = json!({ "errors": ["it has ended already"] });
    let before = ScriptedJobMaster::start(&[
        ("PATCH /v1/jobs/*", 409, refused),
        (&result, 200, ended("FINISHED", None)),
    ]);
    let meanwhile = ScriptedJobMaster::start(&[
        ("PATCH /v1/jobs/*", 202, json!({})),
        (&result, 200, ended("FINISHED", None)),
        ("GET /v1/jobs/*", 200, detail("FINISHED")),
    ]);
    for job_master in [before, meanwhile] {
        let ran = job_master.tidegate(&["cancel", JOB]);
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.stderr.ends_with("has ended already: it is FINISHED\n"), "{}", ran.stderr);
    }
}

#[test]
fn a_cluster_without_savepoints_is_one_line() {
    for status in [404, 405] {
        let refused = json!({ "errors": ["this path does not take this method"] });
        let job_master = ScriptedJobMaster::start(&[
            ("POST /v1/jobs/*/savepoints", status, refused.clone()),
            ("POST /v1/jobs/*/stop", status, refused),
            ("GET /v1/jobs/*/execution-result", 200, running()),
        ]);
        for command in ["savepoint", "stop"] {
            let ran = job_master.tidegate(&[command, JOB]);
            assert_eq!(ran.status, 1, "{ran:?}");
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            assert!(ran.stderr.contains("makes no savepoints"), "{}", ran.stderr);
        }
    }
}

#[test]
fn savepoint_and_stop_wait_and_print_where_the_savepoint_lies() {
    let status = "GET /v1/jobs/*/savepoints/r1";
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs/*/savepoints", 202, json!({ "request-id": "r1" })),
        ("POST /v1/jobs/*/stop", 202, json!({ "request-id": "r1" })),
        (status, 200, json!({ "status": { "id": "IN_PROGRESS" } })),
        (status, 200, json!({ "status": { "id": "COMPLETED" }, "operation": { "location": "file:///s/1" } })),
    ]);
    let ran = job_master.tidegate(&["savepoint", JOB, "/s", "--json"]);
    assert_eq!(ran.json(), json!({ "job_id": JOB, "savepoint": "file:///s/1" }));
    let ran = job_master.tidegate(&["stop", JOB, "--savepoint-dir", "file:///s", "--drain"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "file:///s/1\n"));
    let bodies: Vec<Value> = job_master
        .asked()
        .iter()
        .filter(|asked| asked.method == "POST")
        .map(|asked| serde_json::from_str(&asked.body).unwrap())
        .collect();
    assert_eq!(bodies[0], json!({ "target-directory": "/s", "cancel-job": false }));
    assert_eq!(bodies[1], json!({ "targetDirectory": "file:///s", "drain": true }));
}

#[test]
fn a_savepoint_that_failed_says_why() {
    let failed = json!({
        "status": { "id": "COMPLETED" },
        "operation": { "failure-cause": { "class": "x", "stack-trace": "the folder is full" } },
    });
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs/*/savepoints", 202, json!({ "request-id": "r1" })),
        ("GET /v1/jobs/*/savepoints/r1", 200, failed),
    ]);
    let ran = job_master.tidegate(&["savepoint", JOB]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("failed: the folder is full"), "{}", ran.stderr);
}

#[test]
fn taskexecutors_shows_slots_and_says_when_the_answer_is_old() {
    let each = json!({
        "id": "te-1", "path": "http://127.0.0.1:6122", "dataPort": 6121, "slotsNumber": 4, "freeSlots": 3,
        "timeSinceLastHeartbeat": 1, "heartbeatAgeMs": 250, "livenessState": "alive", "calls": ["shout"],
    });
    let answer = json!({ "taskmanagers": [each], "resourceManagerAgeMs": 12_000 });
    let job_master = ScriptedJobMaster::start(&[("GET /v1/taskmanagers", 200, answer)]);
    let ran = job_master.tidegate(&["taskexecutors"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let line: Vec<&str> = ran.stdout.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line, ["te-1", "http://127.0.0.1:6122", "4", "3", "alive", "250", "ms", "ago", "shout"]);
    assert!(ran.stderr.contains("12.0 s ago"), "{}", ran.stderr);
    assert_eq!(job_master.tidegate(&["taskexecutors", "--json"]).json(), json!([each]));
}

#[test]
fn taskexecutors_says_who_is_to_come_and_why_nobody_does() {
    let answer = json!({
        "taskmanagers": [], "numPendingTaskManagers": 2, "workerTrouble": "worker w-1: it ended with exit status: 1",
        "resourceManagerAgeMs": 0,
    });
    let job_master = ScriptedJobMaster::start(&[("GET /v1/taskmanagers", 200, answer)]);
    let ran = job_master.tidegate(&["taskexecutors"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "no task executors\n"), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines, ["2 workers are being started", "worker w-1: it ended with exit status: 1"]);
}

#[test]
fn taskexecutors_says_why_one_is_a_suspect() {
    let each = json!({
        "id": "te-1", "path": "http://127.0.0.1:6122", "dataPort": 6121, "slotsNumber": 4, "freeSlots": 3,
        "timeSinceLastHeartbeat": 1, "heartbeatAgeMs": 17_600, "livenessState": "SUSPECT",
        "livenessReason": "not heard for 17.6 s, 1 refused in a row", "calls": [],
    });
    let answer = json!({ "taskmanagers": [each], "resourceManagerAgeMs": 0 });
    let job_master = ScriptedJobMaster::start(&[("GET /v1/taskmanagers", 200, answer)]);
    let ran = job_master.tidegate(&["taskexecutors"]);
    let last = ran.stdout.lines().last().unwrap();
    assert_eq!(last, "te-1 is SUSPECT: not heard for 17.6 s, 1 refused in a row");
}

#[test]
fn without_a_job_master_a_command_fails_at_once_and_says_what_to_do() {
    let (_kept, url) = nobody();
    for args in [["list", ""], ["show", JOB], ["cancel", JOB], ["taskexecutors", ""]] {
        let args: Vec<&str> = args.into_iter().filter(|arg| !arg.is_empty()).chain(["-m", &url]).collect();
        let ran = tidegate(&args);
        assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&url) && ran.stderr.contains("start it with `jobmaster`"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn another_program_at_the_address_is_named_as_such() {
    let job_master = ScriptedJobMaster::start(&[("GET /v1/jobs/overview", 200, json!("<html>hello</html>"))]);
    let ran = job_master.tidegate(&["list"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("does not speak as a job master"), "{}", ran.stderr);
}
