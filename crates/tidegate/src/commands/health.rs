//! `tidegate health`

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;

/// Ask a server whether it is well
#[derive(Debug, Args)]
#[command(after_help = "\
The exit status is 0 when it is and 1 otherwise, so that an image without a shell has a health check.

Example:
  tidegate health http://127.0.0.1:9250        metrics.bind of the server")]
pub(super) struct Health {
    /// Where the server's metrics.bind is; the path is /healthz unless there is one
    url: String,
}

impl Health {
    pub(super) fn execute(self, output: Output) -> Result<(), Failure> {
        let checked = entrypoint::telemetry::check(&self.url);
        if output.json {
            let error = checked.as_ref().err().map(ToString::to_string);
            output.document(&json!({ "well": checked.is_ok(), "error": error }))?;
        } else if checked.is_ok() {
            output.text("well")?;
        }
        Ok(checked?)
    }
}
