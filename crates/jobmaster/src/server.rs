//! A job master process: its loops, its endpoints, its beginning and its end.

use std::sync::Arc;
use std::time::Duration;

use checkpoint::{Stores, UrlStores};
use controller_events::{EventLoop, LoopOptions};
use dashmap::DashMap;
use entrypoint::config::keys;
use entrypoint::{Placement, ReadyLine, Role, Running, Server, StateDir, entropy};
use heartbeat::HeartbeatMetrics;
use runtime_core::{Clock, Epoch, Incarnation};
use tokio::sync::{mpsc, watch};
use wire::{Address, Endpoints, Transport};

use crate::dispatcher::{Dispatcher, DispatcherEvent, DispatcherProcessor, History, Parts, Started, take_up};
use crate::endpoint::{Endpoint, Masters};
use crate::job_store::JobStore;
use crate::master::Shared;
use crate::rest::{self, Api, Cluster};

/// How long an orderly stop waits for connections to end.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A job master that serves.
pub struct JobMaster {
    /// Submits, cancels and looks at jobs.
    pub dispatcher: Dispatcher,
    /// Where task executors and the resource manager reach it.
    pub rpc_address: Address,
    pub(crate) api: Api,
    masters: Masters,
    serving: wire::Serving,
    running: Running<DispatcherProcessor>,
}

impl JobMaster {
    /// Starts a job master within this process: its dispatcher runs and its gateway is served, REST is not. It takes up the
    /// jobs that an earlier life has left in the folder, and nothing else before ([`Self::taken_up`]). Without a folder
    /// nothing survives it. `stores` is where checkpoints are kept; `seed` draws its ids.
    ///
    /// # Errors
    /// The place to serve at cannot be had, or what earlier jobs have left cannot be listed.
    pub async fn start(
        server: &Server,
        transport: Arc<dyn Transport>,
        placement: Placement,
        state: Option<(StateDir, Epoch)>,
        stores: Arc<dyn Stores>,
        seed: u128,
    ) -> anyhow::Result<Self> {
        let config = &server.config;
        // Losing a job's task executors together is the job's loss all the same: it does not wait.
        let heartbeats = server.heartbeats()?.without_hold();
        let (state_dir, epoch) = match state {
            Some((dir, epoch)) => (Some(Arc::new(dir)), epoch),
            None => (None, Epoch(u64::try_from(server.clock.wall().0).unwrap_or(1).max(1))),
        };
        let history = Arc::new(History::open(state_dir.clone())?);
        let store = JobStore::new(state_dir);
        let left = store.jobs()?;
        let masters: Masters = Arc::new(DashMap::new());
        let (taken_up, started) = watch::channel(left.is_empty());
        let started = Started(started);
        let endpoint = Arc::new(Endpoint {
            masters: Arc::clone(&masters),
            epoch,
            started: started.clone(),
            clock: server.clock.clone(),
        });
        let endpoints = Endpoints { job_master: Some(endpoint), ..Endpoints::default() };
        let bind = config.get(&keys::RPC_BIND);
        let serving = transport
            .serve(&bind.to_string(), endpoints)
            .await
            .map_err(|e| anyhow::anyhow!("rpc.bind: {e}"))?;
        let rpc_address = server.advertised_address(&keys::RPC_ADVERTISE, serving.local_address())?;
        let resource_manager: Address = config.get(&keys::RESOURCEMANAGER_ADDRESS).as_str().parse()?;
        let shared = Shared {
            epoch,
            incarnation: Incarnation::from_u128(seed),
            rpc_address: rpc_address.clone(),
            resource_manager: resource_manager.clone(),
            heartbeats,
            beats_of_task_executors: Arc::new(HeartbeatMetrics::new("task executor")),
            beats_of_resource_manager: Arc::new(HeartbeatMetrics::new("resource manager")),
            slot_request_timeout: config.get(&keys::SLOT_REQUEST_TIMEOUT),
            slot_idle_timeout: config.get(&keys::SLOT_IDLE_TIMEOUT),
            transport: Arc::clone(&transport),
            metrics: server.metrics.clone(),
            stores,
            clock: server.clock.clone(),
            runtime: tokio::runtime::Handle::current(),
            placement,
        };
        server.metrics.add(Arc::clone(&shared.beats_of_task_executors) as _);
        server.metrics.add(Arc::clone(&shared.beats_of_resource_manager) as _);
        let views = Arc::new(DashMap::new());
        let (ended, mut ends) = mpsc::unbounded_channel();
        let processor = DispatcherProcessor::new(Parts {
            shared: shared.clone(),
            masters: Arc::clone(&masters),
            views: Arc::clone(&views),
            store: store.clone(),
            history: Arc::clone(&history),
            ended,
            started: taken_up,
            metrics: server.metrics.clone(),
            seed: (seed >> 64) as u64,
        });
        let mut options = LoopOptions::new(Arc::new(server.clock.clone()));
        options.name = "dispatcher".into();
        options.low_watermark = Some(entrypoint::MOST_REQUESTS);
        let event_loop = EventLoop::new(processor, options);
        let events = event_loop.handle();
        server.metrics.add(Arc::new(events.clone()));
        let running = placement.run(event_loop, &shared.runtime, &shared.clock)?;
        let told = events.clone();
        tokio::spawn(async move {
            while let Some(job) = ends.recv().await {
                if told.put(DispatcherEvent::JobEnded(job)).is_err() {
                    return;
                }
            }
        });
        if !left.is_empty() {
            let (events, history) = (events.clone(), Arc::clone(&history));
            placement.block(&shared.runtime, move || take_up(&store, &history, &left, &events));
        }
        let dispatcher = Dispatcher { events, views, history, started };
        let cluster = Arc::new(Cluster::new(transport.connect_resource_manager(&resource_manager)));
        let api = Api {
            dispatcher: dispatcher.clone(),
            cluster,
            clock: server.clock.clone(),
            stores: Arc::clone(&shared.stores),
            savepoints_dir: config.get(&keys::SAVEPOINTS_DIR).map(|dir| dir.as_str().to_owned()),
            operations: Arc::default(),
        };
        Ok(Self { dispatcher, rpc_address, api, masters, serving, running })
    }

