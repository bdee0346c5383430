//! Workers on demand: the resource manager starts task executors as processes, and nobody else does.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::join;
use testkit::patience::{Look, Patience};
use testkit::processes::{Process, ProcessClusterBuilder, Role};

use crate::world::{FlightsJob, LONG, SHORT, World, expected, subtasks, tailnum};

/// An empty cluster whose resource manager starts workers of two slots.
fn builder() -> ProcessClusterBuilder {
    World::builder().task_executors(0).set("worker.driver", "process")
}

/// A job that reads for a few seconds with four subtasks, and that may be restarted.
fn of_four(world: &World) -> FlightsJob {
    let restart = "{strategy: fixed-delay, attempts: 20, delay: 0}";
    FlightsJob { parallelism: 4, restart, max_rate: Some(1_500), ..FlightsJob::slow(world) }
}

/// The workers of a cluster, whoever their parent is. Whoever still runs when a test ends, well or not, is killed.
struct Workers {
    argument: String,
}

impl Workers {
    fn of(world: &World) -> Self {
        let address = world.cluster.address(Role::ResourceManager, "rpc").unwrap();
        Self { argument: format!("resourcemanager.address=http://{address}") }
    }

    /// The process ids of those that run: not of those that have ended and are waited for by nobody yet.
    fn pids(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_worker = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            // A job master is told the same address.
            words.next().is_some_and(|program| program.ends_with(b"taskexecutor"))
                && words.any(|word| word == self.argument.as_bytes())
        };
        pids.filter(is_worker).collect()
    }

    fn await_pids(&self, what: &str, wanted: impl Fn(&BTreeSet<u32>) -> bool) -> BTreeSet<u32> {
        let look = || {
            let pids = self.pids();
            Ok(if wanted(&pids) { Look::Found(pids) } else { Look::NotYet(format!("{pids:?}")) })
        };
        Patience::of(LONG).until(what, look).unwrap()
    }
}

