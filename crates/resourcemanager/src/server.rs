//! A resource manager process: its loop, its endpoint, its beginning and its end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use controller_events::{EventLoop, Handle, LoopOptions};
use entrypoint::config::{WorkerDriver as WorkerDriverKind, keys};
use entrypoint::{Config, Placement, ReadyLine, Role, Running, Server, entropy};
use runtime_core::{Clock, Epoch, Incarnation, ResourceId};
use wire::fencing::Fence;
use wire::{Address, Endpoints, Transport, v1};

use crate::callback::Callback;
use crate::endpoint::Endpoint;
use crate::event::RmEvent;
use crate::processor::{Parts, ResourceManagerProcessor, Workers};
use crate::workers::{PoolOptions, ProcessDriver, WorkerCommand, WorkerDriver, WorkerPool};

/// How long an orderly stop waits for connections to end.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A resource manager that serves.
pub struct ResourceManager {
    /// Where the others reach it.
    pub rpc_address: Address,
    /// Its name.
    pub resource_id: ResourceId,
    events: Handle<RmEvent>,
    serving: wire::Serving,
    running: Running<ResourceManagerProcessor>,
}

impl ResourceManager {
    /// Starts a resource manager within this process that takes whoever registers. `seed` draws its ids.
    ///
    /// # Errors
    /// The place to serve at cannot be had, or the configuration contradicts itself.
    pub async fn start(
        server: &Server,
        transport: Arc<dyn Transport>,
        placement: Placement,
        epoch: Epoch,
        seed: u128,
    ) -> anyhow::Result<Self> {
        Self::start_with(server, transport, placement, epoch, seed, None).await
    }

    /// As [`Self::start`], with a driver that starts and stops its task executors, and no others.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(
        server: &Server,
        transport: Arc<dyn Transport>,
        placement: Placement,
        epoch: Epoch,
        seed: u128,
        driver: Option<Arc<dyn WorkerDriver>>,
    ) -> anyhow::Result<Self> {
        let view = Arc::new(ArcSwap::from_pointee(v1::ClusterDescription::default()));
        let resource_id: ResourceId = format!("resourcemanager-{:08x}", seed as u32).parse()?;
        let runtime = tokio::runtime::Handle::current();
        let incarnation = Incarnation::from_u128(seed);
        let address = Arc::new(OnceLock::new());
        let processor = ResourceManagerProcessor::new(Parts {
            resource_id: resource_id.clone(),
            epoch,
            incarnation,
            heartbeats: server.heartbeats()?,
            placement,
            start_up_grace: server.config.get(&keys::RESOURCEMANAGER_START_UP_TIME),
            job_timeout: server.config.get(&keys::RESOURCEMANAGER_JOB_TIMEOUT),
            transport: Arc::clone(&transport),
            clock: Arc::new(server.clock.clone()),
            runtime: runtime.clone(),
            address: Arc::clone(&address),
            seed: (seed >> 64) as u64,
            view: Arc::clone(&view),
            max_slots: server.config.get(&keys::SLOTS_MAX),
            workers: driver.clone().map(|driver| {
                // Of this term alone, so no name is used twice.
                let name = format!("worker-{epoch}");
                Workers::new(WorkerPool::new(pool_options(&server.config), name), driver)
            }),
        });
        for metrics in processor.metrics() {
            server.metrics.add(metrics);
        }
        let mut options = LoopOptions::new(Arc::new(server.clock.clone()));
        options.name = "resourcemanager".into();
        options.low_watermark = Some(entrypoint::MOST_REQUESTS);
        let event_loop = EventLoop::new(processor, options);
        let events = event_loop.handle();
        server.metrics.add(Arc::new(events.clone()));
        let fence = Fence { epoch, incarnation }.to_wire();
        let callback = Callback::new(Arc::clone(&transport), Arc::new(server.clock.clone()), Some(fence));
        let endpoint = Arc::new(Endpoint { events: events.clone(), epoch, callback, view });
        let endpoints = Endpoints { resource_manager: Some(endpoint), ..Endpoints::default() };
        let bind = server.config.get(&keys::RPC_BIND).to_string();
        let serving =
            transport.serve(&bind, endpoints).await.map_err(|e| anyhow::anyhow!("rpc.bind: {e}"))?;
        let rpc_address = server.advertised_address(&keys::RPC_ADVERTISE, serving.local_address())?;
        // Nobody else sets it.
        let _ = address.set(rpc_address.clone());
        if let Some(driver) = &driver {
            let told = events.clone();
            // A loop that has ended has no workers: the list is there for its successor.
            let tell = move |event| drop(told.put(RmEvent::Worker(event)));
            let recovered = driver.begin(&rpc_address, Arc::new(tell));
            // Before any registration, which may be that of one of them.
            events
                .prepend(RmEvent::WorkersRecovered(recovered))
                .map_err(|refused| anyhow::anyhow!("{refused}"))?;
        }
        let running = placement.run(event_loop, &runtime, &server.clock)?;
        Ok(Self { rpc_address, resource_id, events, serving, running })
    }

    /// Says good-bye to everybody and ends. What runs goes on without it.
    pub async fn stop(self) {
        self.events.begin_drain();
        self.running.ended().await;
        if tokio::time::timeout(STOP_GRACE, self.serving.shutdown()).await.is_err() {
            tracing::debug!("connections were still open after {STOP_GRACE:?} and are dropped");
        }
    }
}

fn pool_options(config: &Config) -> PoolOptions {
    PoolOptions {
        slots: config.get(&keys::TASKEXECUTOR_SLOTS),
        max: config.get(&keys::WORKER_MAX),
        max_slots: config.get(&keys::SLOTS_MAX),
        redundant: config.get(&keys::WORKER_REDUNDANT),
        idle_timeout: config.get(&keys::WORKER_IDLE_TIMEOUT),
        registration_timeout: config.get(&keys::WORKER_REGISTRATION_TIMEOUT),
        recovery_timeout: config.get(&keys::WORKER_RECOVERY_TIMEOUT),
        max_start_failure_rate: config.get(&keys::WORKER_MAX_START_FAILURE_RATE),
        start_retry_interval: config.get(&keys::WORKER_START_RETRY_INTERVAL),
    }
}

/// Runs a resource manager process until it is told to stop.
///
/// # Errors
/// It cannot start: a port is taken, its folder is locked or cannot be written.
pub async fn run(mut server: Server) -> anyhow::Result<()> {
    let command = match server.config.get(&keys::WORKER_DRIVER) {
        WorkerDriverKind::Standalone => None,
        WorkerDriverKind::Process => Some(WorkerCommand::of(&server.config)?),
    };
    let state = Arc::new(server.state_dir()?);
    let epoch = state.draw_epoch(server.clock.wall())?;
    let transport = Arc::new(server.grpc_transport());
    let driver = command.map(|command| {
        let runtime = tokio::runtime::Handle::current();
        Arc::new(ProcessDriver::new(command, Arc::clone(&state), runtime)) as Arc<dyn WorkerDriver>
    });
    let (placement, seed) = (Placement::Threads, entropy::draw()?);
    let resource_manager =
        ResourceManager::start_with(&server, transport, placement, epoch, seed, driver).await?;
    let line = ReadyLine::new(Role::ResourceManager, &resource_manager.resource_id)
        .rpc(resource_manager.rpc_address.host_port());
    server.ready(line);
    server.shutdown.wait().await;
    resource_manager.stop().await;
    Ok(())
}
