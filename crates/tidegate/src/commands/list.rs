//! `tidegate list`

use clap::Args;
use serde_json::Value;

use crate::client::{JobMasterClient, JobOverview};
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{Align, Table, date_time, duration};

/// List the jobs that run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate list
  tidegate list -a --json        every job that the job master knows, as a JSON array")]
pub(super) struct List {
    /// Also those that have ended
    #[arg(short, long)]
    all: bool,
}

impl List {
    pub(super) async fn execute(self, client: &JobMasterClient, output: Output) -> Result<(), Failure> {
        let mut shown: Vec<(Value, JobOverview)> = Vec::new();
        for document in client.jobs().await? {
            let job: JobOverview = client.read(&document)?;
            if self.all || !job.has_ended() {
                shown.push((document, job));
            }
        }
        shown.sort_by_key(|(_, job)| (Group::of(job), job.start_time));
        if output.json {
            let documents: Vec<&Value> = shown.iter().map(|(document, _)| document).collect();
            return output.document(&documents);
        }
        output.text(&table(shown.iter().map(|(_, job)| job)))
    }
}

/// In this order: what runs, what waits to run, what is over. Within each the oldest comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Running,
    Scheduled,
    Ended,
}

impl Group {
    fn of(job: &JobOverview) -> Self {
        match job.state.as_str() {
            _ if job.has_ended() => Self::Ended,
            "INITIALIZING" | "CREATED" => Self::Scheduled,
            _ => Self::Running,
        }
    }
}

fn table<'a>(jobs: impl Iterator<Item = &'a JobOverview>) -> String {
    let mut table = Table::new([
        ("JOB", Align::Left),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("STARTED", Align::Left),
        ("DURATION", Align::Right),
        ("RUNNING", Align::Right),
    ]);
    for job in jobs {
        let tasks = |state: &str| job.tasks.get(state).copied().unwrap_or(0);
        table.row([
            job.jid.clone(),
            job.name.clone(),
            job.state.clone(),
            date_time(job.start_time),
            duration(job.duration),
            format!("{}/{}", tasks("running"), tasks("total")),
        ]);
    }
    if table.is_empty() { "no jobs\n".to_owned() } else { table.render() }
}
