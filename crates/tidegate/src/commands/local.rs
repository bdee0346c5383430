//! `tidegate local`

use std::sync::Arc;
use std::time::Duration;

use checkpoint::UrlStores;
use clap::Args;
use connectors::call::RustCalls;
use entrypoint::Placement;
use job::file::JobFile;
use runtime_core::JobId;
use runtime_core::time::{Clock as _, TokioClock};
use tokio::runtime::Builder;
use wire::network::{InMemoryNetwork, NetworkOptions};

use super::{run, runtime};
use crate::client::JobResult;
use crate::cluster::{Cluster, Options};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::job_file::{JobFileArgs, check_surroundings};
use crate::output::{Output, note};
use crate::progress::Progress;

/// How far apart looks at the job are: its end is noticed within this time.
const LOOK: Duration = Duration::from_millis(5);

/// Calls and the exchange wait most of the time; what computes has threads of its own.
const IO_THREADS: usize = 2;

/// Run a job on a cluster inside this process
///
/// Nothing else is needed and nothing is left behind but the job's output. Ctrl-C cancels the job.
#[derive(Debug, Args)]
#[command(after_help = "\
The exit status is 0 when the job is FINISHED, 2 when the job file is refused, 1 otherwise.
RUST_LOG=info shows on stderr what the cluster does.

Examples:
  tidegate local job.yaml
  tidegate local job.yaml --set parallelism=4 --json")]
pub(super) struct Local {
    #[command(flatten)]
    job: JobFileArgs,

    /// Slots of the cluster; as many as the job needs unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
}

impl Local {
    pub(super) fn execute(self, output: Output) -> Result<(), Failure> {
        let file = self.job.load()?;
        let graph = job::plan::plan(&file)?;
        check_surroundings(&file, &graph)?;
        let needed = graph.slots();
        let slots = self.slots.unwrap_or(needed);
        if slots < needed {
            return Err(Failure::TooFewSlots { needed, slots });
        }
        if std::env::var_os("RUST_LOG").is_some() {
            entrypoint::logging::start(entrypoint::config::LogFormat::Text);
        }
        let runtime = runtime(Builder::new_multi_thread().worker_threads(IO_THREADS))?;
        let drawn = entrypoint::entropy::draw()
            .map_err(|cause| Failure::System { what: "no id can be drawn for the job", cause })?;
        let result = runtime.block_on(live(&file, slots, JobId::from_u128(drawn)))?;
        runtime.shutdown_background();
        run::conclude(result, output)
    }
}

/// The life of the cluster: start, one job, end.
async fn live(file: &JobFile, slots: u32, job: JobId) -> Result<JobResult, Failure> {
    let options = Options {
        task_executors: 1,
        slots,
        placement: Placement::Threads,
        network: InMemoryNetwork::new(NetworkOptions::instant()),
        clock: TokioClock::start(),
        settings: Vec::new(),
        state: None,
        stores: Arc::new(UrlStores::new(tokio::runtime::Handle::current())),
        seed: job.as_u128() as u64,
        calls: RustCalls::default(),
    };
    let mut interrupts = Interrupts::watch()?;
    let cluster = Cluster::start(options).await.map_err(Failure::Cluster)?;
    cluster.submit(job, file).await.map_err(Failure::Cluster)?;
    let clock = cluster.clock().clone();
    let mut progress = Progress::on_terminal();
    let mut ended = Box::pin(cluster.wait(job, LOOK, |view| {
        if progress.is_shown() {
            progress.show(&view.result(clock.wall()), clock.now());
        }
    }));
    let view = tokio::select! {
        biased;
        view = &mut ended => view,
        _ = interrupts.next() => {
            note("cancelling the job; a second Ctrl-C ends at once");
            if let Some(dispatcher) = cluster.dispatcher() {
                dispatcher.cancel(job).await;
            }
            tokio::select! {
                biased;
                view = &mut ended => view,
                _ = interrupts.next() => return Err(Failure::Interrupted),
            }
        }
    };
    drop(ended);
    progress.clear();
    let view = view.map_err(Failure::Cluster)?;
    let result = view.result(cluster.clock().wall());
    cluster.stop().await;
    Ok(result)
}
