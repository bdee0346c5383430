//! What nobody should send, and starts that cannot succeed.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::http::{self, Response};
use testkit::join;
use testkit::processes::{Binaries, Process, Role};

use crate::world::{FlightsJob, LONG, World, expected};

const YAML: &str = "application/yaml";

fn id(n: u32) -> String {
    format!("{n:032x}")
}

fn post(world: &World, id: &str, text: &str) -> Response {
    let rest = world.cluster.address(Role::JobMaster, "rest").unwrap();
    http::request(rest, "POST", &format!("/v1/jobs?jobid={id}"), YAML, text.as_bytes()).unwrap()
}

fn errors(response: &Response) -> String {
    let body = response.json().unwrap();
    let errors = body["errors"].as_array().unwrap_or_else(|| panic!("no errors: {body}"));
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    errors.iter().map(|error| error.as_str().unwrap().to_owned() + "\n").collect()
}

#[test]
fn a_bad_job_file_is_refused_with_its_place_and_changes_nothing() {
    let world = World::new(World::builder().task_executors(1));
    let good = FlightsJob::new("good", &world.path("out.jsonl")).text();
    let planes = testkit::flights::planes().display().to_string();
    let cases: Vec<(&str, String, &[&str])> = vec![
        (
            "unknown key",
            good.replace("capacity:", "capacitty:"),
            &["file:10:7:", "capacitty", "did you mean `capacity`"],
        ),
        (
            "wrong type",
            good.replace("capacity: 500", "capacity: many"),
            &["file:10:17:", "steps[0].enrich.capacity"],
        ),
        ("zero", good.replace("capacity: 500", "capacity: 0"), &["capacity"]),
        ("missing source", good.replace("source:", "x-source:"), &["source"]),
        ("open brace", good.replace("steps:\n", "steps:\n  - filter: \"a >\"\n"), &["filter"]),
        ("absent table", good.replace(&planes, "/nowhere/planes.jsonl"), &["/nowhere/planes.jsonl"]),
        ("relative path", good.replace(&planes, "planes.jsonl"), &["planes.jsonl"]),
        ("no YAML", "name: [".into(), &["file:1:"]),
        ("empty", String::new(), &[]),
    ];
    for (n, (case, text, words)) in (1..).zip(&cases) {
        assert_ne!(text, &good, "{case}: the case changes nothing");
        let response = post(&world, &id(n), text);
        assert_eq!(response.status, 400, "{case}: {}", response.body);
        let told = errors(&response);
        for word in *words {
            assert!(told.contains(word), "{case}: `{word}` is not in: {told}");
        }
    }
    assert_eq!(post(&world, "no-id", &good).status, 400);
    assert_eq!(world.cluster.get("/jobs").unwrap()["jobs"], Value::Array(Vec::new()));

    let path = world.write("bad.yaml", &cases[0].1);
    let refused =
        world.command_line().run(&["run", path.to_str().unwrap()]).unwrap().expect_status(2).unwrap();
    assert!(refused.stderr.contains("bad.yaml") && refused.stderr.contains("capacitty"), "{refused}");
}

#[test]
fn a_repeated_submission_is_one_job_and_another_file_under_its_id_is_a_conflict() {
    let world = World::new(World::builder().task_executors(1));
    let good = FlightsJob::new("good", &world.path("out.jsonl")).text();
    for _ in 0..2 {
        let response = post(&world, &id(1), &good);
        assert_eq!(
            (response.status, response.json().unwrap()["jobid"].as_str()),
            (202, Some(id(1).as_str()))
        );
    }
    let other = post(&world, &id(1), &good.replace("name: good", "name: other"));
    assert_eq!(other.status, 409, "{}", other.body);
    let ended = world.cluster.await_answer(&format!("/jobs/{}/execution-result", id(1)), LONG, |answer| {
        answer["status"]["id"] == "COMPLETED"
    });
    assert_eq!(ended.unwrap()["job-execution-result"]["state"], "FINISHED");
    assert_eq!(post(&world, &id(1), &good).status, 202, "a repeat is one after the end too");
    assert_eq!(world.cluster.get("/jobs").unwrap()["jobs"].as_array().unwrap().len(), 1);
    let rest = world.cluster.address(Role::JobMaster, "rest").unwrap();
    for (path, status) in
        [(format!("/v1/jobs/{}", id(2)), 404), ("/v1/nothing".into(), 404), ("/jobs/x".into(), 400)]
    {
        let response = http::get(rest, &path).unwrap();
        assert_eq!(response.status, status, "{path}: {}", response.body);
        errors(&response);
    }
}