fn kill(pid: u32) {
    // The shell's own `kill`: a machine need not have the program.
    let killed =
        Command::new("sh").args(["-c", "kill -9 \"$1\"", "kill", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.pids().into_iter().for_each(kill);
    }
}

fn await_workers(world: &World, number: usize) -> Value {
    let of = |answer: &Value| answer["taskmanagers"].as_array().map(Vec::len);
    world.cluster.await_answer("/taskmanagers", LONG, |answer| of(answer) == Some(number)).unwrap()
}

#[test]
fn c130_a_job_finds_its_workers_on_an_empty_cluster_a_killed_one_is_replaced_and_idle_ones_go() {
    let world = World::new(builder().set("worker.idle-timeout", "2s"));
    let workers = Workers::of(&world);
    assert!(workers.pids().is_empty());
    let begun = Patience::endless();
    let running = world.start(&of_four(&world));
    await_workers(&world, 2);
    let came = begun.elapsed();
    let (id, _) = world.await_middle();
    let first = workers.pids();
    assert_eq!(first.len(), 2, "four slots are two workers of two");
    let killed = *first.iter().next().unwrap();
    kill(killed);
    let two = |pids: &BTreeSet<u32>| pids.len() == 2 && !pids.contains(&killed);
    workers.await_pids("another worker in its place", two);
    world.await_job(&id, |detail| {
        let all = subtasks(detail);
        let again = |subtask: &&Value| subtask["attempt"].as_u64() > Some(0);
        !all.is_empty() && all.iter().all(again)
    });
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!((&result["state"], &result["restarts"]), (&"FINISHED".into(), &1.into()), "{result}");
    join::same_per_key(&expected().lines[..SHORT], &world.parts("out"), tailnum).unwrap();
    workers.await_pids("no worker", BTreeSet::is_empty);
    await_workers(&world, 0);
    // From the command line to the registration, on a machine that may be busy with other tests.
    assert!(came < Duration::from_secs(10), "{came:?}");
}

#[test]
fn c134_a_killed_resource_manager_takes_its_workers_up_again_and_none_is_left_in_the_end() {
    let mut world = World::new(builder().set("worker.idle-timeout", "3s"));
    let workers = Workers::of(&world);
    let running = world.start(&of_four(&world));
    let (id, before) = world.await_middle();
    let pids = workers.pids();
    assert_eq!(pids.len(), 2);
    world.cluster.kill(Role::ResourceManager).unwrap();
    world.cluster.start(Role::ResourceManager).unwrap();
    await_workers(&world, 2);
    world.cluster.await_free_slots(0, LONG).unwrap();
    let after = world.await_job(&id, |detail| detail["state"] == "RUNNING");
    let attempts = |detail: &Value| -> Vec<(u64, String)> {
        let of = |task: &Value| (task["attempt"].as_u64().unwrap(), task["taskmanager-id"].to_string());
        subtasks(detail).into_iter().map(of).collect()
    };
    assert_eq!(attempts(&before), attempts(&after), "the same tasks at the same places");
    assert_eq!(workers.pids(), pids, "no other worker was started");
    let result = running.wait(LONG).unwrap().expect_status(0).unwrap().json().unwrap();
    assert_eq!(result["restarts"], 0, "{result}");
    // They are no children of the one that ends them.
    workers.await_pids("no worker", BTreeSet::is_empty);
}

#[test]
fn workers_that_nobody_wants_after_a_restart_of_the_resource_manager_are_ended() {
    let mut world = World::new(builder().set("worker.idle-timeout", "2s"));
    let workers = Workers::of(&world);
    let running = world.start(&of_four(&world));
    let (id, _) = world.await_middle();
    world.cluster.kill(Role::ResourceManager).unwrap();
    world.command_line().run(&["cancel", &id]).unwrap();
    running.wait(LONG).unwrap().expect_status(1).unwrap();
    assert_eq!(workers.pids().len(), 2, "without a resource manager they wait for one");
    world.cluster.start(Role::ResourceManager).unwrap();
    workers.await_pids("no worker", BTreeSet::is_empty);
}

#[test]
fn c012_a_task_executor_that_the_driver_has_not_started_ends_at_once_with_the_reason() {
    let world = World::new(builder());
    let address = world.cluster.address(Role::ResourceManager, "rpc").unwrap();
    let mut command = Command::new(world.cluster.binaries().path("taskexecutor"));
    command.args(["--set", &format!("resourcemanager.address=http://{address}")]);
    let mut stranger = Process::spawn("stranger", command, &world.cluster.logs()).unwrap();
    assert_eq!(stranger.wait(LONG).unwrap().code(), Some(1));
    let log = stranger.log();
    let last = log.lines().last().unwrap();
    assert!(
        last.starts_with("error: ") && last.contains("rejected") && last.contains("worker.driver"),
        "{log}"
    );
}

#[test]
fn a_worker_that_exits_at_once_is_told_with_its_status_and_last_words_and_not_started_in_a_tight_loop() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("worker.sh");
    fs::write(&script, "#!/bin/sh\necho 'no such library' >&2\nexit 7\n").unwrap();
    let made = Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    assert!(made.success());
    let builder = builder().set("worker.command", script.display()).set("worker.max-start-failure-rate", 2);
    let mut world = World::new(builder.set("worker.start-retry-interval", "1h"));
    let running = world.start(&of_four(&world));
    let told =
        |answer: &Value| answer["workerTrouble"].as_str().is_some_and(|text| text.contains("exit status: 7"));
    let overview = world.cluster.await_answer("/overview", LONG, told).unwrap();
    assert!(overview["workerTrouble"].as_str().unwrap().contains("no such library"), "{overview}");
    // Two at a time are needed: of the second pair one is too many in a minute, and the pause is an hour.
    let failures = |world: &mut World| -> Vec<String> {
        let log = world.cluster.process(Role::ResourceManager).unwrap().log();
        log.lines().filter(|line| line.contains("could not be started")).map(str::to_owned).collect()
    };
    let three = Patience::of(LONG).until("three failures in the log", || {
        let lines = failures(&mut world);
        Ok(Look::of((lines.len() >= 3).then(|| lines.clone()), || format!("{lines:?}")))
    });
    let line = &three.unwrap()[0];
    for part in ["exit status: 7", "no such library", "worker-logs"] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
    let output = world.command_line().run(&["taskexecutors"]).unwrap();
    assert!(output.to_string().contains("exit status: 7"), "{output}");
    assert!(failures(&mut world).len() <= 4, "{:?}", failures(&mut world));
    drop(running);
}

#[test]
fn a_worker_command_that_does_not_exist_is_status_2_by_key_before_anything_starts() {
    let cluster = builder().prepare().unwrap();
    let mut command = Command::new(cluster.binaries().path("resourcemanager"));
    command.args(["--set", "rpc.bind=127.0.0.1:0", "--set", "worker.driver=process"]);
    command.args(["--set", "worker.command=/no/such/program"]);
    command.args(["--set", &format!("state.dir={}", cluster.folder().join("state").display())]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    for part in ["worker.command", "/no/such/program", "flag --set", "executable"] {
        assert!(stderr.contains(part), "{part} is missing in {stderr}");
    }
    assert!(!cluster.folder().join("state").exists(), "nothing was begun");
}
