//! `tidegate run` against a job master that answers what is written down.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::support::{ScriptedJobMaster, ended, job_folder, nobody, program, running, unknown_job, write};
use serde_json::{Value, json};

const RESULT: &str = "GET /v1/jobs/*/execution-result";

fn accepted() -> Value {
    json!({ "jobid": "whatever" })
}

/// The id that the program drew, out of the query of its submission.
fn submitted_id(job_master: &ScriptedJobMaster) -> String {
    let posts: Vec<_> = job_master.asked().into_iter().filter(|asked| asked.method == "POST").collect();
    let ids: Vec<&str> = posts
        .iter()
        .map(|post| post.query.split('&').find_map(|pair| pair.strip_prefix("jobid=")).unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "a repeat keeps its id: {ids:?}");
    ids[0].to_owned()
}

#[test]
fn a_finished_job_is_status_0_and_one_line_of_json_in_the_documented_order() {
    let (_folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs", 202, accepted()),
        (RESULT, 200, running()),
        (RESULT, 200, running()),
        (RESULT, 200, ended("FINISHED", None)),
    ]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap(), "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(
        ran.stdout,
        "{\"job_id\":\"3f1c8d0e9a7b46529d1e0c2b7a615f48\",\"name\":\"big-orders\",\"state\":\"FINISHED\",\
         \"records_in\":336776,\"records_out\":336000,\"filtered\":776,\"dropped\":0,\"dead_letters\":0,\
         \"empty\":52606,\"calls\":334264,\"retries\":3,\"timeouts\":0,\"restarts\":1,\"checkpoints\":0,\
         \"duration_ms\":4711,\"failure\":null}\n"
    );
    assert!(ran.stderr.contains(&submitted_id(&job_master)), "{}", ran.stderr);
}

#[test]
fn what_is_sent_has_absolute_paths_and_what_was_set() {
    let (folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[("POST /v1/jobs", 202, accepted())]);
    let file = file.to_str().unwrap();
    let ran = job_master.tidegate(&["run", file, "--detach", "--json", "--set", "source.file.max_rate=7"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let id = submitted_id(&job_master);
    assert_eq!(ran.json(), json!({ "job_id": id }));
    assert!(id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    let sent: Value = serde_json::from_str(&job_master.asked()[0].body).unwrap();
    assert_eq!(sent["source"]["file"]["max_rate"], 7);
    assert_eq!(sent["source"]["file"]["path"], folder.path().join("orders.jsonl").to_str().unwrap());
    assert_eq!(sent["sink"]["file"]["path"], folder.path().join("out/big.jsonl").to_str().unwrap());
    assert_eq!(job_master.asked().len(), 1, "a detached command asks nothing more");
}

#[test]
fn a_savepoint_to_begin_from_travels_as_its_path() {
    let (_folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[(
        "POST /v1/jobs",
        400,
        json!({ "errors": ["`savepointPath` is not supported by this version"] }),
    )]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap(), "--from-savepoint", "file:///s/1"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains("savepointPath"), "{}", ran.stderr);
    assert!(job_master.asked()[0].query.ends_with("&savepointPath=file%3A%2F%2F%2Fs%2F1"));
}

#[test]
fn a_job_that_failed_is_status_1_with_its_result_and_its_cause() {
    let (_folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs", 202, accepted()),
        (RESULT, 200, ended("FAILED", Some("task source, line 3: no JSON"))),
    ]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap(), "--json"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert_eq!(ran.json()["state"], "FAILED");
    assert!(ran.stderr.contains("(big-orders) ended FAILED: task source, line 3: no JSON"), "{}", ran.stderr);
}

#[test]
fn people_get_a_summary_with_every_figure() {
    let (_folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs", 202, accepted()),
        (RESULT, 200, ended("FINISHED", None)),
    ]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap()]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for line in ["state         FINISHED\n", "records in    336,776\n", "duration      4.7 s\n"] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
}

#[test]
fn a_job_file_that_the_job_master_refuses_is_status_2_and_a_line_an_error() {
    let (_folder, file) = job_folder();
    let errors = json!({ "errors": ["source.file.path: no input", "sink.file.path: exists"] });
    let job_master = ScriptedJobMaster::start(&[("POST /v1/jobs", 400, errors)]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert_eq!(ran.stderr, "error: source.file.path: no input\nerror: sink.file.path: exists\n");
}

#[test]
fn a_mistake_in_the_job_file_is_found_before_anything_is_sent() {
    let (folder, _) = job_folder();
    let file = write(folder.path(), "bad.yaml", "name: x\nsteps: []\n");
    let job_master = ScriptedJobMaster::start(&[]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap()]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains("bad.yaml:2:8: steps: there is no step"), "{}", ran.stderr);
    assert!(job_master.asked().is_empty());
}

#[test]
fn an_id_that_is_taken_by_another_job_is_status_1() {
    let (_folder, file) = job_folder();
    let job_master =
        ScriptedJobMaster::start(&[("POST /v1/jobs", 409, json!({ "errors": ["another job has the id"] }))]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap()]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("another job has the id"), "{}", ran.stderr);
}

#[test]
fn a_job_master_that_is_not_ready_is_waited_for_at_submission_and_while_the_job_runs() {
    let (_folder, file) = job_folder();
    let starting = || json!({ "errors": ["the job master is starting"] });
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs", 503, starting()),
        ("POST /v1/jobs", 503, json!("<html>no backend</html>")),
        ("POST /v1/jobs", 202, accepted()),
        (RESULT, 200, running()),
        (RESULT, 503, starting()),
        (RESULT, 200, ended("FINISHED", None)),
    ]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap(), "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(job_master.count("POST", "/v1/jobs"), 3);
    submitted_id(&job_master);
    let notes = ran.stderr.matches("is not ready: the job master is starting; trying for 60 seconds").count();
    assert_eq!(notes, 2, "once at submission, once while waiting: {}", ran.stderr);
}

