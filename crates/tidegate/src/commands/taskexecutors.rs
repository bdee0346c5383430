//! `tidegate taskexecutors`

use clap::Args;

use crate::client::{JobMasterClient, TaskExecutor};
use crate::failure::Failure;
use crate::output::{Output, note};
use crate::text::{Align, Table, duration};

/// List the task executors and their slots
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tidegate taskexecutors --json")]
pub(super) struct TaskExecutors {}

impl TaskExecutors {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let (documents, workforce) = client.task_executors().await?;
        let age = workforce.resource_manager_age_ms;
        if age > 0 {
            note(&format!("the resource manager is away; this is what it said {} ago", duration(age)));
        }
        match workforce.pending {
            0 => {}
            1 => note("1 worker is being started"),
            pending => note(&format!("{pending} workers are being started")),
        }
        if let Some(trouble) = &workforce.worker_trouble {
            note(trouble);
        }
        if output.json {
            return output.document(&documents);
        }
        let read = documents.iter().map(|document| client.read(document)).collect::<Result<Vec<_>, _>>()?;
        output.text(&table(&read))
    }
}

fn table(task_executors: &[TaskExecutor]) -> String {
    let mut table = Table::new([
        ("TASK EXECUTOR", Align::Left),
        ("ADDRESS", Align::Left),
        ("SLOTS", Align::Right),
        ("FREE", Align::Right),
        ("STATE", Align::Left),
        ("HEARTBEAT", Align::Right),
        ("CALLS", Align::Left),
    ]);
    for each in task_executors {
        table.row([
            each.id.clone(),
            each.path.clone(),
            each.slots_number.to_string(),
            each.free_slots.to_string(),
            each.liveness_state.clone().unwrap_or_else(|| "-".to_owned()),
            each.heartbeat_age_ms.map_or_else(|| "-".to_owned(), |age| format!("{} ago", duration(age))),
            each.calls.join(", "),
        ]);
    }
    if table.is_empty() {
        return "no task executors\n".to_owned();
    }
    let mut text = table.render();
    for each in task_executors {
        if let (Some(state), Some(reason)) = (&each.liveness_state, &each.liveness_reason) {
            text.push_str(&format!("{} is {state}: {reason}\n", each.id));
        }
    }
    text
}
