//! What every role needs to be part of a cluster, made of the configuration.

use anyhow::Context;
use heartbeat::{HeartbeatOptions, HeartbeatServices};
use wire::Address;
use wire::grpc::{GrpcOptions, GrpcTransport};

use crate::config::{Advertise, Auto, Detector, Key, keys};
use crate::server::Server;

impl Server {
    /// The factory of heartbeat managers. Doubtful settings are logged once. Beside what is configured, suspicion and the
    /// guard against own stalls are on; who does not watch task executors for the whole cluster makes its managers of
    /// the services [`without_hold`](HeartbeatServices::without_hold).
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn heartbeats(&self) -> anyhow::Result<HeartbeatServices> {
        let options = HeartbeatOptions {
            interval: self.config.get(&keys::HEARTBEAT_INTERVAL),
            timeout: self.config.get(&keys::HEARTBEAT_TIMEOUT),
            rpc_failure_threshold: self.config.get(&keys::HEARTBEAT_RPC_FAILURE_THRESHOLD),
            detector: match self.config.get(&keys::HEARTBEAT_DETECTOR) {
                Detector::Fixed => heartbeat::Detector::Fixed,
                Detector::Adaptive => heartbeat::Detector::Adaptive,
            },
            suspicion: true,
            own_stall_guard: true,
            hold: self.config.get(&keys::HEARTBEAT_HOLD),
            stuck_timeout: self.config.get(&keys::HEARTBEAT_STUCK_TIMEOUT).0,
            self_fence: self.config.get(&keys::HEARTBEAT_SELF_FENCE),
            ..HeartbeatOptions::default()
        };
        let services = HeartbeatServices::new(options)?;
        for warning in services.warnings() {
            tracing::warn!("{warning}");
        }
        Ok(services)
    }

    /// The transport between processes. It notices a dead connection before heartbeats give a verdict, so that none is
    /// used beyond it, and no sooner than half-way: a process that is merely busy keeps its connections. Those that carry
    /// records last as long as heartbeats wait, for the records on them are lost with them.
    #[must_use]
    pub fn grpc_transport(&self) -> GrpcTransport {
        let half = self.config.get(&keys::HEARTBEAT_INTERVAL) / 2;
        let timeout = self.config.get(&keys::HEARTBEAT_TIMEOUT);
        let patience = timeout.saturating_sub(half) / 2;
        let defaults = GrpcOptions::default();
        let options = GrpcOptions {
            keep_alive_interval: half.min(defaults.keep_alive_interval),
            keep_alive_timeout: patience.min(defaults.keep_alive_timeout),
            data_keep_alive_timeout: timeout,
            ..defaults
        };
        GrpcTransport::new(options, tokio::runtime::Handle::current())
    }

    /// What peers are told to connect to: the advertised address, or the one that is served.
    ///
    /// # Errors
    /// The advertised one is no address.
    pub fn advertised_address(
        &self,
        key: &'static Key<Auto<Advertise>>,
        served: &Address,
    ) -> anyhow::Result<Address> {
        let Auto(Some(advertise)) = self.config.get(key) else { return Ok(served.clone()) };
        let port = served.host_port().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
        let text = format!("http://{}", advertise.at(([0, 0, 0, 0], port).into()));
        text.parse().with_context(|| key.name)
    }
}
