//! `tidegate savepoint`, and what it shares with `tidegate stop`: waiting for a savepoint.

use clap::Args;
use runtime_core::JobId;
use serde_json::json;

use super::job_id;
use crate::client::{ClientError, JobMasterClient, SavepointOperation};
use crate::failure::Failure;
use crate::output::Output;
use crate::patience::Pauses;
use crate::waiting::of_job;

/// Save a job's state and positions; the job runs on
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tidegate savepoint 3f1c8d0e9a7b46529d1e0c2b7a615f48 /var/lib/tidegate/savepoints")]
pub(super) struct Savepoint {
    /// The job's id, 32 hexadecimal digits
    #[arg(value_name = "ID")]
    job: String,

    /// The folder to save below; without it, where the cluster keeps its savepoints
    #[arg(value_name = "DIR")]
    dir: Option<String>,
}

impl Savepoint {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let job = job_id(&self.job)?;
        let dir = self.dir.as_deref().map(absolute).transpose()?;
        let asked = client.savepoint(job, dir.as_deref()).await;
        finish(client, job, asked, output).await
    }
}

/// A folder as the job master is to find it; URLs stay as they are.
pub(super) fn absolute(dir: &str) -> Result<String, Failure> {
    if dir.contains("://") {
        return Ok(dir.to_owned());
    }
    let path = std::path::absolute(dir)
        .map_err(|cause| Failure::System { what: "the savepoint's folder is no path", cause })?;
    Ok(path.to_string_lossy().into_owned())
}

/// Waits for the savepoint that was asked for, and prints where it lies.
pub(super) async fn finish(
    client: &JobMasterClient,
    job: JobId,
    asked: Result<String, ClientError>,
    output: Output,
) -> Result<(), Failure> {
    let request = match asked {
        Ok(request) => request,
        // Of a job that is there, "not found" means the path.
        Err(ClientError::NotFound { url, .. } | ClientError::MethodNotAllowed { url, .. }) => {
            client.result(job).await.map_err(|error| of_job(error, job))?;
            return Err(Failure::NoSavepoints { job, url });
        }
        Err(error) => return Err(error.into()),
    };
    let mut pauses = Pauses::of_polling();
    let operation = loop {
        let status = client.savepoint_status(job, &request).await?;
        if status.status.is_completed() {
            break status.operation;
        }
        tokio::time::sleep(pauses.next()).await;
    };
    let failed = |cause: String| Failure::SavepointFailed { job, cause };
    match operation {
        Some(SavepointOperation { location: Some(location), .. }) if output.json => {
            output.document(&json!({ "job_id": job.to_string(), "savepoint": location }))
        }
        Some(SavepointOperation { location: Some(location), .. }) => output.text(&location),
        Some(SavepointOperation { failure_cause: Some(cause), .. }) => {
            // Flink wraps the text; a plain one is understood as well.
            let text = cause.get("stack-trace").or(Some(&cause)).and_then(|text| text.as_str());
            Err(failed(text.map_or_else(|| cause.to_string(), str::to_owned)))
        }
        _ => Err(failed("the job master does not say why".to_owned())),
    }
}
