//! `tidegate stop`

use clap::Args;

use super::job_id;
use super::savepoint::{absolute, finish};
use crate::client::JobMasterClient;
use crate::failure::Failure;
use crate::output::Output;

/// Save a job and end it; its output is committed up to the savepoint
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tidegate stop 3f1c8d0e9a7b46529d1e0c2b7a615f48 --savepoint-dir /var/lib/tidegate/savepoints")]
pub(super) struct Stop {
    /// The job's id, 32 hexadecimal digits
    #[arg(value_name = "ID")]
    job: String,

    /// The folder to save below; without it, where the cluster keeps its savepoints
    #[arg(long, value_name = "DIR")]
    savepoint_dir: Option<String>,

    /// Advance event time to its end first, for a job that is not to be continued
    #[arg(long)]
    drain: bool,
}

impl Stop {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let job = job_id(&self.job)?;
        let dir = self.savepoint_dir.as_deref().map(absolute).transpose()?;
        let asked = client.stop(job, dir.as_deref(), self.drain).await;
        finish(client, job, asked, output).await
    }
}
