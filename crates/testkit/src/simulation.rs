//! A cluster of the real roles on one thread, under a paused clock and over the in-memory network.
//!
//! Equal seeds give equal runs: every random draw comes from the seed, and the network's log of two runs is the same to
//! the message. A scenario is an async function that is given the [`Simulation`]: it submits jobs, cuts and heals links,
//! crashes nodes and starts them again, and lets time pass; or it [plays](Simulation::play) a [`Script`] of such deeds while
//! [invariants](invariants) are looked at.

pub mod invariants;
mod ledger;
mod script;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use checkpoint::MemoryStores;
use connectors::call::RustCalls;
use entrypoint::Placement;
use job::file::JobFile;
use jobmaster::JobResult;
use runtime_core::time::TokioClock;
use runtime_core::{EpochMillis, JobId};
use tidegate::cluster::{Cluster, Options, RESOURCE_MANAGER};
use wire::network::{InMemoryNetwork, NetworkOptions};
use wire::{Transport as _, v1};

pub use ledger::Ledger;
pub use script::{Deed, Menu, Script, Step, StoreState, Weather};

use invariants::Watch;

/// When every simulation begins by its wall clock: 2026-01-01T00:00:00Z.
const BEGINNING: EpochMillis = EpochMillis(1_767_225_600_000);

/// What a simulated cluster is like.
pub struct Shape {
    /// What everything is drawn from.
    pub seed: u64,
    /// How many task executors.
    pub task_executors: u32,
    /// How many slots each has.
    pub slots: u32,
    /// Configuration as `KEY=VALUE`, for all roles.
    pub settings: Vec<String>,
    /// The calls written in Rust that the task executors have.
    pub calls: RustCalls,
    /// Where the job master keeps what is to survive a crash of it; absent: nothing survives.
    pub state: Option<PathBuf>,
}

impl Shape {
    /// Two task executors of two slots, heartbeats every second with a timeout of five.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let settings = ["heartbeat.interval=1s", "heartbeat.timeout=5s"];
        Self {
            seed,
            task_executors: 2,
            slots: 2,
            settings: settings.map(str::to_owned).to_vec(),
            calls: RustCalls::default(),
            state: None,
        }
    }
}

/// How often a script's invariants are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A running simulation.
pub struct Simulation {
    /// The cluster.
    pub cluster: Cluster,
    /// Its network.
    pub network: InMemoryNetwork,
    /// Where its checkpoints are kept.
    pub stores: MemoryStores,
    seed: u64,
}

