//! `tidegate validate`

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::job_file::{JobFileArgs, check_surroundings};
use crate::output::Output;

/// Check a job file, and that its inputs are there and its outputs are not
#[derive(Debug, Args)]
#[command(after_help = "\
Every mistake is a line on stderr that names file, line, column and key; the exit status is then 2.

Examples:
  tidegate validate job.yaml
  tidegate validate job.yaml --set parallelism=4 --json")]
pub(super) struct Validate {
    #[command(flatten)]
    job: JobFileArgs,
}

impl Validate {
    pub(super) fn execute(self, output: Output) -> Result<(), Failure> {
        let checked = self.job.load().and_then(|file| {
            let graph = job::plan::plan(&file)?;
            check_surroundings(&file, &graph)?;
            Ok(graph)
        });
        match checked {
            Ok(graph) if output.json => output.document(
                &json!({ "valid": true, "name": graph.name, "slots": graph.slots(), "errors": [] }),
            ),
            Ok(graph) => output.text(&format!("ok: {} needs {}", graph.name, slots(graph.slots()))),
            Err(refused) => {
                if output.json {
                    output.document(&json!({ "valid": false, "errors": refused.lines() }))?;
                }
                Err(refused)
            }
        }
    }
}

fn slots(count: u32) -> String {
    if count == 1 { "1 slot".to_owned() } else { format!("{count} slots") }
}
