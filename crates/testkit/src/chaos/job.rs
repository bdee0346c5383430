//! The job of a run: flights in keyed order into one file, each asked for at the service.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;

use super::{Options, output};
use crate::flights;
use crate::join::{self, Joined};
use crate::processes::ProcessCluster;

/// Flights a second: enough that something is in flight always, few enough for a machine that does other work.
const RATE: u64 = 1_500;
/// Elements in the operator of one subtask.
pub(super) const CAPACITY: u64 = 500;
/// Subtasks of the step.
pub(super) const PARALLELISM: u64 = 2;
/// How often the step may ask again for one flight.
const RETRIES: u32 = 50;

/// A job file and what it has to write.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) expected: Joined,
    pub(super) rate: u64,
    pub(super) sink: PathBuf,
    pub(super) checkpoints: PathBuf,
    file: PathBuf,
}

impl Job {
    /// Chooses as many flights as are read in the time, and writes them and the job file.
    pub(super) fn prepare(options: &Options, service: &str) -> anyhow::Result<Self> {
        let from = if options.flights.is_file() { options.flights.clone() } else { flights::sample() };
        let seconds = options.length.as_secs().max(1);
        // Without checkpoints the whole of it is read again after the last fault.
        let seconds = if options.checkpoints { seconds } else { seconds.div_ceil(2) };
        let mut lines = flights::lines(&from)?;
        lines.truncate(usize::try_from(seconds * RATE)?);
        let rate = (lines.len() as u64).div_ceil(seconds);
        let input = options.folder.join("flights.jsonl");
        let mut text = lines.join(&b'\n');
        text.push(b'\n');
        fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        let expected = join::flights_with_planes(&input, &flights::planes())?;
        fs::create_dir_all(output(&options.folder))?;
        let job = Self {
            expected,
            rate,
            sink: output(&options.folder).join("flights.jsonl"),
            checkpoints: options.folder.join("checkpoints"),
            file: options.folder.join("job.yaml"),
        };
        let checkpoints = format!(
            "checkpoints: {{interval: 500ms, timeout: 10s, dir: {}}}\n",
            Value::from(format!("file://{}", job.checkpoints.display()))
        );
        let text = format!(
            "name: chaos\nparallelism: {PARALLELISM}\n{checkpoints}\
             restart: {{strategy: fixed-delay, attempts: 1000000, delay: 200ms}}\n\
             source: {{file: {{path: {input}, max_rate: {rate}}}}}\n\
             steps:\n  - enrich:\n      name: plane\n      order: keyed\n      key: tailnum\n      capacity: {CAPACITY}\n      \
             timeout: 5m\n      attempt_timeout: 2s\n      \
             retry: {{strategy: exponential-delay, max_retries: {RETRIES}, initial: 20ms, max: 1s}}\n      into: plane\n      \
             call:\n        http: {{url: \"http://{service}/{{tailnum}}\"}}\n\
             sink: {{file: {{path: {sink}}}, parallelism: 1}}\n",
            checkpoints = if options.checkpoints { checkpoints.as_str() } else { "" },
            input = Value::from(input.to_string_lossy()),
            sink = Value::from(job.sink.to_string_lossy()),
        );
        fs::write(&job.file, text).with_context(|| format!("cannot write {}", job.file.display()))?;
        Ok(job)
    }

    /// Submits it and returns its id.
    pub(super) fn submit(&self, cluster: &ProcessCluster) -> anyhow::Result<String> {
        let args = ["run", &self.file.to_string_lossy(), "--detach", "--json"];
        let submitted = cluster.command_line()?.run(&args)?.expect_status(0)?.json()?;
        let id = submitted.get("job_id").and_then(Value::as_str);
        Ok(id.with_context(|| format!("no job id: {submitted}"))?.to_owned())
    }
}

/// The key of a line.
pub(super) fn tailnum(line: &[u8]) -> Option<String> {
    let record: Value = serde_json::from_slice(line).ok()?;
    record.get("tailnum")?.as_str().map(str::to_owned)
}