impl Simulation {
    /// Submits a job file; relative paths are meant from `folder`.
    ///
    /// # Errors
    /// The job file has mistakes.
    pub async fn submit(&self, text: &str, folder: &Path) -> anyhow::Result<JobId> {
        let mut file = JobFile::parse(text, "job.yaml")?;
        file.absolute_paths(folder);
        let job = JobId::from_u128(u128::from(self.seed) << 64 | 1);
        self.cluster.submit(job, &file).await?;
        Ok(job)
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Does one deed.
    ///
    /// # Errors
    /// A node does not start.
    pub async fn act(&mut self, deed: Deed) -> anyhow::Result<()> {
        match deed {
            Deed::Cut(a, b) => self.network.cut(&a.to_string(), &b.to_string()),
            Deed::OneWay(from, to) => self.network.cut_one_way(&from.to_string(), &to.to_string()),
            Deed::Heal(a, b) => self.network.heal(&a.to_string(), &b.to_string()),
            Deed::Crash(node) => self.cluster.crash(node),
            Deed::Start(node) => {
                // What the dead life was carrying out has let go of its folder by then.
                self.pass(Duration::from_millis(1)).await;
                self.cluster.start_node(node).await?;
            }
            Deed::Links(weather) => self.network.set_faults(weather.faults()),
            Deed::Store(state) => {
                self.stores.all().iter().for_each(|store| store.set_full(state == StoreState::Full));
            }
        }
        Ok(())
    }

    /// Plays a script while a job runs, looks at the job in between, and then waits for the job's end.
    ///
    /// # Errors
    /// An invariant does not hold, a node does not start, or the job has not ended within `patience` after the script.
    pub async fn play(
        &mut self,
        script: &Script,
        job: JobId,
        patience: Duration,
    ) -> anyhow::Result<JobResult> {
        let (mut passed, mut watch) = self.befall(script, job).await?;
        let end = passed + patience;
        while passed < end {
            self.watch_until(passed + LOOK, &mut passed, job, &mut watch).await?;
            if let Some(result) = self.cluster.result(job).filter(|result| is_terminal(&result.state)) {
                return Ok(result);
            }
        }
        let last = self.cluster.result(job);
        let view = self.cluster.dispatcher().and_then(|dispatcher| dispatcher.view(job));
        let cluster = self.describe_cluster().await;
        anyhow::bail!(
            "the job has not ended {patience:?} after the last deed: {last:?}\n{view:#?}\n{cluster:#?}"
        )
    }

    /// Plays a script while a job runs, and looks at the job in between. Yields the time that has passed, and who has watched.
    ///
    /// # Errors
    /// An invariant does not hold, or a node does not start.
    pub async fn befall(&mut self, script: &Script, job: JobId) -> anyhow::Result<(Duration, Watch)> {
        let mut watch = Watch::default();
        let mut passed = Duration::ZERO;
        for step in script.steps() {
            self.watch_until(step.at, &mut passed, job, &mut watch).await?;
            tracing::info!(at = ?passed, "{}", step.deed);
            self.act(step.deed).await.with_context(|| format!("at {:?}: {}", step.at, step.deed))?;
        }
        Ok((passed, watch))
    }

    async fn watch_until(
        &self,
        until: Duration,
        passed: &mut Duration,
        job: JobId,
        watch: &mut Watch,
    ) -> anyhow::Result<()> {
        while *passed < until {
            let step = LOOK.min(until - *passed);
            self.pass(step).await;
            *passed += step;
            let at = *passed;
            let view = self.cluster.dispatcher().and_then(|dispatcher| dispatcher.view(job));
            view.map_or(Ok(()), |view| watch.look(&view)).with_context(|| format!("at {at:?}"))?;
            let result = self.cluster.result(job);
            result
                .map_or(Ok(()), |result| watch.look_at_result(&result))
                .with_context(|| format!("at {at:?}"))?;
        }
        Ok(())
    }

    /// The cluster as its resource manager sees it.
    ///
    /// # Errors
    /// The resource manager cannot be asked.
    pub async fn describe_cluster(&self) -> anyhow::Result<v1::ClusterDescription> {
        let address = format!("http://{RESOURCE_MANAGER}:6120").parse()?;
        let gateway = self.network.node("observer").connect_resource_manager(&address);
        Ok(gateway.describe_cluster(v1::DescribeClusterRequest::default()).await?)
    }
}

fn is_terminal(state: &str) -> bool {
    matches!(state, "FINISHED" | "FAILED" | "CANCELED")
}

/// Runs a scenario to its end. Returns what it returns, and the network's log as text, a line a message.
///
/// # Errors
/// The cluster does not start, or the scenario fails.
pub fn simulate<T>(
    shape: Shape,
    scenario: impl AsyncFnOnce(&mut Simulation) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("the runtime of the simulation")?;
    let seed = shape.seed;
    let outcome = runtime.block_on(async {
        let network = InMemoryNetwork::new(NetworkOptions::calm(seed));
        let stores = MemoryStores::new();
        let options = Options {
            task_executors: shape.task_executors,
            slots: shape.slots,
            placement: Placement::Tasks,
            network: network.clone(),
            clock: TokioClock::start_at(BEGINNING),
            settings: shape.settings,
            seed,
            state: shape.state,
            stores: Arc::new(stores.clone()),
            calls: shape.calls,
        };
        let mut simulation = Simulation { cluster: Cluster::start(options).await?, network, stores, seed };
        let outcome = scenario(&mut simulation).await?;
        let log = simulation.network.take_log().iter().map(ToString::to_string).collect();
        anyhow::Ok((outcome, log))
    });
    outcome.with_context(|| format!("in the simulation with seed {seed}"))
}
