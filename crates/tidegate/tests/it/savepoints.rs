//! Savepoints: jobs that are saved, stopped and started again, wider and narrower.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testkit::flights;
use testkit::http;
use testkit::join;
use testkit::patience::{Look, Patience};
use testkit::processes::{CommandOutput, Role};

use crate::keys::KeyedService;
use crate::world::{FlightsJob, LONG, SHORT, World, expected, tailnum};

/// A savepoint's folder on the disk.
fn folder(savepoint: &str) -> &Path {
    Path::new(savepoint.strip_prefix("file://").unwrap())
}

fn start(world: &World, job: &FlightsJob, savepoint: Option<&str>) -> CommandOutput {
    let path = world.write(&format!("{}.yaml", job.name), job.text());
    let mut args = vec!["run", path.to_str().unwrap(), "--detach", "--json"];
    args.extend(savepoint.iter().flat_map(|place| ["--from-savepoint", place]));
    world.command_line().run(&args).unwrap()
}

fn started(world: &World, job: &FlightsJob, savepoint: Option<&str>) -> String {
    let output = start(world, job, savepoint).expect_status(0).unwrap();
    output.json().unwrap()["job_id"].as_str().unwrap().to_owned()
}

fn records_in(detail: &Value) -> u64 {
    detail["result"]["records_in"].as_u64().unwrap_or(0)
}

/// Waits until a job has read so many records.
fn await_records(world: &World, id: &str, records: u64) {
    let detail = world.await_job(id, |detail| detail["state"] == "RUNNING" && records_in(detail) >= records);
    assert!(records_in(&detail) < SHORT as u64, "too late for the middle: {}", records_in(&detail));
}

fn await_end(world: &World, id: &str) -> Value {
    let detail = world.await_job(id, |detail| detail["end-time"].as_i64() > Some(0));
    assert_eq!(detail["state"], "FINISHED", "{detail}");
    detail["result"].clone()
}

/// Stops a job; the savepoint, once the job has ended.
fn stop(world: &World, id: &str, more: &[&str]) -> String {
    let dir = world.path("savepoints");
    let mut args = vec!["stop", id, "--savepoint-dir", dir.to_str().unwrap(), "--json"];
    args.extend(more);
    let output = world.command_line().run(&args).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!(output["job_id"], id, "{output}");
    output["savepoint"].as_str().unwrap().to_owned()
}

fn save(world: &World, id: &str) -> String {
    let dir = world.path("savepoints");
    let output = world.command_line().run(&["savepoint", id, dir.to_str().unwrap()]).unwrap();
    output.expect_status(0).unwrap().stdout.trim().to_owned()
}

fn assert_joined(world: &World) {
    let lines = flights::lines(&world.path("out.jsonl")).unwrap();
    join::same_per_key(&expected().lines[..SHORT], &lines, tailnum).unwrap();
    let left: Vec<_> =
        fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "left behind: {left:?}");
}

#[test]
fn c118_c153_a_job_stopped_twice_goes_on_three_wide_and_one_wide_with_each_result_once() {
    let world = World::started();
    let service = KeyedService::start(Duration::from_millis(20));
    let mut job = FlightsJob { service: Some(service.address()), ..FlightsJob::checkpointed(&world) };
    let mut savepoint = None;
    let mut read = 0;
    for (name, parallelism) in [("two", 2), ("three", 3)] {
        (job.name, job.parallelism) = (name, parallelism);
        let id = started(&world, &job, savepoint.as_deref());
        await_records(&world, &id, read + 1200);
        let place = stop(&world, &id, &[]);
        let result = await_end(&world, &id);
        assert!(result["records_in"].as_u64().unwrap() > read, "it counts on: {result}");
        read = result["records_in"].as_u64().unwrap();
        let checkpoints = world.cluster.get(&format!("/jobs/{id}/checkpoints")).unwrap();
        assert_eq!(checkpoints["latest"]["savepoint"]["external_path"], place.as_str(), "{checkpoints}");
        assert_eq!(checkpoints["history"][0]["is_savepoint"], true, "none comes after it: {checkpoints}");
        let lines = flights::lines(&world.path("out.jsonl")).unwrap();
        assert_eq!(
            lines.len() as u64,
            result["records_out"].as_u64().unwrap(),
            "committed up to the savepoint"
        );
        savepoint = Some(place);
    }
    (job.name, job.parallelism) = ("one", 1);
    let id = started(&world, &job, savepoint.as_deref());
    let restored = world.await_job(&id, |detail| detail["checkpoints"]["latest"]["restored"].is_object());
    assert_eq!(restored["checkpoints"]["latest"]["restored"]["is_savepoint"], true, "{restored}");
    let result = await_end(&world, &id);
    assert_joined(&world);
    assert_eq!((&result["records_in"], &result["records_out"]), (&SHORT.into(), &SHORT.into()), "{result}");
    let asked = flights::lines(&world.path("short.jsonl")).unwrap();
    let asked = asked.iter().filter(|line| tailnum(line).is_some()).count() as u64;
    let (keys, calls) = service.seen();
    assert_eq!(keys, asked, "each record has one key, in all jobs");
    assert!(calls > keys, "some calls were repeated: {calls} of {keys}");
}

