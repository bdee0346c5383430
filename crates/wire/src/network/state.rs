//! What all links and nodes of a network share.

use super::NetworkOptions;
use super::faults::{CallFate, Links, StreamFate};
use super::log::{Fate, NetworkEvent};
use crate::transport::Endpoints;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// One direction of a link between two lives of nodes.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) from: Life,
    pub(super) to: Life,
}

/// One life of a node.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) node: Arc<str>,
    pub(super) number: u64,
}

impl Path {
    pub(super) fn back(&self) -> Self {
        Self { from: self.to.clone(), to: self.from.clone() }
    }
}

/// How a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    Open,
    Held,
    Broken,
}

/// Who answers at an address.
pub(super) struct Served {
    pub(super) life: Life,
    pub(super) endpoints: Endpoints,
    id: u64,
}

struct State {
    links: Links,
    /// How often each node has crashed.
    lives: BTreeMap<Arc<str>, u64>,
    served: BTreeMap<Arc<str>, Served>,
    next_id: u64,
    next_port: u16,
    /// Absent: nothing is kept.
    log: Option<Vec<NetworkEvent>>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// Woken at every cut, heal and crash; in the order of waiting, which keeps runs equal.
    changed: Notify,
    began: Instant,
    pub(super) call_timeout: Duration,
    break_streams: bool,
}

impl Shared {
    pub(super) fn new(options: NetworkOptions) -> Self {
        let NetworkOptions { seed, call_timeout, faults, break_streams, keep_log } = options;
        let state = State {
            links: Links::new(seed, faults),
            lives: BTreeMap::new(),
            served: BTreeMap::new(),
            next_id: 0,
            next_port: 40_000,
            log: keep_log.then(Vec::new),
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            began: Instant::now(),
            call_timeout,
            break_streams,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Links)) {
        change(&mut self.lock().links);
        self.changed.notify_waiters();
    }

    pub(super) fn crash(&self, node: &str) {
        {
            let mut state = self.lock();
            let name: Arc<str> = node.into();
            *state.lives.entry(Arc::clone(&name)).or_default() += 1;
            state.served.retain(|_, served| served.life.node != name);
            state.record(self.began, &name, &name, "node".into(), Fate::Crashed);
        }
        self.changed.notify_waiters();
    }

    /// The present life of a node.
    pub(super) fn life(&self, node: &str) -> Life {
        let state = self.lock();
        Life { node: node.into(), number: state.lives.get(node).copied().unwrap_or(0) }
    }

    pub(super) fn is_alive(&self, life: &Life) -> bool {
        self.lock().is_alive(life)
    }

    /// Serves at a port of a node; port 0: a free one. Yields the port and what ends it.
    pub(super) fn serve(
        &self,
        life: &Life,
        port: u16,
        endpoints: Endpoints,
    ) -> Result<(u16, u64), &'static str> {
        let mut state = self.lock();
        if !state.is_alive(life) {
            return Err("the node has crashed since");
        }
        let port = if port == 0 {
            state.next_port = state.next_port.saturating_add(1);
            state.next_port
        } else {
            port
        };
        let at: Arc<str> = format!("{}:{port}", life.node).into();
        if state.served.contains_key(&at) {
            return Err("the port is in use");
        }
        state.next_id += 1;
        let id = state.next_id;
        state.served.insert(at, Served { life: life.clone(), endpoints, id });
        Ok((port, id))
    }

    pub(super) fn end_serving(&self, id: u64) {
        self.lock().served.retain(|_, served| served.id != id);
    }

    /// Who answers at `host_port`, if anybody does.
    pub(super) fn find(&self, host_port: &str) -> Option<(Life, Endpoints)> {
        self.lock().served.get(host_port).map(|served| (served.life.clone(), served.endpoints.clone()))
    }

    /// Decides and records what becomes of a message of a call.
    pub(super) fn call(&self, path: &Path, message: Arc<str>, may_duplicate: bool) -> CallFate {
        let mut state = self.lock();
        let (from, to) = (&path.from.node, &path.to.node);
        let fate = state.links.call(from, to, may_duplicate);
        let recorded = match fate {
            CallFate::Deliver(after) => Fate::Delivered(after),
            CallFate::Twice(first, second) => Fate::Duplicated(first, second),
            CallFate::Silence { cut: true } => Fate::Cut,
            CallFate::Silence { cut: false } => Fate::Lost,
            CallFate::Unreachable(after) => Fate::LostUnreachable(after),
        };
        state.record(self.began, from, to, message, recorded);
        fate
    }

    /// Decides and records how a call to a place where nobody serves ends: refused after a while, or silence.
    pub(super) fn refusal(&self, from: &Arc<str>, to: &Arc<str>, message: Arc<str>) -> Option<Duration> {
        let mut state = self.lock();
        let cut = from != to && (state.links.is_cut(from, to) || state.links.is_cut(to, from));
        let after = (!cut).then(|| state.links.refusal(from, to));
        state.record(self.began, from, to, message, after.map_or(Fate::Cut, Fate::Refused));
        after
    }

    /// Decides and records what becomes of a message of a stream.
    pub(super) fn stream(&self, path: &Path, message: Arc<str>) -> StreamFate {
        let mut state = self.lock();
        let (from, to) = (&path.from.node, &path.to.node);
        let mut fate = state.links.stream(from, to);
        let recorded = match fate {
            _ if state.links.is_cut(from, to) => {
                // It leaves the cut as it would have left its sender: now.
                fate = StreamFate::Deliver(Duration::ZERO);
                Fate::Held
            }
            StreamFate::Deliver(after) => Fate::Delivered(after),
            StreamFate::Break => Fate::Broken,
        };
        state.record(self.began, from, to, message, recorded);
        fate
    }

    /// How a stream along this path stands now.
    pub(super) fn passage(&self, path: &Path) -> Passage {
        let state = self.lock();
        let (from, to) = (&path.from.node, &path.to.node);
        let cut = state.links.is_cut(from, to);
        let dead = !state.is_alive(&path.from) || !state.is_alive(&path.to);
        if dead || (self.break_streams && (cut || state.links.is_cut(to, from))) {
            Passage::Broken
        } else if cut {
            Passage::Held
        } else {
            Passage::Open
        }
    }

    /// Resolves when a stream along this path is broken.
    pub(super) async fn broken(&self, path: &Path) {
        self.until(|| self.passage(path) == Passage::Broken).await;
    }

    /// Resolves when a stream along this path is not held (any more).
    pub(super) async fn not_held(&self, path: &Path) {
        self.until(|| self.passage(path) != Passage::Held).await;
    }

    /// Resolves when a life has ended.
    pub(super) async fn ended(&self, life: &Life) {
        self.until(|| !self.is_alive(life)).await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            // Listening before looking: a change in between is not missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn log(&self) -> Vec<NetworkEvent> {
        self.lock().log.clone().unwrap_or_default()
    }

    pub(super) fn take_log(&self) -> Vec<NetworkEvent> {
        self.lock().log.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl State {
    fn is_alive(&self, life: &Life) -> bool {
        self.lives.get(&life.node).copied().unwrap_or(0) == life.number
    }

    fn record(&mut self, began: Instant, from: &Arc<str>, to: &Arc<str>, message: Arc<str>, fate: Fate) {
        let Some(log) = &mut self.log else { return };
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        log.push(NetworkEvent { at: began.elapsed(), from, to, message, fate });
    }
}
