//! `tidegate run`

use clap::Args;
use runtime_core::JobId;
use runtime_core::time::{Clock as _, TokioClock};
use serde_json::json;

use super::{savepoint, show};
use crate::client::{ClientError, JobMasterClient, JobResult};
use crate::failure::Failure;
use crate::interrupt::{Interrupts, Wish};
use crate::job_file::JobFileArgs;
use crate::output::{Output, note};
use crate::patience::{Patience, RIDE_OUT};
use crate::progress::Progress;
use crate::text::pairs;
use crate::waiting::{Waiting, of_job, ride_out};

/// Run a job on the cluster and wait for its end
///
/// Connections that are refused and a job master that is just starting are waited for, for 60 seconds. Ctrl-C asks
/// whether to cancel the job or to leave it; without a terminal the job is left.
#[derive(Debug, Args)]
#[command(after_help = "\
The exit status is 0 when the job is FINISHED, 2 when the job file is refused, 1 otherwise.

Examples:
  tidegate run job.yaml
  tidegate run job.yaml --set parallelism=4 --set steps.customer.capacity=500
  tidegate run job.yaml --detach --json")]
pub(super) struct Run {
    #[command(flatten)]
    job: JobFileArgs,

    /// Do not wait: print the job's id once the job master has it
    #[arg(long)]
    detach: bool,

    /// Begin where a savepoint of the job ends
    #[arg(long, value_name = "PATH")]
    from_savepoint: Option<String>,
}

impl Run {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let file = self.job.load()?;
        let text = file.to_json();
        let savepoint = self.from_savepoint.as_deref().map(savepoint::absolute).transpose()?;
        let drawn = entrypoint::entropy::draw()
            .map_err(|cause| Failure::System { what: "no id can be drawn for the job", cause })?;
        let job = JobId::from_u128(drawn);
        let mut interrupts = Interrupts::watch()?;
        tokio::select! {
            biased;
            _ = interrupts.next() => return Err(Failure::Unconfirmed { job, url: client.url().clone() }),
            submitted = submit(client, job, &text, savepoint.as_deref()) => submitted?,
        }
        if self.detach {
            let id = job.to_string();
            return if output.json { output.document(&json!({ "job_id": id })) } else { output.text(&id) };
        }
        note(&format!("job {job} ({}) is submitted", file.name().unwrap_or("without a name")));
        conclude(wait(client, job, &mut interrupts).await?, output)
    }
}

/// Prints the result of a job; a failure unless it has come to its good end.
pub(super) fn conclude(result: JobResult, output: Output) -> Result<(), Failure> {
    if output.json {
        output.document(&result)?;
    } else {
        output.text(&summary(&result))?;
    }
    if result.is_finished() {
        return Ok(());
    }
    Err(Failure::Ended {
        job: result.job_id,
        name: result.name,
        state: result.state,
        failure: result.failure,
    })
}

/// Submits until the job master has answered. A request whose answer was lost is repeated: the id makes it the same job.
async fn submit(
    client: &JobMasterClient,
    job: JobId,
    file: &str,
    savepoint: Option<&str>,
) -> Result<(), Failure> {
    let clock = TokioClock::start();
    let mut patience = Patience::new(RIDE_OUT);
    loop {
        match client.submit(job, file, savepoint).await {
            Ok(()) => return Ok(()),
            Err(ClientError::Refused { errors }) => return Err(Failure::JobRefused(errors)),
            Err(error) => match ride_out(&mut patience, &error, clock.now()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error.into()),
            },
        }
    }
}

/// Waits for the job's end, unless whoever waits wants something else.
async fn wait(
    client: &JobMasterClient,
    job: JobId,
    interrupts: &mut Interrupts,
) -> Result<JobResult, Failure> {
    let mut waiting = Waiting::new(client, job, Progress::on_terminal());
    loop {
        let interrupt = tokio::select! {
            biased;
            interrupt = interrupts.next() => interrupt,
            ended = waiting.end() => return ended,
        };
        waiting.clear();
        match interrupts.wish(interrupt).await {
            Wish::Leave => return Err(Failure::Left { job }),
            Wish::Wait => {}
            Wish::Cancel => match client.cancel(job).await {
                // One that has ended already is seen by the next look.
                Ok(()) | Err(ClientError::Conflict { .. }) => {}
                Err(error) => return Err(of_job(error, job)),
            },
        }
        waiting = Waiting::new(client, job, Progress::on_terminal());
    }
}

fn summary(result: &JobResult) -> String {
    let mut lines =
        vec![("job", result.job_id.clone()), ("name", result.name.clone()), ("state", result.state.clone())];
    lines.extend(show::figures(result));
    pairs(&lines)
}
