//! Who is taken for dead, how soon, and who is not: with processes that are killed, stopped and cut off.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::patience::{Look, Patience};
use testkit::processes::{ProcessCluster, ProcessClusterBuilder, Role, Signal};

use crate::world::{LONG, World};

const INTERVAL: Duration = Duration::from_millis(200);
const LOST: Role = Role::TaskExecutor(1);

/// A cluster of two task executors that are asked every 200 ms.
fn cluster(timeout: Duration) -> ProcessCluster {
    let cluster = World::builder().heartbeat(INTERVAL, timeout).start().unwrap();
    cluster.await_free_slots(4, LONG).unwrap();
    cluster
}

fn await_state(cluster: &ProcessCluster, what: &str, wanted: impl Fn(Option<&Value>) -> bool) {
    let lost = |answer: &Value| {
        let all = answer["taskmanagers"].as_array().cloned().unwrap_or_default();
        wanted(all.iter().find(|each| each["id"] == "te-1"))
    };
    cluster.await_answer("/taskmanagers", LONG, lost).unwrap_or_else(|error| panic!("{what}: {error}"));
}

fn await_gone(cluster: &ProcessCluster) {
    await_state(cluster, "te-1 is gone", |each| each.is_none());
}

/// The line of the resource manager's log that says why te-1 was given up.
fn verdict(cluster: &mut ProcessCluster) -> String {
    let log = cluster.process(Role::ResourceManager).unwrap().log();
    let line = log.lines().find(|line| line.contains("a task executor is gone") && line.contains("te-1"));
    line.unwrap_or_else(|| panic!("no verdict in\n{log}")).to_owned()
}

#[test]
fn h031_a_killed_task_executor_is_unreachable_long_before_the_timeout() {
    let mut cluster = cluster(Duration::from_secs(5));
    cluster.kill(LOST).unwrap();
    let begun = Patience::endless();
    await_gone(&cluster);
    let took = begun.elapsed();
    // Two intervals, and a second for a machine that is busy with other tests.
    assert!(took < INTERVAL * 2 + Duration::from_secs(1), "{took:?}");
    let line = verdict(&mut cluster);
    assert!(line.contains("no longer reachable") && line.contains("last error:"), "{line}");
}

#[test]
fn h033_a_stopped_task_executor_is_a_suspect_and_then_timed_out() {
    let mut cluster = cluster(Duration::from_secs(2));
    cluster.process(LOST).unwrap().signal(Signal::Stop).unwrap();
    let begun = Patience::endless();
    await_state(&cluster, "te-1 is a suspect", |each| {
        each.is_none_or(|each| each["livenessState"] == "SUSPECT" && each["livenessReason"].is_string())
    });
    let suspect_after = begun.elapsed();
    await_gone(&cluster);
    let took = begun.elapsed();
    cluster.process(LOST).unwrap().signal(Signal::Continue).unwrap();
    assert!(suspect_after < took, "a suspect first: {suspect_after:?}, {took:?}");
    assert!(took > Duration::from_secs(2) - INTERVAL * 2 && took < Duration::from_secs(4), "{took:?}");
    let line = verdict(&mut cluster);
    assert!(line.contains("timed out") && !line.contains("no longer reachable"), "{line}");
    // It comes back by itself.
    cluster.await_free_slots(4, LONG).unwrap();
}

/// Packets to one port of this machine are lost while this lives.
struct Dropped(Vec<String>);

impl Dropped {
    /// `None` where that is not allowed here.
    fn to(port: &str) -> Option<Self> {
        let rule =
            ["OUTPUT", "-o", "lo", "-p", "tcp", "--dport", port, "-j", "DROP"].map(str::to_owned).to_vec();
        let added = Command::new("iptables").arg("-A").args(&rule).output();
        added.is_ok_and(|added| added.status.success()).then_some(Self(rule))
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        drop(Command::new("iptables").arg("-D").args(&self.0).output());
    }
}

