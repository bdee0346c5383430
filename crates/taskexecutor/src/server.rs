//! A task executor process: its loop, its endpoints, its beginning and its end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use checkpoint::{Stores, UrlStores};
use connectors::call::RustCalls;
use controller_events::{EventLoop, Handle, LoopOptions, Reply};
use entrypoint::config::{Auto, keys};
use entrypoint::{Placement, ReadyLine, Role, Running, Server, entropy};
use heartbeat::LivenessSource;
use runtime_core::{Incarnation, ResourceId};
use tokio::sync::oneshot;
use wire::{Address, Endpoints, Serving, Transport};

use crate::builder::TaskExecutorBuilder;
use crate::endpoint::Endpoint;
use crate::event::TeEvent;
use crate::exchange::{Channels, DataEndpoint};
use crate::prepare::Plans;
use crate::processor::{Fatal, Notices, Patience, TaskExecutorProcessor};
use crate::shared::{Hardware, Shared};
use crate::task_metrics::TaskMetrics;

/// How long an orderly stop waits for tasks to end; what they write is not visible before their job commits it.
const TASK_GRACE: Duration = Duration::from_secs(2);
/// How long it waits for peers to have heard the good-bye, and for connections to end.
const PEER_GRACE: Duration = Duration::from_millis(500);

/// A task executor that serves.
pub struct TaskExecutor {
    /// Where the resource manager and job masters reach it.
    pub rpc_address: Address,
    /// Where other task executors send records.
    pub data_address: Address,
    /// Its name.
    pub resource_id: ResourceId,
    /// How many slots it offers.
    pub slots: u32,
    events: Handle<TeEvent>,
    serving: Serving,
    serving_data: Serving,
    running: Running<TaskExecutorProcessor>,
    registered: oneshot::Receiver<()>,
    fatal: oneshot::Receiver<Fatal>,
}

impl TaskExecutor {
    /// A program that runs a task executor with calls of its own.
    pub fn builder() -> TaskExecutorBuilder {
        TaskExecutorBuilder::default()
    }

    /// Starts a task executor within this process, which looks for its resource manager from now on. With
    /// [`Placement::Tasks`] everything runs on the runtime that this is called on, for simulations. `seed` draws its
    /// life and its name; `stores` is where it finds checkpoints.
    ///
    /// # Errors
    /// A place to serve at cannot be had, or the configuration contradicts itself.
    pub async fn start(
        server: &Server,
        transport: Arc<dyn Transport>,
        placement: Placement,
        calls: RustCalls,
        stores: Arc<dyn Stores>,
        seed: u128,
    ) -> anyhow::Result<Self> {
        let config = &server.config;
        let runtime = tokio::runtime::Handle::current();
        let channels = Channels::new();
        let data = Arc::new(DataEndpoint::new(Arc::clone(&channels)));
        let endpoints = Endpoints { data: Some(data), ..Endpoints::default() };
        let serving_data = transport
            .serve(&config.get(&keys::DATA_BIND).to_string(), endpoints)
            .await
            .context("data.bind")?;
        let (calls, plans) = (Arc::new(calls), Arc::new(Plans::default()));
        let liveness = Arc::new(LivenessSource::new(Incarnation::from_u128(seed)));
        let endpoint = Arc::new(Endpoint {
            events: OnceLock::new(),
            liveness: Arc::clone(&liveness),
            clock: server.clock.clone(),
            plans: Arc::clone(&plans),
            calls: Arc::clone(&calls),
            placement,
            runtime: runtime.clone(),
        });
        let gateway = Arc::clone(&endpoint);
        let endpoints = Endpoints { task_executor: Some(gateway), ..Endpoints::default() };
        let serving =
            transport.serve(&config.get(&keys::RPC_BIND).to_string(), endpoints).await.context("rpc.bind")?;
        let rpc_address = server.advertised_address(&keys::RPC_ADVERTISE, serving.local_address())?;
        let data_address = server.advertised_address(&keys::DATA_ADVERTISE, serving_data.local_address())?;
        let resource_id = match config.get(&keys::TASKEXECUTOR_RESOURCE_ID) {
            Auto(Some(id)) => id,
            Auto(None) => entropy::resource_id(rpc_address.host_port(), seed)?,
        };
        let slots = config.get(&keys::TASKEXECUTOR_SLOTS);
        let shared = Arc::new(Shared {
            resource_id: resource_id.clone(),
            incarnation: Incarnation::from_u128(seed),
            rpc_address: rpc_address.clone(),
            data_address: data_address.clone(),
            resource_manager: config
                .get(&keys::RESOURCEMANAGER_ADDRESS)
                .as_str()
                .parse()
                .context("resourcemanager.address")?,
            hardware: Hardware::probe(),
            slots,
            slot_timeout: config.get(&keys::TASKEXECUTOR_SLOT_TIMEOUT),
            registration_timeout: config.get(&keys::TASKEXECUTOR_REGISTRATION_TIMEOUT),
            patience: Patience {
                interval: config.get(&keys::TASK_CANCELLATION_INTERVAL),
                timeout: config.get(&keys::TASK_CANCELLATION_TIMEOUT),
            },
            heartbeats: server.heartbeats()?.without_hold(),
            liveness,
            transport,
            clock: server.clock.clone(),
            runtime: runtime.clone(),
            placement,
            channels,
            calls,
            stores,
        });
        let (registered_notice, registered) = oneshot::channel();
        let (fatal_notice, fatal) = oneshot::channel();
        let notices = Notices { registered: Some(registered_notice), fatal: Some(fatal_notice) };
        let task_metrics = Arc::new(TaskMetrics::default());
        // The lower half draws; the upper one is in the name.
        let processor = TaskExecutorProcessor::new(shared, plans, task_metrics, notices, seed as u64);
        for metrics in processor.metrics() {
            server.metrics.add(metrics);
        }
        let mut options = LoopOptions::new(Arc::new(server.clock.clone()));
        options.name = "taskexecutor".into();
        options.low_watermark = Some(entrypoint::MOST_REQUESTS);
        let event_loop = EventLoop::new(processor, options);
        let events = event_loop.handle();
        server.metrics.add(Arc::new(events.clone()));
        // Nobody but this has set it.
        let _ = endpoint.events.set(events.clone());
        let running = placement.run(event_loop, &runtime, &server.clock)?;
        events.put(TeEvent::Begin).map_err(|refused| anyhow::anyhow!("{refused}"))?;
        Ok(Self {
            rpc_address,
            data_address,
            resource_id,
            slots,
            events,
            serving,
            serving_data,
            running,
            registered,
            fatal,
        })
    }

