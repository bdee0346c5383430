//! `tidegate cancel`

use clap::Args;

use super::{job_id, show};
use crate::client::{ClientError, JobMasterClient};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::waiting::{Waiting, of_job};

/// Cancel a job and wait until it has ended
///
/// Without checkpoints a cancelled job leaves no output behind.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tidegate cancel 3f1c8d0e9a7b46529d1e0c2b7a615f48")]
pub(super) struct Cancel {
    /// The job's id, 32 hexadecimal digits
    #[arg(value_name = "ID")]
    job: String,
}

impl Cancel {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let job = job_id(&self.job)?;
        match client.cancel(job).await {
            Ok(()) => {}
            Err(ClientError::Conflict { .. }) => {
                let state =
                    client.result(job).await?.map_or_else(|| "over".to_owned(), |result| result.state);
                return Err(Failure::EndedAlready { job, state });
            }
            Err(error) => return Err(of_job(error, job)),
        }
        let result = Waiting::new(client, job, Progress::hidden()).end().await?;
        let document = client.job(job).await.map_err(|error| of_job(error, job))?;
        if output.json {
            output.document(&document)?;
        } else {
            output.text(&show::page(&client.read(&document)?))?;
        }
        // It may have come to its own end first.
        if result.state == "CANCELED" {
            Ok(())
        } else {
            Err(Failure::EndedAlready { job, state: result.state })
        }
    }
}
