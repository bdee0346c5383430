//! A cluster of the real roles on one thread, under a paused clock and over the in-memory network.
//!
//! Equal seeds give equal runs: every random draw comes from the seed, and the network's log of two runs is the same to
//! the message. A scenario is an async function that is given the [`Simulation`]: it submits jobs, cuts and heals links,
//! and lets time pass.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use connectors::call::RustCalls;
use entrypoint::Placement;
use job::file::JobFile;
use runtime_core::time::TokioClock;
use runtime_core::{EpochMillis, JobId};
use tidegate::cluster::{Cluster, Options};
use wire::network::{InMemoryNetwork, NetworkOptions};

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
        }
    }
}

/// A running simulation.
pub struct Simulation {
    /// The cluster.
    pub cluster: Cluster,
    /// Its network.
    pub network: InMemoryNetwork,
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
}

/// Runs a scenario to its end. Returns what it returns, and the network's log as text, a line a message.
///
/// # Errors
/// The cluster does not start, or the scenario fails.
pub fn simulate<T>(
    shape: Shape,
    scenario: impl AsyncFnOnce(&Simulation) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("the runtime of the simulation")?;
    let seed = shape.seed;
    let outcome = runtime.block_on(async {
        let network = InMemoryNetwork::new(NetworkOptions::calm(seed));
        let options = Options {
            task_executors: shape.task_executors,
            slots: shape.slots,
            placement: Placement::Tasks,
            network: network.clone(),
            clock: TokioClock::start_at(BEGINNING),
            settings: shape.settings,
            seed,
            calls: shape.calls,
        };
        let simulation = Simulation { cluster: Cluster::start(options).await?, network, seed };
        let outcome = scenario(&simulation).await?;
        let log = simulation.network.take_log().iter().map(ToString::to_string).collect();
        anyhow::Ok((outcome, log))
    });
    outcome.with_context(|| format!("in the simulation with seed {seed}"))
}
