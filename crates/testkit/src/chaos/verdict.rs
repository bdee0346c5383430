//! Whether a run was right, and left nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::job::{self, Job};
use super::{LONG, Options, deeds};
use crate::flights;
use crate::join;
use crate::patience::{Look, Patience};
use crate::processes::{ProcessCluster, Role};

/// Files that a server may have open beyond those at its start: connections of peers that went and came.
const FILES: usize = 24;
/// Idle connections to a service are closed after 50 s.
const IDLE: Duration = Duration::from_secs(90);

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The job's final figures.
    pub result: Value,
    /// What was done, with the moments.
    pub faults: Vec<(Duration, String)>,
    /// From the first record to the end.
    pub took: Duration,
}

impl Outcome {
    /// A figure of the job.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        self.result.get(name).and_then(Value::as_u64).unwrap_or(u64::MAX)
    }

    /// The output is the join, and the figures are those of the input.
    pub(super) fn check(&self, job: &Job) -> anyhow::Result<()> {
        let state = self.result.get("state").and_then(Value::as_str);
        ensure!(state == Some("FINISHED"), "the job is not FINISHED: {}", self.result);
        let lines = flights::lines(&job.sink)?;
        join::same_per_key(&job.expected.lines, &lines, job::tailnum).context("the output is wrong")?;
        let records = job.expected.lines.len() as u64;
        for (name, wanted) in [
            ("records_in", records),
            ("records_out", records),
            ("filtered", 0),
            ("dropped", 0),
            ("dead_letters", 0),
        ] {
            ensure!(self.figure(name) == wanted, "{name} is not {wanted}: {}", self.result);
        }
        Ok(())
    }

    /// The calls are explained: those that the job has counted, which lack what a killed process had not told, and those
    /// that the service has answered, which lack what was given up.
    pub(super) fn check_calls(&self, answered: u64, job: &Job, options: &Options) -> anyhow::Result<()> {
        let (least, most) = (job.expected.called(), self.most_calls(job, options));
        for (who, calls) in
            [("the job has counted", self.figure("calls")), ("the service has answered", answered)]
        {
            ensure!(calls <= most, "{who} {calls} calls, and at most {most} are explained: {}", self.result);
        }
        ensure!(answered >= least, "{answered} calls were answered, and {least} are needed: {}", self.result);
        Ok(())
    }

    /// The calls that records, retries and restarts explain. A restart repeats what was read since the last completed
    /// checkpoint, at most, and what was in flight then.
    fn most_calls(&self, job: &Job, options: &Options) -> u64 {
        let once = job.expected.called();
        let repeated = if options.checkpoints {
            // From a checkpoint to the moment when everything stands: an interval, a checkpoint that did not complete, and
            // the longest time in which a fault goes unnoticed.
            let unsaved = Duration::from_secs(10).as_secs() * job.rate;
            (unsaved + job::CAPACITY * job::PARALLELISM).min(once)
        } else {
            once
        };
        once + self.figure("retries") + self.figure("restarts").saturating_mul(repeated)
    }
}

/// Nothing unfinished lies beside the output, nor in the checkpoint store.
pub(super) fn nothing_is_left(job: &Job) -> anyhow::Result<()> {
    let folder = job.sink.parent().context("the output has no folder")?;
    let found = join::parts(folder)?;
    ensure!(found == [job.sink.clone()], "beside the output there is something: {found:?}");
    let mut left = Vec::new();
    hidden(&job.checkpoints, &mut left);
    ensure!(left.is_empty(), "unfinished objects are left in the checkpoint store: {left:?}");
    Ok(())
}

fn hidden(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with('.') {
            found.push(entry.path().display().to_string());
        } else if entry.path().is_dir() {
            hidden(&entry.path(), found);
        }
    }
}

/// No server has gathered open files, once the connections to the service have been idle for long enough to be closed.
pub(super) fn files_are_bounded(
    before: &[(Role, usize)],
    mut after: impl FnMut() -> anyhow::Result<Vec<(Role, usize)>>,
) -> anyhow::Result<()> {
    let bounded = || {
        let after = after()?;
        let more = before.iter().zip(&after).find(|((_, before), (_, after))| *after > before + FILES);
        Ok(match more {
            None => Look::Found(()),
            Some(((role, before), (_, after))) => {
                Look::NotYet(format!("{role} has {after} files open, {before} at its start"))
            }
        })
    };
    Patience::of(IDLE).until("no more files than at the start", bounded)
}

/// A job master that is started again knows the job's result, and that it does not run.
pub(super) fn is_remembered(cluster: &mut ProcessCluster, id: &str, result: &Value) -> anyhow::Result<()> {
    cluster.stop(Role::JobMaster)?;
    cluster.start(Role::JobMaster)?;
    let overview = cluster.await_answer("/jobs/overview", LONG, |_| true)?;
    let jobs = overview.get("jobs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let running: Vec<&Value> =
        jobs.iter().filter(|job| job.get("state").and_then(Value::as_str) != Some("FINISHED")).collect();
    ensure!(running.is_empty(), "a job that has ended runs again: {running:?}");
    let again = deeds::ended(cluster, id)?;
    ensure!(again.as_ref() == Some(result), "the result was {result}, and is now {again:?}");
    Ok(())
}

/// No process of the run is left.
pub(super) fn nobody_is_left(folder: &Path) -> anyhow::Result<()> {
    let folder = folder.display().to_string();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let own = entry.file_name().to_string_lossy() == std::process::id().to_string();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !own && String::from_utf8_lossy(&line).contains(&format!("state.dir={folder}/")) {
            bail!("a process is left: {}", String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    Ok(())
}
