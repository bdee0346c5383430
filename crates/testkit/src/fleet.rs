//! Task executors by the thousand, for a real resource manager: they register in two steps, keep their stream open and
//! answer heartbeats, over gRPC as real ones do. They have slots and run nothing.
//!
//! A real task executor is a process with a connection each way. Here some share one, so that a machine has room for
//! many; dropping a [`Group`] closes its connections and its port at once, which is what a killed process looks like.

mod member;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Context as _;
use runtime_core::time::TokioClock;
use tokio::task::JoinSet;
use wire::grpc::{GrpcOptions, GrpcTransport};
use wire::{Address, Endpoints, Serving, Transport as _};

use member::{Member, Members};

/// What happened so far, of all groups that share it.
#[derive(Debug, Default)]
pub struct Counts {
    registered: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Task executors that have registered, reported their slots and opened their stream.
    #[must_use]
    pub fn registered(&self) -> u64 {
        self.registered.load(Relaxed)
    }

    /// Heartbeats that the resource manager has taken.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }

    /// Heartbeats that it has not.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Task executors that were given up: their stream has ended, or they could not register.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// Task executors that share a connection and a port.
#[derive(Debug)]
pub struct Group {
    _serving: Serving,
    _running: JoinSet<()>,
}

impl Group {
    /// Serves at a free port and begins to register the task executors of these numbers, all at once. They are called
    /// `te-000000` and so on.
    ///
    /// # Errors
    /// There is no port, or the address is none.
    pub async fn start(
        resource_manager: &Address,
        numbers: std::ops::Range<u32>,
        slots: u32,
        counts: &Arc<Counts>,
    ) -> anyhow::Result<Self> {
        // Of its own: connections are shared by address within one transport.
        let transport = GrpcTransport::new(GrpcOptions::default(), tokio::runtime::Handle::current());
        let gateway = transport.connect_resource_manager(resource_manager);
        let members = Arc::new(Members::new(Arc::clone(&gateway), TokioClock::start(), Arc::clone(counts)));
        let endpoints = Endpoints { task_executor: Some(Arc::clone(&members) as _), ..Endpoints::default() };
        let serving = transport.serve("127.0.0.1:0", endpoints).await.context("a port for task executors")?;
        let mut running = JoinSet::new();
        for number in numbers {
            let member = Arc::new(Member::new(number, slots, serving.local_address()));
            running.spawn(Arc::clone(&members).run(member));
        }
        Ok(Self { _serving: serving, _running: running })
    }
}