    /// Waits until it is registered at its resource manager for the first time.
    ///
    /// # Errors
    /// It cannot go on.
    pub async fn registered(&mut self) -> Result<(), Fatal> {
        tokio::select! {
            biased;
            fatal = &mut self.fatal => Err(fatal.unwrap_or(Fatal::LoopDied)),
            told = &mut self.registered => told.map_err(|_| Fatal::LoopDied),
        }
    }

    /// Waits until it cannot go on. To be awaited to its end once, and not after [`Self::registered`] has failed.
    pub async fn failed(&mut self) -> Fatal {
        (&mut self.fatal).await.unwrap_or(Fatal::LoopDied)
    }

    /// Says good-bye to everybody and ends, within three seconds.
    pub async fn stop(self) {
        let (reply, stopped) = Reply::pair();
        let links = match self.events.put(TeEvent::Stop("the task executor is stopping".into(), reply)) {
            Ok(_) => tokio::time::timeout(TASK_GRACE, stopped).await,
            // The loop has ended by itself, and said good-bye.
            Err(_) => Ok(Ok(Vec::new())),
        };
        match links {
            Ok(links) => {
                let links = futures::future::join_all(links.unwrap_or_default());
                if tokio::time::timeout(PEER_GRACE, links).await.is_err() {
                    tracing::debug!("a peer has not heard the good-bye within {PEER_GRACE:?}");
                }
            }
            Err(_) => tracing::warn!("tasks were still running after {TASK_GRACE:?} and are dropped"),
        }
        self.events.begin_close();
        self.running.ended().await;
        let served = futures::future::join(self.serving.shutdown(), self.serving_data.shutdown());
        if tokio::time::timeout(PEER_GRACE, served).await.is_err() {
            tracing::debug!("connections were still open after {PEER_GRACE:?} and are dropped");
        }
    }
}

/// Runs a task executor process until it is told to stop.
///
/// # Errors
/// It cannot start, is rejected by the resource manager, or finds none for too long.
pub async fn run(mut server: Server, calls: RustCalls) -> anyhow::Result<()> {
    let transport = Arc::new(server.grpc_transport());
    let stores = Arc::new(UrlStores::new(tokio::runtime::Handle::current()));
    let seed = entropy::draw()?;
    let mut task_executor =
        TaskExecutor::start(&server, transport, Placement::Threads, calls, stores, seed).await?;
    let mut shutdown = server.shutdown.clone();
    let outcome = tokio::select! {
        biased;
        () = shutdown.wait() => Ok(()),
        fatal = serve(&mut server, &mut task_executor) => Err(fatal),
    };
    task_executor.stop().await;
    Ok(outcome?)
}

async fn serve(server: &mut Server, task_executor: &mut TaskExecutor) -> Fatal {
    if let Err(fatal) = task_executor.registered().await {
        return fatal;
    }
    let line = ReadyLine::new(Role::TaskExecutor, &task_executor.resource_id)
        .rpc(task_executor.rpc_address.host_port())
        .data(task_executor.data_address.host_port())
        .slots(task_executor.slots);
    server.ready(line);
    task_executor.failed().await
}
