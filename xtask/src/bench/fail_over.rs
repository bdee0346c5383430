//! From a fault to records that flow again at the sink, and how often the job was restarted for it.
//!
//! Records flow again when a file of an attempt that is newer than the fault has bytes: the sink writes 256 KiB at a time,
//! which at this rate is some 25 ms of records.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::flights;
use testkit::patience::{Look, Patience};
use testkit::processes::{Binaries, ProcessCluster, Role, Signal};

use super::report::{Better, Report, Target};

/// Records a second of the job.
const RATE: u64 = 20_000;
/// Copies of the sample: more than a run reads.
const COPIES: usize = 60;
/// Longer than anything but a default timeout.
const LONG: Duration = Duration::from_secs(60);
/// So long nothing may happen once records flow: a second restart would show.
const QUIET: Duration = Duration::from_secs(1);

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// `kill -9` of a task executor that runs tasks.
    Kill,
    /// It stands still until the job runs elsewhere.
    Stop,
    /// `kill -9` of the job master, which is started again at once. Counted from the moment at which it is ready.
    JobMaster,
}

/// A row of the report.
struct Scene {
    name: &'static str,
    fault: Fault,
    /// Interval and timeout; the defaults where there is none.
    heartbeat: Option<(Duration, Duration)>,
    /// Whether tasks exchange records.
    exchange: bool,
    /// Seconds.
    target: f64,
}

const SHORT: Option<(Duration, Duration)> = Some((Duration::from_millis(500), Duration::from_secs(2)));

const SCENES: [Scene; 6] = [
    Scene {
        name: "kill/heartbeat=500ms/alone",
        fault: Fault::Kill,
        heartbeat: SHORT,
        exchange: false,
        target: 0.3,
    },
    Scene {
        name: "kill/heartbeat=500ms/exchange",
        fault: Fault::Kill,
        heartbeat: SHORT,
        exchange: true,
        target: 0.3,
    },
    Scene {
        name: "kill/heartbeat=default/alone",
        fault: Fault::Kill,
        heartbeat: None,
        exchange: false,
        target: 1.0,
    },
    Scene {
        name: "kill/heartbeat=default/exchange",
        fault: Fault::Kill,
        heartbeat: None,
        exchange: true,
        target: 1.0,
    },
    Scene {
        name: "stop/heartbeat=500ms/exchange",
        fault: Fault::Stop,
        heartbeat: SHORT,
        exchange: true,
        target: 2.2,
    },
    Scene {
        name: "jobmaster/heartbeat=500ms/exchange",
        fault: Fault::JobMaster,
        heartbeat: SHORT,
        exchange: true,
        target: 2.0,
    },
];

/// Measures every scene whose name contains `only`.
///
/// # Errors
/// A job does not come back, or its restarts are not one.
pub(super) fn measure(
    binaries: &Binaries,
    folder: &Path,
    runs: usize,
    only: Option<&str>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let input = folder.join("fail-over.jsonl");
    let mut text = flights::lines(&flights::sample())?.join(&b'\n');
    text.push(b'\n');
    fs::write(&input, text.repeat(COPIES)).with_context(|| format!("cannot write {}", input.display()))?;
    for scene in SCENES.iter().filter(|scene| only.is_none_or(|only| scene.name.contains(only))) {
        let name = format!("cluster/fail-over/{}", scene.name);
        let (mut seconds, mut restarts) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let folder = folder.join(scene.name.replace('/', "-")).join(run.to_string());
            let (took, restarted) =
                scene.run(binaries, &folder, &input).with_context(|| format!("{name}, run {run}"))?;
            eprintln!("{name}: {:.3} s, {restarted} restarts", took.as_secs_f64());
            seconds.push(took.as_secs_f64());
            restarts.push(restarted as f64);
            crate::programs::remove(&folder)?;
        }
        let target = Some(Target::AtMost(scene.target));
        report.compared(&name, ("s", Better::Lower), &seconds, None, target)?;
        // All of them, not the half: the worst run says whether there was exactly one.
        let most = restarts.iter().copied().fold(0.0, f64::max);
        report.compared(
            &format!("{name}/restarts-at-most"),
            ("restarts", Better::Lower),
            &[most],
            None,
            Some(Target::AtMost(1.0)),
        )?;
    }
    Ok(())
}

impl Scene {
    /// From the fault until records flow, and how often the job was restarted.
    fn run(&self, binaries: &Binaries, folder: &Path, input: &Path) -> anyhow::Result<(Duration, u64)> {
        let builder = ProcessCluster::builder().binaries(binaries.clone()).folder(folder);
        let mut builder = builder.task_executors(3).slots(2);
        if let Some((interval, timeout)) = self.heartbeat {
            builder = builder.heartbeat(interval, timeout);
        }
        let mut cluster = builder.start()?;
        cluster.await_free_slots(6, LONG)?;
        let sink = folder.join("out");
        let job = folder.join("job.yaml");
        fs::write(&job, self.job_file(input, folder))?;
        let submitted =
            cluster.command_line()?.run(&["run", &job.to_string_lossy(), "--detach", "--json"])?;
        let submitted = submitted.expect_status(0)?.json()?;
        let id = submitted.get("job_id").and_then(Value::as_str).context("no job id")?.to_owned();
        Patience::of(LONG).until("records at the sink", || flowing(&sink, (0, 0)))?;
        let completed = |detail: &Value| {
            detail.pointer("/result/checkpoints").and_then(Value::as_u64).is_some_and(|n| n > 1)
        };
        let detail = cluster.await_answer(&format!("/jobs/{id}"), LONG, completed)?;

        let before = newest(&sink)?;
        let begun = Patience::endless();
        match self.fault {
            Fault::Kill => cluster.kill(worker(&detail)?)?,
            Fault::Stop => cluster.process(worker(&detail)?)?.signal(Signal::Stop)?,
            Fault::JobMaster => {
                cluster.kill(Role::JobMaster)?;
                cluster.start(Role::JobMaster)?;
            }
        }
        let begun = if self.fault == Fault::JobMaster { Patience::endless() } else { begun };
        Patience::of(LONG).until("records at the sink again", || flowing(&sink, before))?;
        let took = begun.elapsed();
        Patience::of(QUIET).pass();
        let detail = cluster.get(&format!("/jobs/{id}"))?;
        ensure!(
            detail.get("state").and_then(Value::as_str) == Some("RUNNING"),
            "the job does not run: {detail}"
        );
        let restarts = detail.pointer("/result/restarts").and_then(Value::as_u64).context("no restarts")?;
        if restarts > 1 {
            eprintln!("  more than one restart: {}", why(&cluster.get(&format!("/jobs/{id}/exceptions"))?));
        }
        cluster.stop_all()?;
        Ok((took, restarts))
    }