#[test]
#[ignore = "changes the machine's packet filter, which takes root"]
fn h033_dropped_packets_are_a_timeout_and_no_refusal() {
    let mut cluster = cluster(Duration::from_secs(2));
    let address = cluster.address(LOST, "rpc").unwrap().to_owned();
    let port = address.rsplit(':').next().unwrap();
    let Some(dropped) = Dropped::to(port) else {
        eprintln!("not run: iptables is not there or not allowed");
        return;
    };
    let begun = Patience::endless();
    await_gone(&cluster);
    let took = begun.elapsed();
    drop(dropped);
    println!("one-way drop at 200 ms / 2 s: gone after {took:?}");
    assert!(took > Duration::from_secs(2) - INTERVAL * 2 && took < Duration::from_secs(4), "{took:?}");
    let line = verdict(&mut cluster);
    assert!(line.contains("timed out"), "{line}");
}

/// Stops the resource manager for longer than the timeout: it must not judge anybody by its own absence.
fn stopped_resource_manager(timeout: Duration, stop: Duration) {
    let mut cluster = cluster(timeout);
    let resource_manager = Role::ResourceManager;
    cluster.process(resource_manager).unwrap().signal(Signal::Stop).unwrap();
    let stopped = Patience::of(stop);
    let waited: anyhow::Result<()> = stopped.until("nothing", || Ok(Look::NotYet("waiting".into())));
    assert!(waited.is_err());
    cluster.process(resource_manager).unwrap().signal(Signal::Continue).unwrap();
    Patience::of(LONG)
        .until("it says that it stood still", || {
            let log = cluster.process(resource_manager)?.log();
            let told = log.contains("this process stood still for").then_some(());
            Ok(Look::of(told, || "not yet".into()))
        })
        .unwrap();
    cluster.await_free_slots(4, LONG).unwrap();
    let log = cluster.process(resource_manager).unwrap().log();
    for word in ["timed out", "no longer reachable"] {
        assert!(!log.contains(word), "{word}:\n{log}");
    }
}

#[test]
fn h062_a_resource_manager_that_was_stopped_declares_nobody_dead() {
    stopped_resource_manager(Duration::from_secs(1), Duration::from_secs(3));
}

#[test]
#[ignore = "twenty seconds"]
fn h062_a_resource_manager_that_was_stopped_for_twenty_seconds_declares_nobody_dead() {
    stopped_resource_manager(Duration::from_secs(5), Duration::from_secs(20));
}

/// What is done to a task executor.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Stop,
    /// Requests to it are lost.
    OneWayDrop,
}

/// How long the resource manager took to give each of some task executors up, shortest first. They are a minority of
/// all, or it would hold its verdicts.
fn detection_times(interval: Duration, timeout: Duration, fault: Fault) -> Vec<Duration> {
    let builder = ProcessCluster::builder().heartbeat(interval, timeout);
    detection_times_of(builder, interval, timeout, fault, Duration::ZERO)
}

