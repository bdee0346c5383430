//! `cargo xtask bench`: figures, each the median of several runs.

mod asyncio;
mod controller_events;
mod fail_over;
mod fleet;
mod flink;
mod heartbeat;
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
    /// How many runs make a median; 5, of fail-overs 7, and fewer with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Of the group asyncio, and of the fail-overs of the group cluster, only rows whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Also run Apache Flink beside the groups asyncio and heartbeat, by the programs in this folder; a Python environment
    /// and Flink's jars are made in the target folder at first
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "../shared/bench")]
    flink: Option<PathBuf>,
    /// Instead of the rest of the group heartbeat: a resource manager with thousands of task executors over gRPC
    #[arg(long)]
    fleet: bool,
    /// Write one JSON object a line to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of flights.jsonl.gz and planes.jsonl; without the whole file the sample is repeated
    #[arg(long, value_name = "FOLDER", default_value = "data/nycflights")]
    data: PathBuf,
    /// Also run the Java queues of this folder beside the group controller-events: its sources are compiled, its classes
    /// and jars are used. With Kafka's `kafka-server-common`, `kafka-clients` and `slf4j-api` in such a folder, also
    /// Kafka's own queue. Can be given several times
    #[arg(long, value_name = "FOLDER")]
    java: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// The operator beside futures' buffered streams: ready, externally completed and timed calls, many in flight
    Asyncio,
    /// A received heartbeat, memory, CPU and lateness, beside other timers
    Heartbeat,
    /// File to file with a table look-up, then start-up and memory as in `cluster`
    Pipeline,
    /// Start-up and memory of the four processes, and fail-over
    Cluster,
    /// The event loop beside channels and actors
    ControllerEvents,
}

/// Measures and reports.
///
/// # Errors
/// Something could not be measured, or a result was wrong: a figure of a wrong result is none.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let wanted = |group| args.groups.is_empty() || args.groups.contains(&group);
    // Before minutes of work.
    let mut report = Report::to(args.json.as_deref())?;
    let runs = |quick: usize| args.rounds.map_or(if args.quick { quick } else { 5 }, usize::from);
    if wanted(Group::Asyncio) {
        let plan = asyncio::Plan {
            quick: args.quick,
            rounds: runs(3),
            only: args.only.as_deref(),
            flink: args.flink.as_deref(),
        };
        asyncio::measure(&plan, &mut report)?;
    }
    if wanted(Group::Heartbeat) {
        if args.fleet {
            fleet::measure(args.quick, &mut report)?;
        } else {
            heartbeat::measure(runs(1), args.flink.as_deref(), &mut report)?;
        }
    }
    if wanted(Group::ControllerEvents) {
        controller_events::measure(args.quick, args.rounds, &args.java, &mut report)?;
    }
    if !wanted(Group::Pipeline) && !wanted(Group::Cluster) {
        return Ok(());
    }
    let binaries = programs::build()?;
    let folder = programs::work_folder("bench")?;
    let measured: anyhow::Result<()> = (|| {
        if wanted(Group::Pipeline) {
            let copies = if args.quick { 1 } else { 10 };
            let data = crate::workspace::root().join(&args.data);
            pipeline::measure(&binaries, &folder, &data, copies, runs(1), &mut report)?;
        }
        // One of the two is asked for, and both measure this.
        start_up::measure(&binaries, &folder, runs(1), &mut report)?;
        if wanted(Group::Cluster) {
            let rounds = args.rounds.map_or(if args.quick { 1 } else { 7 }, usize::from);
            fail_over::measure(&binaries, &folder, rounds, args.only.as_deref(), &mut report)?;
        }
        Ok(())
    })();
    measured.with_context(|| format!("logs and output are in {}", folder.display()))?;
    programs::remove(&folder)
}
