//! A whole cluster in one process: the same roles, loops and gateways, over the in-memory network.
//!
//! `tidegate local` runs a job in it for real; a simulation runs it on one thread with a paused clock and a network
//! that is slow, lossy or cut.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use checkpoint::UrlStores;
use connectors::call::RustCalls;
use entrypoint::config::Layers;
use entrypoint::{Config, Placement, Role, Server};
use job::file::JobFile;
use jobmaster::{Dispatcher, JobMaster, JobView};
use resourcemanager::ResourceManager;
use runtime_core::shutdown::Shutdown;
use runtime_core::time::TokioClock;
use runtime_core::{Clock, Epoch, JobId};
use taskexecutor::TaskExecutor;
use wire::network::InMemoryNetwork;

/// The nodes' names on the network; a task executor's has its number after it.
pub const RESOURCE_MANAGER: &str = "resourcemanager";
/// The job master's node.
pub const JOB_MASTER: &str = "jobmaster";
/// The task executors' nodes: `taskexecutor-1`, `taskexecutor-2`, ...
pub const TASK_EXECUTOR: &str = "taskexecutor";

/// How a cluster in one process is made.
pub struct Options {
    /// How many task executors.
    pub task_executors: u32,
    /// How many slots each has.
    pub slots: u32,
    /// Threads for real, tasks for a simulation.
    pub placement: Placement,
    /// What connects the roles.
    pub network: InMemoryNetwork,
    /// The clock of all roles.
    pub clock: TokioClock,
    /// Configuration as `KEY=VALUE`, for all roles.
    pub settings: Vec<String>,
    /// What ids are drawn from.
    pub seed: u64,
    /// The calls written in Rust that the task executors have.
    pub calls: RustCalls,
}

/// A running cluster in this process.
pub struct Cluster {
    options: Options,
    shutdown: Shutdown,
    resource_manager: Option<ResourceManager>,
    job_master: JobMaster,
    task_executors: Vec<Option<TaskExecutor>>,
    starts: u64,
}

impl Cluster {
    /// Starts all roles. Returns once they serve; they find each other by themselves.
    ///
    /// # Errors
    /// A setting is wrong.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let shutdown = Shutdown::new();
        let mut ids = Ids { seed: options.seed, starts: 0 };
        let resource_manager = start_resource_manager(&options, &shutdown, &mut ids).await?;
        let server = server(&options, Role::JobMaster, JOB_MASTER, &shutdown)?;
        let transport = Arc::new(options.network.node(JOB_MASTER));
        let job_master = JobMaster::start(&server, transport, options.placement, None, ids.next())
            .await
            .context(JOB_MASTER)?;
        let mut cluster = Self {
            shutdown,
            resource_manager: Some(resource_manager),
            job_master,
            task_executors: Vec::new(),
            starts: ids.starts,
            options,
        };
        for number in 1..=cluster.options.task_executors {
            let started = cluster.start_task_executor(number).await?;
            cluster.task_executors.push(Some(started));
        }
        Ok(cluster)
    }

    async fn start_task_executor(&mut self, number: u32) -> anyhow::Result<TaskExecutor> {
        let name = format!("{TASK_EXECUTOR}-{number}");
        let server = server(&self.options, Role::TaskExecutor, &name, &self.shutdown)?;
        let transport = Arc::new(self.options.network.node(&name));
        let mut ids = Ids { seed: self.options.seed, starts: self.starts };
        let seed = ids.next();
        self.starts = ids.starts;
        let calls = self.options.calls.clone();
        let stores = Arc::new(UrlStores::new(tokio::runtime::Handle::current()));
        TaskExecutor::start(&server, transport, self.options.placement, calls, stores, seed)
            .await
            .context(name)
    }

    /// Submits, cancels and looks at jobs.
    #[must_use]
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.job_master.dispatcher
    }

    /// Submits a checked job file with absolute paths.
    ///
    /// # Errors
    /// It cannot be planned, or the job master does not take it.
    pub async fn submit(&self, job: JobId, file: &JobFile) -> anyhow::Result<()> {
        let graph = job::plan::plan(file)?;
        self.dispatcher().submit(job, Bytes::from(file.to_json()), Arc::new(graph)).await?;
        Ok(())
    }

    /// Waits until a job is over, looking at it every `pause`.
    ///
    /// # Errors
    /// There is no such job.
    pub async fn wait(
        &self,
        job: JobId,
        pause: Duration,
        mut look: impl FnMut(&JobView),
    ) -> anyhow::Result<Arc<JobView>> {
        loop {
            let view = self.dispatcher().view(job).with_context(|| format!("there is no job {job}"))?;
            look(&view);
            if view.status.is_terminal() {
                return Ok(view);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends all roles in order.
    pub async fn stop(mut self) {
        self.shutdown.trigger();
        for task_executor in self.task_executors.drain(..).flatten() {
            task_executor.stop().await;
        }
        self.job_master.stop().await;
        if let Some(resource_manager) = self.resource_manager.take() {
            resource_manager.stop().await;
        }
    }

    /// The time as the cluster sees it.
    #[must_use]
    pub fn clock(&self) -> &TokioClock {
        &self.options.clock
    }
}

async fn start_resource_manager(
    options: &Options,
    shutdown: &Shutdown,
    ids: &mut Ids,
) -> anyhow::Result<ResourceManager> {
    let server = server(options, Role::ResourceManager, RESOURCE_MANAGER, shutdown)?;
    let transport = Arc::new(options.network.node(RESOURCE_MANAGER));
    let epoch = Epoch(u64::try_from(options.clock.wall().0).unwrap_or(1).max(1));
    ResourceManager::start(&server, transport, options.placement, epoch, ids.next())
        .await
        .context(RESOURCE_MANAGER)
}

fn server(options: &Options, role: Role, node: &str, shutdown: &Shutdown) -> anyhow::Result<Server> {
    let mut set = options.settings.clone();
    set.push(format!("resourcemanager.address=http://{RESOURCE_MANAGER}:6120"));
    set.push(format!("taskexecutor.slots={}", options.slots));
    set.push(format!("taskexecutor.resource-id={node}"));
    let config = Config::load(role, &Layers { file: None, environment: Vec::new(), set })?;
    let (server, _ready) = Server::embedded(config, options.clock.clone(), shutdown.signal());
    Ok(server)
}

/// Draws the ids of the roles, the same ones for the same seed.
struct Ids {
    seed: u64,
    starts: u64,
}

impl Ids {
    fn next(&mut self) -> u128 {
        use rand::{RngExt, SeedableRng};
        self.starts += 1;
        rand::rngs::SmallRng::seed_from_u64(
            self.seed.wrapping_add(self.starts.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        )
        .random()
    }
}