#[test]
fn a_drained_job_leaves_nothing_in_flight_and_the_rest_of_the_input_for_the_next() {
    let world = World::started();
    let service = KeyedService::start(Duration::from_millis(20));
    let mut job = FlightsJob { service: Some(service.address()), ..FlightsJob::checkpointed(&world) };
    // Into parts, of one subtask more.
    job.sink = format!("{}/", world.path("out").display());
    let id = started(&world, &job, None);
    await_records(&world, &id, 1500);
    let savepoint = stop(&world, &id, &["--drain"]);
    let result = await_end(&world, &id);
    assert_eq!(result["records_in"], result["records_out"], "{result}");
    assert_eq!(world.parts("out").len() as u64, result["records_out"].as_u64().unwrap());
    (job.name, job.order, job.parallelism) = ("other", "ordered", 3);
    let id = started(&world, &job, Some(&savepoint));
    let result = await_end(&world, &id);
    join::same_multiset(&expected().lines[..SHORT], &world.parts("out")).unwrap();
    assert_eq!(result["records_in"], SHORT, "{result}");
}

#[test]
fn c152_a_job_without_checkpoints_is_saved_runs_on_and_starts_again_after_its_cancellation() {
    let world = World::started();
    let job = FlightsJob { checkpoints: None, restart: "none", ..FlightsJob::checkpointed(&world) };
    let id = started(&world, &job, None);
    await_records(&world, &id, 1500);
    let savepoint = save(&world, &id);
    assert!(savepoint.starts_with("file:///"), "{savepoint}");
    await_records(&world, &id, 2500);
    world.command_line().run(&["cancel", &id]).unwrap().expect_status(0).unwrap();
    assert!(!world.path("out.jsonl").exists(), "nothing of it is visible, all is in the savepoint");
    let moved = world.path("moved");
    fs::rename(folder(&savepoint), &moved).unwrap();
    let id = started(&world, &FlightsJob { name: "again", ..job }, Some(moved.to_str().unwrap()));
    await_end(&world, &id);
    assert_joined(&world);
}

#[test]
fn a_job_that_went_on_after_its_savepoint_is_not_doubled() {
    let world = World::started();
    let job = FlightsJob::checkpointed(&world);
    let id = started(&world, &job, None);
    await_records(&world, &id, 1000);
    let savepoint = save(&world, &id);
    await_end(&world, &id);
    let before = fs::read(world.path("out.jsonl")).unwrap();
    let refused = start(&world, &FlightsJob { name: "again", ..job }, Some(&savepoint));
    assert_eq!(refused.status, Some(2), "{refused}");
    assert!(refused.stderr.contains("truncate -s"), "{refused}");
    assert_eq!(fs::read(world.path("out.jsonl")).unwrap(), before);
    // As the message says.
    let words: Vec<&str> = refused.stderr.split_whitespace().collect();
    let length = words[words.iter().position(|word| *word == "-s").unwrap() + 1];
    let file = fs::OpenOptions::new().write(true).open(world.path("out.jsonl")).unwrap();
    file.set_len(length.parse().unwrap()).unwrap();
    let id =
        started(&world, &FlightsJob { name: "again", ..FlightsJob::checkpointed(&world) }, Some(&savepoint));
    await_end(&world, &id);
    assert_joined(&world);
}

#[test]
fn a_savepoint_that_does_not_fit_is_damaged_or_missing_is_refused_before_anything_runs() {
    let world = World::started();
    let service = KeyedService::start(Duration::from_millis(400));
    let job = FlightsJob { service: Some(service.address()), ..FlightsJob::checkpointed(&world) };
    let id = started(&world, &job, None);
    await_records(&world, &id, 1000);
    let savepoint = stop(&world, &id, &[]);
    let refused = |text: String, place: &str, reason: &str| {
        let path = world.write("refused.yaml", text);
        let args = ["run", path.to_str().unwrap(), "--from-savepoint", place];
        let output = world.command_line().run(&args).unwrap();
        assert_eq!(output.status, Some(2), "{output}");
        assert!(output.stderr.contains(reason), "{reason}: {output}");
    };
    let text = job.text();
    refused(text.replace("name: plane", "name: other"), &savepoint, "in flight in the step `plane`");
    refused(format!("max_parallelism: 64\n{text}"), &savepoint, "max_parallelism: 128");
    let sample = flights::sample();
    refused(text.replace(job.input.to_str().unwrap(), sample.to_str().unwrap()), &savepoint, "positions in");
    refused(text.clone(), "/nowhere/savepoint-1", "there is no savepoint at");
    let metadata = folder(&savepoint).join("metadata");
    let whole = fs::read(&metadata).unwrap();
    fs::write(&metadata, &whole[..whole.len() / 2]).unwrap();
    refused(text.clone(), &savepoint, "cut off");
    let state = fs::read_dir(folder(&savepoint)).unwrap().map(|entry| entry.unwrap().path());
    let state = state.into_iter().find(|path| path != &metadata).expect("a state is an object");
    fs::remove_file(&metadata).unwrap();
    refused(text.clone(), &savepoint, "copy the whole folder again");
    fs::write(&metadata, &whole).unwrap();
    let content = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    refused(text, &savepoint, "is missing");
    fs::write(&state, content).unwrap();
    assert_eq!(world.cluster.get("/jobs").unwrap()["jobs"].as_array().unwrap().len(), 1, "none was taken");
    let id = started(&world, &FlightsJob { name: "again", ..job }, Some(&savepoint));
    await_end(&world, &id);
    assert_joined(&world);
}

