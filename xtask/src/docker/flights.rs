//! The flights job on a demo cluster: submitted by the command line in a container, and its output checked here.

use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::patience::{Look, Patience};
use testkit::{flights, http, join};

use super::compose::Compose;
use crate::demo;
use crate::programs;

/// Between a fault and the first checkpoint after it: the heartbeat timeout, a restart and a checkpoint, on a machine that
/// does something else as well.
const FLOWS: Duration = Duration::from_secs(120);
/// The whole sample at the slowest rate, and again what was lost.
const ENDS: Duration = Duration::from_secs(900);

/// A job that runs, and whoever waits for its end.
pub(super) struct Flights {
    command: Child,
}

impl Flights {
    /// Submits it, at this many records a second.
    ///
    /// # Errors
    /// The command line cannot be started.
    pub(super) fn submit(compose: &Compose, rate: u32) -> anyhow::Result<Self> {
        let rate = format!("source.file.max_rate={rate}");
        let command = compose.tidegate(&["run", "/demo/flights.yaml", "--json", "--set", &rate])?;
        Ok(Self { command })
    }

    /// Whether its end has come.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.command.try_wait()?.is_some())
    }

    /// Waits for its end and compares figures and output with a join made here.
    ///
    /// # Errors
    /// It does not end, or ends otherwise, or something differs.
    pub(super) fn check(mut self, compose: &Compose) -> anyhow::Result<Value> {
        Patience::of(ENDS).until("the job ends", || {
            Ok(Look::of(self.has_ended()?.then_some(()), || "it runs".to_owned()))
        })?;
        let output = self.command.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "the job ended with {}: {text}", output.status);
        let result: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        let folder = programs::work_folder("demo-docker")?;
        compose.copy_out("jobmaster", "/shared/out/flights", &folder)?;
        let expected = join::flights_with_planes(&flights::sample(), &flights::planes())?;
        let records = expected.lines.len() as u64;
        for (name, wanted) in [("records_in", records), ("records_out", records), ("dropped", 0)] {
            let found = result.get(name).and_then(Value::as_u64);
            ensure!(found == Some(wanted), "{name} is {found:?}, not {wanted}: {result}");
        }
        let mut lines = Vec::new();
        for part in join::parts(&folder)? {
            lines.extend(flights::lines(&part)?);
        }
        join::same_per_key(&expected.lines, &lines, demo::tailnum).context("the output is wrong")?;
        programs::remove(&folder)?;
        Ok(result)
    }
}

/// Waits until a checkpoint of a running job begins and completes, or the job ends: then all parts work together again.
///
/// # Errors
/// It does not in time, and what was seen last.
pub(super) fn records_flow(compose: &Compose, job: &mut Flights) -> anyhow::Result<()> {
    let mut before = None;
    Patience::of(FLOWS).until("a checkpoint completes", || {
        if job.has_ended()? {
            return Ok(Look::Found(()));
        }
        // Nobody may answer for a while: that is what is waited for.
        let now = match begun_and_completed(compose) {
            Ok(now) => now,
            Err(error) => return Ok(Look::NotYet(format!("{error:#}"))),
        };
        // One that is begun after this look and completes.
        let (begun, completed) = now;
        let since = *before.get_or_insert(begun);
        Ok(Look::of((completed > since).then_some(()), || format!("checkpoint {completed} of {begun}")))
    })
}

/// The latest ids of a checkpoint that was begun, and of one that completed.
fn begun_and_completed(compose: &Compose) -> anyhow::Result<(u64, u64)> {
    let rest = compose.rest()?;
    let jobs = http::get(&rest, "/v1/jobs/overview")?.json()?;
    let jobs = jobs.get("jobs").and_then(Value::as_array).context("no list of jobs")?;
    let running = |job: &&Value| job.get("state").and_then(Value::as_str) == Some("RUNNING");
    let id = jobs.iter().find(running).and_then(|job| job.get("jid")?.as_str()).context("no job runs")?;
    let checkpoints = http::get(&rest, &format!("/v1/jobs/{id}/checkpoints"))?.json()?;
    let history = checkpoints.get("history").and_then(Value::as_array).context("no checkpoints")?;
    let latest = |wanted: &dyn Fn(&str) -> bool| {
        let matching =
            history.iter().filter(|one| one.get("status").and_then(Value::as_str).is_some_and(wanted));
        matching.filter_map(|one| one.get("id")?.as_u64()).max().unwrap_or(0)
    };
    Ok((latest(&|_| true), latest(&|status| status == "COMPLETED")))
}