/// The same, after the cluster was well for a while.
fn detection_times_of(
    builder: ProcessClusterBuilder,
    interval: Duration,
    timeout: Duration,
    fault: Fault,
    well_for: Duration,
) -> Vec<Duration> {
    const ALL: usize = 11;
    const FAULTY: usize = 5;
    let mut cluster = builder.task_executors(ALL).slots(1).start().unwrap();
    cluster.await_free_slots(ALL as u64, LONG).unwrap();
    let well = Patience::of(well_for);
    well.until("a while", || Ok(Look::of(well.left().is_zero().then_some(()), || "all is well".into())))
        .unwrap();
    let mut dropped = Vec::new();
    let mut begun: Vec<(String, Patience)> = Vec::new();
    let mut times = Vec::new();
    // In its log: one whose requests alone are lost registers again at once, and is hardly seen to be gone.
    let mut look = |cluster: &mut ProcessCluster, begun: &mut Vec<(String, Patience)>| {
        let log = cluster.process(Role::ResourceManager)?.log();
        begun.retain(|(id, since)| {
            let mut verdicts = log.lines().filter(|line| line.contains("a task executor is gone"));
            let gone = verdicts.any(|line| line.contains(id.as_str()));
            times.extend(gone.then(|| since.elapsed()));
            !gone
        });
        Ok(Look::of(begun.is_empty().then_some(()), || format!("{begun:?}")))
    };
    for n in 0..FAULTY {
        let role = Role::TaskExecutor(n);
        let address = cluster.address(role, "rpc").unwrap().to_owned();
        match fault {
            Fault::Kill => cluster.kill(role).unwrap(),
            Fault::Stop => cluster.process(role).unwrap().signal(Signal::Stop).unwrap(),
            Fault::OneWayDrop => match Dropped::to(address.rsplit(':').next().unwrap()) {
                Some(rule) => dropped.push(rule),
                None => return Vec::new(),
            },
        }
        begun.push((format!("te-{n}"), Patience::endless()));
        // Each at another place in the interval.
        let pause = Patience::of(interval / 4);
        let waited: anyhow::Result<()> = pause.until("the next", || {
            look(&mut cluster, &mut begun).map(|_| Look::NotYet("a part of the interval".into()))
        });
        assert!(waited.is_err());
    }
    Patience::of(timeout * 3 + LONG).until("all are given up", || look(&mut cluster, &mut begun)).unwrap();
    for n in 0..FAULTY {
        // Those that were stopped have to be able to end.
        if let Ok(process) = cluster.process(Role::TaskExecutor(n)) {
            process.signal(Signal::Continue).unwrap();
        }
    }
    times.sort_unstable();
    times
}

#[test]
#[ignore = "measures for two minutes"]
fn detection_times_are_within_the_promise() {
    let settings = [
        (Duration::from_millis(500), Duration::from_secs(2)),
        (Duration::from_secs(10), Duration::from_secs(50)),
    ];
    for (interval, timeout) in settings {
        for fault in [Fault::Kill, Fault::Stop, Fault::OneWayDrop] {
            let times = detection_times(interval, timeout, fault);
            let (Some(median), Some(slowest)) = (times.get(times.len() / 2), times.last()) else { continue };
            println!("| {fault:?} | {interval:?} / {timeout:?} | {median:?} | {slowest:?} |");
            // The timeout runs from the last heartbeat; what REST shows is some milliseconds old.
            let promise = if matches!(fault, Fault::Kill) { interval * 2 } else { timeout };
            assert!(*slowest <= promise + Duration::from_secs(1), "{fault:?}: {times:?}");
            // And nobody who is merely silent is given up before. Two requests lie at most one and a half intervals apart.
            let earliest =
                if matches!(fault, Fault::Kill) { Duration::ZERO } else { timeout - interval * 3 / 2 };
            assert!(times[0] >= earliest, "{fault:?}: {times:?}");
        }
    }
}

#[test]
#[ignore = "measures for two minutes"]
fn an_adaptive_resource_manager_gives_up_a_stopped_process_within_31_seconds_at_the_defaults() {
    let (interval, timeout) = (Duration::from_secs(10), Duration::from_secs(50));
    let builder =
        ProcessCluster::builder().heartbeat(interval, timeout).set("heartbeat.detector", "adaptive");
    // It judges by the gaps that it knows, and by the timeout while these are fewer than five.
    let times = detection_times_of(builder, interval, timeout, Fault::Stop, interval * 8);
    println!("| Stop, adaptive | {interval:?} / {timeout:?} | {:?} | {:?} |", times[2], times[4]);
    assert!(times[4] <= Duration::from_secs(31), "{times:?}");
    // Three intervals from the last heartbeat, which is one and a half old at most.
    assert!(times[0] >= interval * 3 / 2, "{times:?}");
}
