//! `tidegate show`

use clap::Args;

use super::job_id;
use crate::client::{Checkpoint, JobDetail, JobFailure, JobMasterClient, JobResult, Subtask, Vertex};
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{Align, Table, date_time, duration, grouped, pairs, size};
use crate::waiting::of_job;

/// Show one job in detail, with the figures of its operators
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate show 3f1c8d0e9a7b46529d1e0c2b7a615f48
  tidegate show 3f1c8d0e9a7b46529d1e0c2b7a615f48 --json")]
pub(super) struct Show {
    /// The job's id, 32 hexadecimal digits
    #[arg(value_name = "ID")]
    job: String,
}

impl Show {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let job = job_id(&self.job)?;
        let document = client.job(job).await.map_err(|error| of_job(error, job))?;
        if output.json {
            return output.document(&document);
        }
        output.text(&page(&client.read(&document)?))
    }
}

/// A job as people read it.
pub(super) fn page(job: &JobDetail) -> String {
    let mut text = head(job);
    if !job.vertices.is_empty() {
        text.push('\n');
        text.push_str(&chains(&job.vertices));
        text.push('\n');
        text.push_str(&subtasks(&job.vertices));
        if let Some(steps) = steps(&job.vertices) {
            text.push('\n');
            text.push_str(&steps);
        }
    }
    for more in [checkpoints(&job.checkpoints.history), failures(&job.failures)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&more);
    }
    text
}

fn head(job: &JobDetail) -> String {
    let mut lines = vec![
        ("job", job.jid.clone()),
        ("name", job.name.clone()),
        ("state", job.state.clone()),
        ("started", date_time(job.start_time)),
        ("ended", date_time(job.end_time)),
    ];
    lines.extend(figures(&job.result));
    pairs(&lines)
}

/// What a job has come to so far, line by line.
pub(super) fn figures(result: &JobResult) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("duration", duration(result.duration_ms)),
        ("records in", grouped(result.records_in)),
        ("records out", grouped(result.records_out)),
        ("filtered", grouped(result.filtered)),
        ("dropped", grouped(result.dropped)),
        ("dead letters", grouped(result.dead_letters)),
        ("empty", grouped(result.empty)),
        ("calls", grouped(result.calls)),
        ("retries", grouped(result.retries)),
        ("timeouts", grouped(result.timeouts)),
        ("restarts", grouped(result.restarts)),
        ("checkpoints", grouped(result.checkpoints)),
    ];
    lines.extend(result.failure.clone().map(|failure| ("failure", failure)));
    lines
}

fn chains(vertices: &[Vertex]) -> String {
    let mut table = Table::new([
        ("CHAIN", Align::Left),
        ("STATE", Align::Left),
        ("PARALLELISM", Align::Right),
        ("RECORDS IN", Align::Right),
        ("RECORDS OUT", Align::Right),
        ("BYTES IN", Align::Right),
        ("BYTES OUT", Align::Right),
        ("BUSY", Align::Right),
        ("BLOCKED", Align::Right),
        ("IDLE", Align::Right),
    ]);
    for vertex in vertices {
        let metrics = &vertex.metrics;
        table.row([
            vertex.name.clone(),
            vertex.status.clone(),
            vertex.parallelism.to_string(),
            grouped(metrics.read_records),
            grouped(metrics.write_records),
            size(metrics.read_bytes),
            size(metrics.write_bytes),
            duration(metrics.accumulated_busy_time),
            duration(metrics.accumulated_backpressured_time),
            duration(metrics.accumulated_idle_time),
        ]);
    }
    table.render()
}

fn each_subtask(vertices: &[Vertex]) -> impl Iterator<Item = (&Vertex, &Subtask)> {
    vertices.iter().flat_map(|vertex| vertex.subtasks.iter().map(move |subtask| (vertex, subtask)))
}

fn subtasks(vertices: &[Vertex]) -> String {
    let mut table = Table::new([
        ("SUBTASK OF", Align::Left),
        ("", Align::Right),
        ("STATE", Align::Left),
        ("ATTEMPT", Align::Right),
        ("TASK EXECUTOR", Align::Left),
        ("WATERMARK", Align::Left),
    ]);
    for (vertex, subtask) in each_subtask(vertices) {
        table.row([
            vertex.name.clone(),
            subtask.subtask.to_string(),
            subtask.status.clone(),
            subtask.attempt.to_string(),
            subtask.taskmanager_id.clone().unwrap_or_else(|| "-".to_owned()),
            subtask.watermark.map_or_else(|| "-".to_owned(), watermark),
        ]);
    }
    table.render()
}

fn watermark(millis: i64) -> String {
    // The last one of a stream says that nothing will follow.
    if millis == i64::MAX { "end".to_owned() } else { date_time(millis) }
}

/// The asynchronous steps; absent where the job has none or none runs yet.
fn steps(vertices: &[Vertex]) -> Option<String> {
    let mut table = Table::new([
        ("STEP", Align::Left),
        ("SUBTASK", Align::Right),
        ("IN FLIGHT", Align::Right),
        ("CAPACITY", Align::Right),
        ("WAITING", Align::Right),
        ("OLDEST", Align::Right),
        ("CALLS", Align::Right),
        ("RETRIES", Align::Right),
        ("TIMEOUTS", Align::Right),
        ("FAILURES", Align::Right),
        ("EMPTY", Align::Right),
    ]);
    for (_, subtask) in each_subtask(vertices) {
        for step in &subtask.steps {
            table.row([
                step.name.clone(),
                subtask.subtask.to_string(),
                grouped(step.in_flight),
                grouped(step.capacity),
                grouped(step.completed_waiting),
                duration(step.oldest_in_flight_ms),
                grouped(step.calls),
                grouped(step.retries),
                grouped(step.timeouts),
                grouped(step.failures),
                grouped(step.empty),
            ]);
        }
    }
    (!table.is_empty()).then(|| table.render())
}

/// The last checkpoints, newest first; absent where there are none.
fn checkpoints(history: &[Checkpoint]) -> Option<String> {
    let mut table = Table::new([
        ("CHECKPOINT", Align::Right),
        ("STATE", Align::Left),
        ("BEGUN", Align::Left),
        ("DURATION", Align::Right),
        ("SIZE", Align::Right),
        ("ACKNOWLEDGED", Align::Right),
        ("", Align::Left),
    ]);
    for checkpoint in history {
        table.row([
            checkpoint.id.to_string(),
            checkpoint.status.clone(),
            date_time(checkpoint.trigger_timestamp),
            duration(checkpoint.end_to_end_duration),
            size(checkpoint.state_size),
            format!("{}/{}", checkpoint.num_acknowledged_subtasks, checkpoint.num_subtasks),
            checkpoint.failure_message.clone().unwrap_or_default(),
        ]);
    }
    (!table.is_empty()).then(|| table.render())
}

/// The last failures, newest first; absent where there are none.
fn failures(failures: &[JobFailure]) -> Option<String> {
    let mut table = Table::new([("FAILED AT", Align::Left), ("CAUSE", Align::Left)]);
    for failure in failures {
        table.row([date_time(failure.timestamp), failure.stacktrace.clone()]);
    }
    (!table.is_empty()).then(|| table.render())
}