    fn job_file(&self, input: &Path, folder: &Path) -> String {
        let text = |path: &Path| Value::from(path.to_string_lossy()).to_string();
        let (order, sink) =
            if self.exchange { ("keyed", "out/flights.jsonl") } else { ("unordered", "out/") };
        format!(
            "name: fail-over\nparallelism: 2\ncheckpoints: {{interval: 500ms, dir: {checkpoints}}}\n\
             restart: {{strategy: fixed-delay, attempts: 1000000, delay: 0s}}\n\
             source: {{file: {{path: {input}, max_rate: {RATE}}}}}\n\
             steps:\n  - enrich:\n      name: plane\n      order: {order}\n      key: tailnum\n      into: plane\n      \
             call: {{table: {{file: {planes}, key: tailnum, by: tailnum}}}}\n\
             sink: {{file: {{path: {sink}}}}}\n",
            checkpoints = Value::from(format!("file://{}/checkpoints", folder.display())),
            input = text(input),
            planes = text(&flights::planes()),
            sink = Value::from(folder.join(sink).to_string_lossy() + if self.exchange { "" } else { "/" }),
        )
    }
}

/// The failures that the job remembers.
fn why(exceptions: &Value) -> String {
    let entries = exceptions.pointer("/exceptionHistory/entries").and_then(Value::as_array);
    let texts =
        entries.into_iter().flatten().map(|entry| entry.get("stacktrace").unwrap_or(entry).to_string());
    texts.collect::<Vec<_>>().join("; ")
}

/// A task executor that runs a task of the job, the last one.
fn worker(detail: &Value) -> anyhow::Result<Role> {
    let vertices = detail.get("vertices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let subtasks =
        vertices.iter().filter_map(|vertex| vertex.get("subtasks").and_then(Value::as_array)).flatten();
    let running = subtasks.filter(|subtask| subtask.get("status").and_then(Value::as_str) == Some("RUNNING"));
    let names = running.filter_map(|subtask| subtask.get("taskmanager-id")?.as_str()?.strip_prefix("te-"));
    let last = names.filter_map(|number| number.parse().ok()).max();
    last.map(Role::TaskExecutor).with_context(|| format!("nothing runs: {detail}"))
}

/// Found, when an attempt that is newer has written something.
fn flowing(sink: &Path, than: (u64, u64)) -> anyhow::Result<Look<()>> {
    let files = attempts(sink)?;
    let newer = files.iter().any(|(attempt, length)| *attempt > than && *length > 0);
    Ok(if newer { Look::Found(()) } else { Look::NotYet(format!("{files:?}")) })
}

/// The newest attempt of which there is a file.
fn newest(sink: &Path) -> anyhow::Result<(u64, u64)> {
    Ok(attempts(sink)?.into_iter().map(|(attempt, _)| attempt).max().unwrap_or_default())
}

/// Term and number of the attempts that have files, and the lengths of these.
fn attempts(sink: &Path) -> anyhow::Result<Vec<((u64, u64), u64)>> {
    let entries = match fs::read_dir(sink) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let files = entries.filter_map(|entry| {
        let path: PathBuf = entry.ok()?.path();
        let attempt = attempt_in(path.file_name()?.to_str()?)?;
        // It may have been renamed since.
        Some((attempt, fs::metadata(&path).ok()?.len()))
    });
    Ok(files.collect())
}

/// Term and number in the name of an unfinished file: `.STEM.JOB-TERM-vVERTEX-SUBTASK-ATTEMPT`, and what comes behind.
fn attempt_in(name: &str) -> Option<(u64, u64)> {
    let name = name.strip_prefix('.')?;
    let parts: Vec<&str> = name.rsplit('.').find(|part| part.contains("-v"))?.split('-').collect();
    let vertex = parts.iter().position(|part| {
        part.strip_prefix('v')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })?;
    let number = |place: usize| parts.get(place)?.parse().ok();
    Some((number(vertex.checked_sub(1)?)?, number(vertex + 2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_found_in_the_name_of_its_file() {
        let job = "0123456789abcdef0123456789abcdef";
        for (name, attempt) in [
            (format!(".flights.jsonl.{job}-77-v1-0-3"), Some((77, 3))),
            (format!(".part-0.jsonl.{job}-77-v12-1-0.chk-4"), Some((77, 0))),
            (format!(".part.{job}-77-v12-1-2-9"), Some((77, 2))),
            ("flights.jsonl".to_owned(), None),
            (".tidegate-probe-7".to_owned(), None),
        ] {
            assert_eq!(attempt_in(&name), attempt, "{name}");
        }
    }
}
