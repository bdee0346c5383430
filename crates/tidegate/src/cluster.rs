//! A whole cluster in one process: the same roles, loops and gateways, over the in-memory network.
//!
//! `tidegate local` runs a job in it for real; a simulation runs it on one thread with a paused clock and a network
//! that is slow, lossy or cut.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use checkpoint::Stores;
use connectors::call::RustCalls;
use entrypoint::config::Layers;
use entrypoint::{Config, Placement, Role, Server, StateDir};
use job::file::JobFile;
use jobmaster::{Dispatcher, JobMaster, JobResult, JobView};
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

/// A node of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The resource manager's.
    ResourceManager,
    /// The job master's.
    JobMaster,
    /// A task executor's, counted from 1.
    TaskExecutor(u32),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResourceManager => f.write_str(RESOURCE_MANAGER),
            Self::JobMaster => f.write_str(JOB_MASTER),
            Self::TaskExecutor(number) => write!(f, "{TASK_EXECUTOR}-{number}"),
        }
    }
}

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
    /// Where the job master keeps what is to survive a crash of it; absent: nothing survives.
    pub state: Option<PathBuf>,
    /// Where checkpoints are kept.
    pub stores: Arc<dyn Stores>,
    /// What ids are drawn from.
    pub seed: u64,
    /// The calls written in Rust that the task executors have.
    pub calls: RustCalls,
}

/// A running cluster in this process.
pub struct Cluster {
    options: Options,
    shutdown: Shutdown,
    ids: Ids,
    resource_manager: Option<ResourceManager>,
    job_master: Option<JobMaster>,
    task_executors: Vec<Option<TaskExecutor>>,
}

impl Cluster {
    /// Starts all roles. Returns once they serve; they find each other by themselves.
    ///
    /// # Errors
    /// A setting is wrong.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let number = options.task_executors;
        let mut cluster = Self {
            shutdown: Shutdown::new(),
            ids: Ids { seed: options.seed, starts: 0 },
            resource_manager: None,
            job_master: None,
            task_executors: (0..number).map(|_| None).collect(),
            options,
        };
        cluster.start_node(Node::ResourceManager).await?;
        cluster.start_node(Node::JobMaster).await?;
        for number in 1..=number {
            cluster.start_node(Node::TaskExecutor(number)).await?;
        }
        Ok(cluster)
    }

    /// Starts a node that is down: for the first time, or for another life.
    ///
    /// # Errors
    /// A setting is wrong, or the life before still holds the node's folder.
    pub async fn start_node(&mut self, node: Node) -> anyhow::Result<()> {
        let name = node.to_string();
        let Options { placement, clock, calls, stores, .. } = &self.options;
        let stores = Arc::clone(stores);
        let (placement, wall) = (*placement, clock.wall());
        let transport = Arc::new(self.options.network.node(&name));
        let seed = self.ids.next();
        match node {
            Node::ResourceManager => {
                let server = self.server(Role::ResourceManager, &name)?;
                let epoch = Epoch(u64::try_from(wall.0).unwrap_or(1).max(1));
                let started = ResourceManager::start(&server, transport, placement, epoch, seed).await;
                self.resource_manager = Some(started.context(name)?);
            }
            Node::JobMaster => {
                let server = self.server(Role::JobMaster, &name)?;
                let state = match &self.options.state {
                    None => None,
                    Some(path) => {
                        let folder = StateDir::open(path, Role::JobMaster)?;
                        let epoch = folder.draw_epoch(wall)?;
                        Some((folder, epoch))
                    }
                };
                let started = JobMaster::start(&server, transport, placement, state, stores, seed).await;
                self.job_master = Some(started.context(name)?);
            }
            Node::TaskExecutor(number) => {
                let server = self.server(Role::TaskExecutor, &name)?;
                let calls = calls.clone();
                let started = TaskExecutor::start(&server, transport, placement, calls, stores, seed).await;
                let started = started.with_context(|| name.clone())?;
                let place = self.task_executors.get_mut(number as usize - 1);
                *place.with_context(|| format!("there is no {name}"))? = Some(started);
            }
        }
        Ok(())
    }

    /// Ends a node's life without a word to anybody, as a kill does. What its tasks do after that reaches nobody.
    pub fn crash(&mut self, node: Node) {
        self.options.network.crash(&node.to_string());
        match node {
            Node::ResourceManager => drop(self.resource_manager.take()),
            Node::JobMaster => drop(self.job_master.take()),
            Node::TaskExecutor(number) => {
                drop(self.task_executors.get_mut(number as usize - 1).and_then(Option::take));
            }
        }
    }

    /// Whether a node lives.
    #[must_use]
    pub fn is_up(&self, node: Node) -> bool {
        match node {
            Node::ResourceManager => self.resource_manager.is_some(),
            Node::JobMaster => self.job_master.is_some(),
            Node::TaskExecutor(number) => {
                self.task_executors.get(number as usize - 1).is_some_and(Option::is_some)
            }
        }
    }

    fn server(&self, role: Role, node: &str) -> anyhow::Result<Server> {
        let options = &self.options;
        let mut set = options.settings.clone();
        set.push(format!("resourcemanager.address=http://{RESOURCE_MANAGER}:6120"));
        set.push(format!("taskexecutor.slots={}", options.slots));
        set.push(format!("taskexecutor.resource-id={node}"));
        let config = Config::load(role, &Layers { file: None, environment: Vec::new(), set })?;
        let (server, _ready) = Server::embedded(config, options.clock.clone(), self.shutdown.signal());
        Ok(server)
    }

    /// Submits, cancels and looks at jobs. Absent while the job master is down.
    #[must_use]
    pub fn dispatcher(&self) -> Option<&Dispatcher> {
        self.job_master.as_ref().map(|master| &master.dispatcher)
    }

    fn reach_dispatcher(&self) -> anyhow::Result<&Dispatcher> {
        self.dispatcher().context("the job master is down")
    }

    /// A job's result so far, also where it had ended before the job master's present life.
    #[must_use]
    pub fn result(&self, job: JobId) -> Option<JobResult> {
        let dispatcher = self.dispatcher()?;
        let led = dispatcher.view(job).map(|view| view.result(self.options.clock.wall()));
        led.or_else(|| dispatcher.past_job(job).map(|past| past.result))
    }

    /// Submits a checked job file with absolute paths.
    ///
    /// # Errors
    /// It cannot be planned, or the job master does not take it.
    pub async fn submit(&self, job: JobId, file: &JobFile) -> anyhow::Result<()> {
        let graph = job::plan::plan(file)?;
        self.reach_dispatcher()?.submit(job, Bytes::from(file.to_json()), Arc::new(graph)).await?;
        Ok(())
    }

    /// Waits until a job is over, looking at it every `pause`.
    ///
    /// # Errors
    /// There is no such job, or no job master.
    pub async fn wait(
        &self,
        job: JobId,
        pause: Duration,
        mut look: impl FnMut(&JobView),
    ) -> anyhow::Result<Arc<JobView>> {
        loop {
            let view = self.reach_dispatcher()?.view(job);
            let view = view.with_context(|| format!("there is no job {job}"))?;
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
        if let Some(job_master) = self.job_master.take() {
            job_master.stop().await;
        }
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
