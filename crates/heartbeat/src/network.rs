//! An in-memory network whose links can be cut: for tests, of this crate and of its users.
//!
//! It carries messages between named nodes on a clock that the test passes in, with delay and loss from a seed, so that equal
//! seeds give equal runs. A link is cut in one direction or both, a node is killed and started again. It moves nothing by itself:
//! the test asks what arrives by now and when the next message does.

use crate::outcome::RpcOutcome;
use runtime_core::Tick;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A message that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived<A, M> {
    /// Who sent it.
    pub from: A,
    /// For whom it is.
    pub to: A,
    /// What it says.
    pub message: M,
}

/// A network between nodes named `A` for messages `M`.
///
/// ```
/// use heartbeat::{Arrived, InMemoryNetwork, RpcOutcome};
/// use runtime_core::Tick;
/// use std::time::Duration;
///
/// let mut network = InMemoryNetwork::new(42).latency(Duration::from_millis(1), Duration::from_millis(5));
/// network.start("master");
/// network.start("worker");
/// assert_eq!(network.send("master", "worker", "how are you", Tick::ZERO), RpcOutcome::Delivered);
/// let at = network.next_arrival().unwrap();
/// assert_eq!(network.arrive(at), Some(Arrived { from: "master", to: "worker", message: "how are you" }));
///
/// network.cut("worker", "master");
/// assert_eq!(network.send("worker", "master", "well", at), RpcOutcome::Other, "no answer, and no refusal");
/// network.kill("worker");
/// assert_eq!(network.send("master", "worker", "?", at), RpcOutcome::Unreachable);
/// ```
#[derive(Debug, Clone)]
pub struct InMemoryNetwork<A, M> {
    random: u64,
    least: Duration,
    most: Duration,
    loss: f64,
    up: BTreeSet<A>,
    cut: BTreeSet<(A, A)>,
    /// By time, and by order of sending.
    under_way: BTreeMap<(Tick, u64), Arrived<A, M>>,
    sent: u64,
}

impl<A: Ord + Clone, M> InMemoryNetwork<A, M> {
    /// A network without nodes, delay or loss.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            random: seed,
            least: Duration::ZERO,
            most: Duration::ZERO,
            loss: 0.0,
            up: BTreeSet::new(),
            cut: BTreeSet::new(),
            under_way: BTreeMap::new(),
            sent: 0,
        }
    }

    /// The same with messages that take between `least` and `most`; later ones may overtake earlier ones.
    #[must_use]
    pub const fn latency(mut self, least: Duration, most: Duration) -> Self {
        (self.least, self.most) = (least, most);
        self
    }

    /// The same with this share of messages lost, between 0 and 1.
    #[must_use]
    pub const fn loss(mut self, share: f64) -> Self {
        self.loss = share;
        self
    }

    /// A node comes up.
    pub fn start(&mut self, node: A) {
        self.up.insert(node);
    }

    /// A node is gone: what is sent to it is refused, what is under way to it is lost. What it sent arrives.
    pub fn kill(&mut self, node: A) {
        self.under_way.retain(|_, message| message.to != node);
        self.up.remove(&node);
    }

    /// What `from` sends to `to` is lost from now on, without a refusal.
    pub fn cut(&mut self, from: A, to: A) {
        self.cut.insert((from, to));
    }

    /// Cuts the link in both directions.
    pub fn cut_both(&mut self, one: A, other: A) {
        self.cut(one.clone(), other.clone());
        self.cut(other, one);
    }

    /// The link works again, in both directions.
    pub fn heal(&mut self, one: A, other: A) {
        self.cut.remove(&(one.clone(), other.clone()));
        self.cut.remove(&(other, one));
    }

    /// Sends a message. The outcome is what the caller of a remote procedure would come to know: delivered, refused, or that
    /// the call ran out of time.
    pub fn send(&mut self, from: A, to: A, message: M, now: Tick) -> RpcOutcome {
        if self.cut.contains(&(from.clone(), to.clone())) || self.draw() < self.loss {
            return RpcOutcome::Other;
        }
        if !self.up.contains(&to) {
            return RpcOutcome::Unreachable;
        }
        let delay = self.least + (self.most.saturating_sub(self.least)).mul_f64(self.draw());
        self.sent += 1;
        self.under_way.insert((now + delay, self.sent), Arrived { from, to, message });
        RpcOutcome::Delivered
    }

    /// The next message that has arrived by `now`.
    pub fn arrive(&mut self, now: Tick) -> Option<Arrived<A, M>> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When the next message arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Tick> {
        self.under_way.keys().next().map(|(at, _)| *at)
    }

    /// A number from 0 to below 1 (splitmix64).
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
