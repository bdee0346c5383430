//! The commands that need no cluster.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::support::{Ran, ScriptedJobMaster, job_folder, program, tidegate, write};
use serde_json::Value;

#[test]
fn a_good_job_file_is_ok() {
    let (_folder, file) = job_folder();
    let ran = tidegate(&["validate", file.to_str().unwrap()]);
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "ok: big-orders needs 1 slot\n", "")
    );
    let ran = tidegate(&["validate", file.to_str().unwrap(), "--json", "--set", "parallelism=3"]);
    assert_eq!(ran.json()["valid"], true);
    assert_eq!(ran.json()["slots"], 3);
}

#[test]
fn every_mistake_is_a_line_with_its_place_and_status_2() {
    let (folder, _) = job_folder();
    let text = "name: x\nsource: {file: {path: a.jsonl, splitt: auto}}\nsteps:\n  - filter: \"amount >\"\nsink: {file: {}}\n";
    let file = write(folder.path(), "bad.yaml", text);
    for command in ["validate", "explain", "run"] {
        let ran = tidegate(&[command, file.to_str().unwrap()]);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{command}: {ran:?}");
        for place in ["bad.yaml:2:", "bad.yaml:4:", "bad.yaml:5:"] {
            assert!(ran.stderr.contains(place), "{command}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.lines().count(), 3, "{command}: {}", ran.stderr);
    }
    let ran = tidegate(&["validate", file.to_str().unwrap(), "--json"]);
    assert_eq!(ran.status, 2);
    assert_eq!(ran.json()["valid"], false);
    assert_eq!(ran.json()["errors"].as_array().unwrap().len(), 3);
}

#[test]
fn a_mistake_of_a_flag_names_the_flag() {
    let (_folder, file) = job_folder();
    for command in ["validate", "explain", "run"] {
        let ran = tidegate(&[command, file.to_str().unwrap(), "--set", "parallelism=none"]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stderr.starts_with("error: --set parallelism=none: parallelism: "), "{}", ran.stderr);
    }
}

#[test]
fn a_job_file_that_is_not_there_is_status_2() {
    for command in ["validate", "explain", "run"] {
        let ran = tidegate(&[command, "/no/such/job.yaml"]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(
            ran.stderr.starts_with("error: /no/such/job.yaml: the job file cannot be read"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn validate_looks_at_inputs_and_outputs_and_explain_does_not() {
    let (folder, file) = job_folder();
    std::fs::remove_file(folder.path().join("orders.jsonl")).unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    write(folder.path(), "out/big.jsonl", "{}\n");
    let ran = tidegate(&["validate", file.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stderr.lines().count()), (2, 2), "{ran:?}");
    assert!(ran.stderr.contains("job.yaml:3:16: source.file.path: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("job.yaml:7:16: sink.file.path: "), "{}", ran.stderr);
    assert_eq!(tidegate(&["explain", file.to_str().unwrap()]).status, 0);
}

#[test]
fn explain_prints_the_plan_with_defaults_and_as_json_its_shape() {
    let (_folder, file) = job_folder();
    let ran = tidegate(&["explain", file.to_str().unwrap()]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("output order: that of the input"), "{}", ran.stdout);
    assert!(ran.stdout.contains("max_record: 1MiB"), "{}", ran.stdout);
    let plan = tidegate(&["explain", file.to_str().unwrap(), "--json"]).json();
    assert_eq!(plan["keeps_input_order"], true);
    assert_eq!(plan["chains"][0]["operators"][0], "source: orders.jsonl");
}

#[test]
fn health_is_0_when_well_and_1_otherwise() {
    let server = ScriptedJobMaster::start(&[
        ("GET /healthz", 200, serde_json::json!({ "status": "ok" })),
        ("GET /other", 503, serde_json::json!({ "status": "stuck" })),
    ]);
    let ran = tidegate(&["health", &server.url]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "well\n"), "{ran:?}");
    let ran = tidegate(&["health", &format!("{}/other", server.url), "--json"]);
    assert_eq!((ran.status, ran.json()["well"].as_bool()), (1, Some(false)), "{ran:?}");
    assert!(ran.stderr.contains("503"), "{}", ran.stderr);
    let ran = tidegate(&["health", "nonsense://x"]);
    assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{ran:?}");
}

#[test]
fn serve_table_says_where_it_is_answers_and_ends_with_0() {
    let (folder, _) = job_folder();
    let rows = write(folder.path(), "rows.jsonl", "{\"id\": \"a b\", \"n\": 1}\n");
    for signal in ["TERM", "INT"] {
        let mut child = program()
            .args([
                "serve-table",
                rows.to_str().unwrap(),
                "--key",
                "id",
                "--bind",
                "127.0.0.1:0",
                "--delay",
                "1ms",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let parsed: Value = serde_json::from_str(&ready).unwrap();
        let address = parsed["http"].as_str().unwrap().to_owned();
        assert_eq!(ready, format!("{{\"ready\":true,\"role\":\"serve-table\",\"http\":\"{address}\"}}\n"));
        assert_eq!(get(&address, "/a%20b"), (200, "{\"id\":\"a b\",\"n\":1}".to_owned()));
        assert_eq!(get(&address, "/a").0, 404);
        // A connection that stays open does not keep it.
        let _idle = TcpStream::connect(&address).unwrap();
        let kill =
            std::process::Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "stdout carries the ready line alone");
    }
}

#[test]
fn serve_table_refuses_what_is_no_table_and_a_port_that_is_taken() {
    let (folder, _) = job_folder();
    let rows = write(folder.path(), "rows.jsonl", "{\"id\":1}\n{\"n\":1}\n");
    let ran = tidegate(&["serve-table", rows.to_str().unwrap(), "--key", "id", "--bind", "127.0.0.1:0"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("line 2: the row has no field `id`"), "{}", ran.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let rows = write(folder.path(), "good.jsonl", "{\"id\":1}\n");
    let ran: Ran = tidegate(&["serve-table", rows.to_str().unwrap(), "--key", "id", "--bind", &address]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains(&format!("--bind: {address} is in use")), "{}", ran.stderr);
}

#[test]
fn help_of_every_command_has_an_example() {
    let all = tidegate(&["--help"]);
    assert_eq!(all.status, 0);
    assert!(all.stdout.contains("Exit status: 0 done, 1 failed at run time"), "{}", all.stdout);
    let commands = [
        "run",
        "list",
        "show",
        "taskexecutors",
        "cancel",
        "savepoint",
        "stop",
        "validate",
        "explain",
        "health",
        "serve-table",
    ];
    for command in commands {
        assert!(all.stdout.contains(&format!("\n  {command} ")), "{command} is missing:\n{}", all.stdout);
        let help = tidegate(&[command, "--help"]);
        assert_eq!(help.status, 0, "{command}");
        assert!(help.stdout.contains(&format!("\n  tidegate {command} ")), "{command}:\n{}", help.stdout);
    }
    assert_eq!(tidegate(&["fly"]).status, 2);
}

/// Status and body, over a plain connection.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}
