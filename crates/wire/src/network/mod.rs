//! A network in memory, at the level of messages, for simulations.
//!
//! The roles' gateways over links that delay, lose, duplicate, are cut and heal; nodes that crash. Everything runs on
//! tokio's time and on one thread: on a current-thread runtime with a paused clock, two runs with one seed have equal
//! event logs. What a message meets on its way is decided by a pure core ([`faults`]); this shell carries it out.
//!
//! - A call crosses the link twice. Lost or cut off, it ends at its deadline, or at once as unreachable.
//! - A stream is like a connection: its messages are delayed but stay in order, a cut holds them until it heals, or
//!   breaks the stream where [`NetworkOptions::break_streams`] says so. A stream is never missing one message.
//! - What a node was carrying out when it crashed is dropped, and its callers see a broken connection.
//!
//! It knows nothing of bytes, versions or limits: those belong to gRPC and are tested there.

pub mod faults;
pub(crate) mod link;
pub mod log;
mod node;
mod pipe;
mod state;
#[cfg(test)]
mod tests;

pub use faults::{Faults, Loss};
pub use log::{Fate, NetworkEvent};
pub use node::NodeTransport;

use state::Shared;
use std::sync::Arc;
use std::time::Duration;

/// The settings of an [`InMemoryNetwork`].
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// What all randomness is drawn from.
    pub seed: u64,
    /// How long a call may take; 10 s, as on gRPC.
    pub call_timeout: Duration,
    /// What every link does, unless [`InMemoryNetwork::set_link_faults`] says otherwise for one.
    pub faults: Faults,
    /// Whether a cut breaks the streams across it at once; otherwise they stall until it heals.
    pub break_streams: bool,
    /// Whether what happens is kept for [`InMemoryNetwork::log`].
    pub keep_log: bool,
}

impl NetworkOptions {
    /// A calm network: 1 ms each way, nothing lost, everything logged.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            call_timeout: Duration::from_secs(10),
            faults: Faults::default(),
            break_streams: false,
            keep_log: true,
        }
    }

    /// No way at all between the nodes and nothing logged: for a cluster that lives in one process for real.
    #[must_use]
    pub fn instant() -> Self {
        let faults = Faults { min_delay: Duration::ZERO, max_delay: Duration::ZERO, ..Faults::default() };
        Self { faults, keep_log: false, ..Self::calm(0) }
    }
}

/// Named nodes and the links between them. Cheap to clone; clones are the same network.
#[derive(Clone)]
pub struct InMemoryNetwork {
    shared: Arc<Shared>,
}

impl InMemoryNetwork {
    /// A network without nodes. To be made within the tokio runtime that will run it: its log counts from now.
    #[must_use]
    pub fn new(options: NetworkOptions) -> Self {
        Self { shared: Arc::new(Shared::new(options)) }
    }

    /// The transport of a node, for its present life: after a [`crash`](Self::crash) the node's next life asks again.
    /// What it serves at `host:port` is reached at `http://NAME:port`, whatever the host.
    #[must_use]
    pub fn node(&self, name: &str) -> NodeTransport {
        NodeTransport::new(Arc::clone(&self.shared), name)
    }

    /// Lets nothing pass between two nodes any more.
    pub fn cut(&self, a: &str, b: &str) {
        self.shared.change(|links| {
            links.cut(a, b);
            links.cut(b, a);
        });
    }

    /// Lets nothing pass from one node to another any more; the other direction stays as it is.
    pub fn cut_one_way(&self, from: &str, to: &str) {
        self.shared.change(|links| links.cut(from, to));
    }

    /// Lets everything pass between two nodes again.
    pub fn heal(&self, a: &str, b: &str) {
        self.shared.change(|links| {
            links.heal(a, b);
            links.heal(b, a);
        });
    }

    /// Lets everything pass again, everywhere.
    pub fn heal_all(&self) {
        self.shared.change(faults::Links::heal_all);
    }

    /// Ends a node's present life: what it serves is gone, its calls and streams are broken. The caller of this ends
    /// the node's tasks.
    pub fn crash(&self, name: &str) {
        self.shared.crash(name);
    }

    /// Changes what every link does from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.change(|links| links.set_default(faults));
    }

    /// Changes what one direction of one link does from now on.
    pub fn set_link_faults(&self, from: &str, to: &str, faults: Faults) {
        self.shared.change(|links| links.set_link(from, to, faults));
    }

    /// What has happened so far, in order.
    #[must_use]
    pub fn log(&self) -> Vec<NetworkEvent> {
        self.shared.log()
    }

    /// What has happened since this was last called, in order; the log is empty afterwards.
    #[must_use]
    pub fn take_log(&self) -> Vec<NetworkEvent> {
        self.shared.take_log()
    }
}

impl std::fmt::Debug for InMemoryNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InMemoryNetwork").finish_non_exhaustive()
    }
}
