//! `cargo xtask bench`: figures, each the median of several runs.

mod pipeline;
mod report;
mod start_up;

use std::path::PathBuf;

use anyhow::Context as _;
use report::Report;

use crate::programs;

/// What to measure and how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; without it everything
    #[arg(value_enum)]
    groups: Vec<Group>,
    /// Fewer runs on less input: to see that it works, not to compare
    #[arg(long)]
    quick: bool,
    /// Write one JSON object a line to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of flights.jsonl.gz and planes.jsonl; without the whole file the sample is repeated
    #[arg(long, value_name = "FOLDER", default_value = "data/nycflights")]
    data: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// File to file with a table look-up, then what `cluster` measures
    Pipeline,
    /// Start-up and memory of the four processes
    Cluster,
}

/// Measures and reports.
///
/// # Errors
/// Something could not be measured, or a result was wrong: a figure of a wrong result is none.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let all = args.groups.is_empty();
    let pipeline = all || args.groups.contains(&Group::Pipeline);
    // Before minutes of work.
    let mut report = Report::to(args.json.as_deref())?;
    let binaries = programs::build()?;
    let folder = programs::work_folder("bench")?;
    let runs = if args.quick { 1 } else { 5 };
    let measured = (|| {
        if pipeline {
            let copies = if args.quick { 1 } else { 10 };
            let data = crate::workspace::root().join(&args.data);
            pipeline::measure(&binaries, &folder, &data, copies, runs, &mut report)?;
        }
        // One of the two is asked for, and both measure this.
        start_up::measure(&binaries, &folder, runs, &mut report)
    })();
    measured.with_context(|| format!("logs and output are in {}", folder.display()))?;
    programs::remove(&folder)
}
