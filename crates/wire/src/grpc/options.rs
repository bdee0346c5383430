//! The settings of the gRPC transport.

use crate::PROTOCOL_VERSION;
use crate::address::Address;
use std::time::Duration;
use tonic::transport::{Endpoint, Error};

/// The settings of a [`GrpcTransport`](super::GrpcTransport).
#[derive(Debug, Clone)]
pub struct GrpcOptions {
    /// How long a call may take, and how long a stream may take to be opened; 10 s (Flink: `pekko.ask.timeout`). Who
    /// wants less bounds the call's future. Connecting counts.
    pub call_timeout: Duration,
    /// How long establishing a connection may take; 5 s. Shorter than `call_timeout`, so that a peer whose machine is
    /// gone is unreachable and not merely slow.
    pub connect_timeout: Duration,
    /// Both sides ask the other for a sign of life this often, idle or not; 5 s. A frame of 17 bytes each way.
    pub keep_alive_interval: Duration,
    /// A connection whose server gives no sign of life for this long after being asked is broken, and the next call
    /// makes a new one; 5 s.
    pub keep_alive_timeout: Duration,
    /// The same of the data exchange; 50 s (`heartbeat.timeout`). The records on a channel are lost with it, and whether a
    /// task executor lives is for heartbeats to say: a channel breaks no sooner than they give up (C-071).
    pub data_keep_alive_timeout: Duration,
    /// The largest message of a call or of a stream between roles, in bytes; 16 MiB. A job file travels in one.
    pub max_rpc_message: usize,
    /// The largest frame of the data exchange, in bytes; 4 MiB. A batch is at most 64 KiB unless one record is longer.
    pub max_data_message: usize,
    /// How many calls and streams one connection may carry at once; 65,536. The data exchange has a stream a channel:
    /// at a lower limit channels would wait for each other.
    pub max_streams: u32,
    /// How long a server that shuts down lets running calls and streams end before it breaks them off; 1 s. Programs
    /// have 5 s to end, this is a part of them.
    pub shutdown_grace: Duration,
    /// How long a new connection may stay silent before a server closes it; 10 s.
    pub first_byte_timeout: Duration,
    /// The version that is spoken: [`PROTOCOL_VERSION`] except in tests.
    pub protocol_version: u32,
}

impl Default for GrpcOptions {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            keep_alive_interval: Duration::from_secs(5),
            keep_alive_timeout: Duration::from_secs(5),
            data_keep_alive_timeout: Duration::from_secs(50),
            max_rpc_message: 16 << 20,
            max_data_message: 4 << 20,
            max_streams: 65_536,
            shutdown_grace: Duration::from_secs(1),
            first_byte_timeout: Duration::from_secs(10),
            protocol_version: PROTOCOL_VERSION,
        }
    }
}

/// One stream may have this much under way: far more than the credits of a channel allow.
const STREAM_WINDOW: u32 = 4 << 20;
/// A server is more patient with its clients than they are with it, and this long at least: to a client that merely
/// stood still for a moment a closed connection would look like a process that is gone, and calls under way count as
/// refused. Nothing depends on a server noticing soon; 20 s is hyper's own choice.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 64 << 20;

impl GrpcOptions {
    /// How a peer is called.
    pub(super) fn endpoint(&self, address: &Address) -> Result<Endpoint, Error> {
        self.endpoint_with(address, self.keep_alive_timeout)
    }

    /// How records are sent to a peer.
    pub(super) fn data_endpoint(&self, address: &Address) -> Result<Endpoint, Error> {
        self.endpoint_with(address, self.data_keep_alive_timeout)
    }

    fn endpoint_with(&self, address: &Address, keep_alive_timeout: Duration) -> Result<Endpoint, Error> {
        Ok(Endpoint::from_shared(address.as_str().to_owned())?
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(self.keep_alive_interval)
            .keep_alive_timeout(keep_alive_timeout)
            .keep_alive_while_idle(true))
    }

    /// How calls are served.
    pub(super) fn server(&self) -> tonic::transport::Server {
        let patience = self.keep_alive_timeout.max(self.data_keep_alive_timeout).max(SERVER_PATIENCE);
        tonic::transport::Server::builder()
            .max_concurrent_streams(self.max_streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keepalive_interval(Some(self.keep_alive_interval))
            .http2_keepalive_timeout(Some(patience))
    }
}