#[test]
fn a_connection_that_is_refused_is_tried_again() {
    let (_folder, file) = job_folder();
    let (_kept, url) = nobody();
    let mut child = program()
        .args(["run", file.to_str().unwrap(), "-m", &url])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "it goes on trying");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.contains(&url) && first.contains("cannot be reached"), "{first}");
    assert!(
        first.contains("start it with `jobmaster`") && first.contains("trying for 60 seconds"),
        "{first}"
    );
}

#[test]
fn a_job_that_the_job_master_has_forgotten_is_not_waited_for() {
    let (_folder, file) = job_folder();
    let job_master = ScriptedJobMaster::start(&[
        ("POST /v1/jobs", 202, accepted()),
        (RESULT, 200, running()),
        (RESULT, 404, unknown_job()),
    ]);
    let ran = job_master.tidegate(&["run", file.to_str().unwrap()]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains(&format!("knows no job {}", submitted_id(&job_master))), "{}", ran.stderr);
}

#[test]
fn ctrl_c_without_a_terminal_leaves_the_job_and_names_it() {
    let (_folder, file) = job_folder();
    let job_master =
        ScriptedJobMaster::start(&[("POST /v1/jobs", 202, accepted()), (RESULT, 200, running())]);
    for signal in ["INT", "TERM"] {
        let mut child = program()
            .args(["run", file.to_str().unwrap(), "-m", &job_master.url])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let submitted = stderr.next().unwrap().unwrap();
        let id = submitted.split(' ').nth(1).unwrap().to_owned();
        let kill =
            std::process::Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal}");
        let left = stderr.next().unwrap().unwrap();
        assert!(left.starts_with(&format!("error: job {id} is left to run")), "{left}");
        assert_eq!(stderr.count(), 0);
    }
    assert!(job_master.asked().iter().all(|asked| asked.method != "PATCH"), "nothing was cancelled");
}
