//! `cargo xtask cluster`: a cluster on this machine, in the foreground, on the ports that every program expects.

use testkit::processes::{ProcessCluster, Role};
use tokio::signal::unix::{SignalKind, signal};

use crate::programs;

/// What the cluster is like.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many task executors
    #[arg(long, default_value_t = 2, value_name = "N")]
    taskexecutors: usize,
    /// Slots of each
    #[arg(long, default_value_t = 2, value_name = "N")]
    slots: u32,
}

/// Runs a cluster until Ctrl-C or SIGTERM.
///
/// # Errors
/// A process does not start, or does not stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let binaries = programs::build()?;
    let folder = programs::work_folder("cluster")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    // Before there is anything to stop.
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let tidegate = binaries.path("tidegate");
    let builder = ProcessCluster::builder().binaries(binaries).folder(&folder).default_ports();
    let mut cluster = builder.task_executors(args.taskexecutors).slots(args.slots).start()?;
    println!("\nThe cluster runs: {} task executors of {} slots.", args.taskexecutors, args.slots);
    println!("  REST       http://{}", cluster.address(Role::JobMaster, "rest")?);
    println!("  logs       {}", cluster.logs().display());
    println!("  try        {} run examples/jobs/flights-unordered.yaml", tidegate.display());
    println!("Ctrl-C ends it.");
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    eprintln!("\nstopping");
    for (role, status) in cluster.stop_all()? {
        eprintln!("{role} ended with {status}");
    }
    drop(cluster);
    programs::remove(&folder)
}