#[test]
fn c119_a_stop_whose_savepoint_fails_leaves_the_job_running_with_its_checkpoints() {
    let world = World::started();
    let job = FlightsJob::checkpointed(&world);
    let id = started(&world, &job, None);
    await_records(&world, &id, 1000);
    // There is a file where a folder is to be.
    let dir = job.input.join("savepoints");
    let output = world.command_line().run(&["stop", &id, "--savepoint-dir", dir.to_str().unwrap()]).unwrap();
    assert_eq!((output.status, output.stdout.as_str()), (Some(1), ""), "{output}");
    assert!(output.stderr.contains("short.jsonl"), "{output}");
    let detail = world.await_job(&id, |_| true);
    assert_eq!(detail["state"], "RUNNING", "{detail}");
    let before = detail["result"]["checkpoints"].as_u64().unwrap();
    world.await_job(&id, |detail| detail["result"]["checkpoints"].as_u64() > Some(before));
    let result = await_end(&world, &id);
    assert_eq!(result["restarts"], 0, "{result}");
    assert_joined(&world);
}

#[test]
fn a_job_master_killed_during_a_stop_has_ended_the_job_with_the_savepoint_or_lets_it_run_on() {
    let mut world = World::started();
    let mut job = FlightsJob::checkpointed(&world);
    let id = started(&world, &job, None);
    await_records(&world, &id, 1000);
    let dir = world.path("savepoints");
    let stopping =
        world.command_line().start(&["stop", &id, "--savepoint-dir", dir.to_str().unwrap()]).unwrap();
    Patience::of(LONG)
        .until("the folder of the savepoint", || {
            Ok(if dir.exists() { Look::Found(()) } else { Look::NotYet("nothing".to_owned()) })
        })
        .unwrap();
    world.cluster.kill(Role::JobMaster).unwrap();
    world.cluster.start(Role::JobMaster).unwrap();
    stopping.wait(LONG).unwrap();
    let result = await_end(&world, &id);
    if result["records_in"].as_u64() < Some(SHORT as u64) {
        let savepoint = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
        job.name = "again";
        let id = started(&world, &job, Some(savepoint.to_str().unwrap()));
        assert_eq!(await_end(&world, &id)["records_in"], SHORT);
    }
    assert_joined(&world);
}

#[test]
fn a_job_master_killed_before_the_first_checkpoint_restores_from_the_savepoint_again() {
    let mut world = World::started();
    let mut job = FlightsJob::checkpointed(&world);
    let id = started(&world, &job, None);
    await_records(&world, &id, 1000);
    let savepoint = stop(&world, &id, &[]);
    job.name = "again";
    job.checkpoints = Some(("1h", world.path("checkpoints")));
    let id = started(&world, &job, Some(&savepoint));
    await_records(&world, &id, 2500);
    world.cluster.kill(Role::JobMaster).unwrap();
    world.cluster.start(Role::JobMaster).unwrap();
    let result = await_end(&world, &id);
    assert_eq!((&result["restarts"], &result["records_in"]), (&1.into(), &SHORT.into()), "{result}");
    assert_joined(&world);
    assert!(folder(&savepoint).join("metadata").exists(), "a savepoint is never removed by us");
    let asked = format!("{{\"savepoint-path\":\"{savepoint}\"}}");
    let rest = world.cluster.address(Role::JobMaster, "rest").unwrap();
    let path = "/v1/savepoint-disposal";
    let request = http::request(rest, "POST", path, "application/json", asked.as_bytes()).unwrap();
    let request = request.json().unwrap()["request-id"].as_str().unwrap().to_owned();
    let status = world.cluster.await_answer(&format!("/savepoint-disposal/{request}"), LONG, |answer| {
        answer["status"]["id"] == "COMPLETED"
    });
    assert_eq!(status.unwrap()["operation"], serde_json::json!({}));
    assert!(!folder(&savepoint).exists());
}