#[test]
fn garbage_and_giants_on_every_port_are_survived() {
    let mut world = World::started();
    let (master, worker) = (Role::JobMaster, Role::TaskExecutor(0));
    let ports = [
        (Role::ResourceManager, "rpc"),
        (master, "rpc"),
        (master, "rest"),
        (worker, "rpc"),
        (worker, "data"),
    ];
    let garbage: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (role, which) in ports {
        let address = world.cluster.address(role, which).unwrap().to_owned();
        for bytes in [
            &garbage[..],
            b"GET / HTTP/1.1\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff",
        ] {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            // Refused in the middle is as good as taken whole; an answer may be anything.
            drop(stream.write_all(bytes));
            drop(stream.read(&mut [0; 256]));
        }
    }
    let rest = world.cluster.address(master, "rest").unwrap();
    let giant = vec![b' '; 100 << 20];
    let response = http::request(rest, "POST", &format!("/v1/jobs?jobid={}", id(1)), YAML, &giant).unwrap();
    assert_eq!(response.status, 413, "{}", response.body);
    let peak = world.cluster.process(master).unwrap().usage().unwrap().peak;
    assert!(peak < 80 << 20, "the giant was taken into memory: {peak} bytes");

    for role in world.cluster.roles() {
        assert!(world.cluster.process(role).unwrap().is_alive().unwrap(), "{role} has ended");
    }
    let output = world.path("after.jsonl");
    world.run(&FlightsJob::new("after", &output));
    join::same_sequence(&expected().lines, &testkit::flights::lines(&output).unwrap()).unwrap();
}

#[test]
fn a_start_that_cannot_succeed_is_one_line_and_a_status() {
    let binaries = Binaries::of_this_test().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let state = format!("state.dir={}", folder.path().join("state").display());
    let no_folder = format!("state.dir={}", folder.path().join("file/state").display());
    let rest = format!("rest.bind={address}");
    let rpc = format!("rpc.bind={address}");
    let (any_rpc, any_rest) = ("rpc.bind=127.0.0.1:0", "rest.bind=127.0.0.1:0");
    let cases: [(&str, &[&str], i32, &[&str]); 7] = [
        ("jobmaster", &[any_rpc, &rest, &state], 1, &["rest.bind", &address]),
        ("jobmaster", &[&rpc, any_rest, &state], 1, &["rpc.bind", &address]),
        ("resourcemanager", &[&rpc, &state], 1, &["rpc.bind", &address]),
        ("taskexecutor", &[&rpc], 1, &["rpc.bind", &address]),
        ("jobmaster", &[any_rpc, any_rest, &no_folder], 1, &["state.dir"]),
        ("resourcemanager", &[any_rpc, &no_folder], 1, &["state.dir"]),
        ("taskexecutor", &[any_rpc, "taskexecutor.slots=0"], 2, &["taskexecutor.slots", "--set"]),
    ];
    for (program, settings, status, words) in cases {
        let mut command = Command::new(binaries.path(program));
        // The one line of a failure, not what was logged on the way.
        command.env("RUST_LOG", "off");
        for setting in settings {
            command.args(["--set", setting]);
        }
        let logs = tempfile::tempdir().unwrap();
        let mut process = Process::spawn(program, command, logs.path()).unwrap();
        let ended = process.wait(LONG).unwrap();
        let log = process.log();
        assert_eq!(ended.code(), Some(status), "{program} {settings:?}: {log}");
        assert_eq!(log.lines().count(), 1, "{program} {settings:?}: {log}");
        for word in words {
            assert!(log.contains(word), "{program} {settings:?}: `{word}` is not in: {log}");
        }
        assert_eq!(process.rest_of_stdout(), "", "{program} {settings:?}");
    }
}
