//! A resource manager that watches thousands of task executors over gRPC on loopback: what that costs it, whom it declares
//! dead wrongly, and how soon it reports a thousand that are killed at once.
//!
//! The resource manager is the real program. The task executors are those of testkit's `fleet`, a hundred a connection,
//! in two processes, one of which is killed.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::patience::{Look, Patience};
use testkit::processes::{Binaries, Process, ProcessCluster, Role};

use super::report::{Better, Report, Target};
use crate::programs;
use crate::step::succeed;
use crate::workspace::cargo;

const PER_CONNECTION: u32 = 100;
/// As long as a busy machine may take to register them all.
const LONG: Duration = Duration::from_secs(180);

/// How many are watched and how often.
struct Case {
    task_executors: u32,
    killed: u32,
    interval: Duration,
    timeout: Duration,
    /// How long the cost is measured: some intervals.
    window: Duration,
}

const CASES: [Case; 2] = [
    Case {
        task_executors: 10_000,
        killed: 1_000,
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(50),
        window: Duration::from_secs(60),
    },
    Case {
        task_executors: 2_000,
        killed: 1_000,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(5),
        window: Duration::from_secs(30),
    },
];

const QUICK: Case = Case {
    task_executors: 400,
    killed: 100,
    interval: Duration::from_secs(1),
    timeout: Duration::from_secs(5),
    window: Duration::from_secs(10),
};

/// Measures and reports.
///
/// # Errors
/// Something could not be started, or a task executor did not register.
pub(super) fn measure(quick: bool, report: &mut Report) -> anyhow::Result<()> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", "resourcemanager", "--package", "testkit"]);
    build.args([
        "--no-default-features",
        "--features",
        "testkit/fleet",
        "--bin",
        "resourcemanager",
        "--bin",
        "fleet",
    ]);
    succeed(&mut build)?;
    let target = programs::target()?.join("release");
    let fleet = target.join("fleet");
    let binaries = Binaries::some_in_folder(target, &["resourcemanager"])?;
    let folder = programs::work_folder("bench-fleet")?;
    for (n, case) in if quick { &[QUICK][..] } else { &CASES[..] }.iter().enumerate() {
        let folder = folder.join(n.to_string());
        let measured = run(case, &binaries, &fleet, &folder, report);
        measured.with_context(|| format!("logs are in {}", folder.display()))?;
    }
    programs::remove(&folder)
}

/// Those whom the resource manager has given up, by its log. Only what is new is read each time: it is asked while it is
/// measured.
struct GivenUp {
    log: BufReader<File>,
    line: String,
    count: u32,
}

impl GivenUp {
    fn of(cluster: &ProcessCluster) -> anyhow::Result<Self> {
        let path = cluster.logs().join(format!("{}.log", Role::ResourceManager));
        let log = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { log: BufReader::new(log), line: String::new(), count: 0 })
    }

    fn look(&mut self) -> anyhow::Result<u32> {
        // A line that is not whole yet is read on with the next look.
        while self.log.read_line(&mut self.line)? > 0 && self.line.ends_with('\n') {
            self.count += u32::from(self.line.contains("a task executor is gone"));
            self.line.clear();
        }
        Ok(self.count)
    }
}

fn run(
    case: &Case,
    binaries: &Binaries,
    fleet: &Path,
    folder: &Path,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Case { task_executors, killed, interval, timeout, window } = case;
    let mut cluster = ProcessCluster::builder()
        .binaries(binaries.clone())
        .folder(folder)
        .heartbeat(*interval, *timeout)
        .prepare()?;
    cluster.start(Role::ResourceManager)?;
    let address = format!("http://{}", cluster.address(Role::ResourceManager, "rpc")?);
    let logs = cluster.logs();
    let start = |name: &str, first: u32, count: u32| {
        let mut command = Command::new(fleet);
        command.arg(&address).args([first, count, PER_CONNECTION].map(|n| n.to_string()));
        Process::spawn(name, command, &logs)
    };
    let row = |what: &str| format!("heartbeat/fleet-{what}/targets={task_executors}");
    let mut given_up = GivenUp::of(&cluster)?;

    // All register at once, as after a restart of the resource manager.
    let storm = Patience::of(LONG);
    let mut living = start("living", 0, task_executors - killed)?;
    let mut dying = start("dying", task_executors - killed, *killed)?;
    for process in [&mut living, &mut dying] {
        let counts = process.ready(LONG)?;
        ensure!(counts.get("lost") == Some(&Value::from(0)), "not all have registered: {counts}");
    }
    report.median(row("registered"), "s", &[storm.elapsed().as_secs_f64()])?;

    // The first two requests of each are not spread yet.
    pass(*interval * 2, "the requests are spread")?;
    let (begun, before) = (Patience::endless(), cluster.process(Role::ResourceManager)?.usage()?);
    pass(*window, "the measurement")?;
    let (took, after) = (begun.elapsed(), cluster.process(Role::ResourceManager)?.usage()?);
    let share = 100.0 * (after.cpu - before.cpu).as_secs_f64() / took.as_secs_f64();
    report.median(row("cpu"), "% of a core", &[share])?;
    let beats = f64::from(*task_executors) * took.as_secs_f64() / interval.as_secs_f64();
    let each = (after.cpu - before.cpu).as_secs_f64() * 1e6 / beats;
    report.median(row("cpu-each"), "us/heartbeat", &[each])?;
    report.median(row("memory"), "MB", &[after.resident as f64 / 1e6])?;
    report.median(
        row("memory-each"),
        "kB/target",
        &[after.resident as f64 / 1e3 / f64::from(*task_executors)],
    )?;
    let wrong = f64::from(given_up.look()?);
    let none = Some(Target::AtMost(0.0));
    report.compared(&row("false-verdicts"), ("", Better::Lower), &[wrong], None, none)?;

    let killing = Patience::of(*timeout * 2 + LONG);
    dying.kill()?;
    let all = given_up.count + killed;
    let mut first = None;
    killing.until("the killed are reported", || {
        let count = given_up.look()?;
        if count > all - killed {
            first.get_or_insert(killing.elapsed());
        }
        Ok(Look::of((count >= all).then_some(()), || format!("{count} of {all}")))
    })?;
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    report.median(row("killed-first"), "ms", &[first.map_or(f64::NAN, millis)])?;
    report.median(row("killed-all"), "ms", &[millis(killing.elapsed())])?;

    // Nobody else follows them.
    pass(*timeout, "the living live on")?;
    let wrong = f64::from(given_up.look()? - all);
    report.compared(&row("false-verdicts-after"), ("", Better::Lower), &[wrong], None, none)?;
    let counts = last_counts(living)?;
    ensure!(counts.get("lost") == Some(&Value::from(0)), "some were given up: {counts}");
    Ok(())
}

/// What the process said last.
fn last_counts(mut process: Process) -> anyhow::Result<Value> {
    process.kill()?;
    let said = process.rest_of_stdout();
    let last = said.lines().last().context("the fleet has said nothing")?;
    serde_json::from_str(last).with_context(|| format!("the fleet said: {last}"))
}

/// Lets time pass.
fn pass(time: Duration, what: &str) -> anyhow::Result<()> {
    let time = Patience::of(time);
    time.until(what, || Ok(Look::of(time.left().is_zero().then_some(()), || "time passes".into())))
}