    /// The routes of REST, to be served by whoever wants them.
    pub fn rest(&self) -> axum::Router {
        rest::router(self.api.clone())
    }

    /// Waits until the jobs of an earlier life have been taken up. Before, REST answers 503.
    pub async fn taken_up(&self) {
        self.dispatcher.started.over().await;
    }

    /// Says good-bye to everybody and ends. Jobs that run are suspended: their tasks stop, and the next life takes them up.
    pub async fn stop(self) {
        let jobs: Vec<_> = self.masters.iter().map(|master| master.events.clone()).collect();
        self.dispatcher.events.close();
        self.running.ended().await;
        for job in jobs {
            job.ended().await;
        }
        if tokio::time::timeout(STOP_GRACE, self.serving.shutdown()).await.is_err() {
            tracing::debug!("connections were still open after {STOP_GRACE:?} and are dropped");
        }
    }
}

/// Runs a job master process until it is told to stop.
///
/// # Errors
/// It cannot start: a port is taken, its folder is locked or cannot be written.
pub async fn run(mut server: Server) -> anyhow::Result<()> {
    let state = server.state_dir()?;
    let epoch = state.draw_epoch(server.clock.wall())?;
    let rest = server.listen(&keys::REST_BIND)?;
    let rest_address = rest.local_addr()?;
    let transport = Arc::new(server.grpc_transport());
    let state = Some((state, epoch));
    let stores = Arc::new(UrlStores::new(tokio::runtime::Handle::current()));
    let seed = entropy::draw()?;
    let master = JobMaster::start(&server, transport, Placement::Threads, state, stores, seed).await?;
    let mut stop = server.shutdown.clone();
    let served = axum::serve(rest, master.rest()).with_graceful_shutdown(async move { stop.wait().await });
    let served = tokio::spawn(served.into_future());
    tokio::select! {
        biased;
        () = master.taken_up() => {}
        () = server.shutdown.wait() => {}
    }
    let resource_id = entropy::resource_id(master.rpc_address.host_port(), entropy::draw()?)?;
    server.ready(
        ReadyLine::new(Role::JobMaster, &resource_id).rpc(master.rpc_address.host_port()).rest(rest_address),
    );
    server.shutdown.wait().await;
    master.stop().await;
    // Clients that keep a connection open do not keep the process.
    drop(tokio::time::timeout(STOP_GRACE, served).await);
    Ok(())
}
