//! What a message meets on a link: the pure core of the in-memory network.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What a link does to the messages that cross it in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// The least time a message travels.
    pub min_delay: Duration,
    /// The most.
    pub max_delay: Duration,
    /// How likely a request or an answer of a call is lost, 0 to 1.
    pub loss: f64,
    /// How a caller notices a loss.
    pub loss_shows: Loss,
    /// How likely a request is carried out twice, 0 to 1: what a sender's retry does to a receiver.
    pub duplication: f64,
    /// How likely a message of a stream breaks the stream, 0 to 1.
    pub stream_break: f64,
}

/// How a lost message is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Not at all: the call ends at its deadline.
    Silent,
    /// As an unreachable peer.
    Unreachable,
    /// Sometimes so, sometimes so.
    Either,
}

impl Default for Faults {
    /// A calm link: 1 ms, nothing lost.
    fn default() -> Self {
        let delay = Duration::from_millis(1);
        Self {
            min_delay: delay,
            max_delay: delay,
            loss: 0.0,
            loss_shows: Loss::Silent,
            duplication: 0.0,
            stream_break: 0.0,
        }
    }
}

/// What becomes of the request or answer of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    Deliver(Duration),
    Twice(Duration, Duration),
    Silence { cut: bool },
    Unreachable(Duration),
}

/// What becomes of a message of a stream, given that its link is not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFate {
    Deliver(Duration),
    Break,
}

/// All links: which are cut, what each does, and the source of chance.
pub(crate) struct Links {
    rng: SmallRng,
    default: Faults,
    faults: BTreeMap<(Arc<str>, Arc<str>), Faults>,
    cut: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Links {
    pub(crate) fn new(seed: u64, default: Faults) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), default, faults: BTreeMap::new(), cut: BTreeSet::new() }
    }

    pub(crate) fn cut(&mut self, from: &str, to: &str) {
        self.cut.insert((from.into(), to.into()));
    }

    pub(crate) fn heal(&mut self, from: &str, to: &str) {
        self.cut.remove(&(from.into(), to.into()));
    }

    pub(crate) fn heal_all(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn set_default(&mut self, faults: Faults) {
        self.default = faults;
    }

    pub(crate) fn set_link(&mut self, from: &str, to: &str, faults: Faults) {
        self.faults.insert((from.into(), to.into()), faults);
    }

    pub(crate) fn is_cut(&self, from: &Arc<str>, to: &Arc<str>) -> bool {
        self.cut.contains(&(Arc::clone(from), Arc::clone(to)))
    }

    /// What becomes of one message of a call. Within a node nothing happens to it.
    pub(crate) fn call(&mut self, from: &Arc<str>, to: &Arc<str>, may_duplicate: bool) -> CallFate {
        if from == to {
            return CallFate::Deliver(Duration::ZERO);
        }
        if self.is_cut(from, to) {
            return CallFate::Silence { cut: true };
        }
        let faults = self.faults_of(from, to);
        let delay = self.delay(&faults);
        if self.chance(faults.loss) {
            let silent = match faults.loss_shows {
                Loss::Silent => true,
                Loss::Unreachable => false,
                Loss::Either => self.chance(0.5),
            };
            return if silent { CallFate::Silence { cut: false } } else { CallFate::Unreachable(delay) };
        }
        if may_duplicate && self.chance(faults.duplication) {
            return CallFate::Twice(delay, self.delay(&faults));
        }
        CallFate::Deliver(delay)
    }

    /// What becomes of one message of a stream.
    pub(crate) fn stream(&mut self, from: &Arc<str>, to: &Arc<str>) -> StreamFate {
        if from == to {
            return StreamFate::Deliver(Duration::ZERO);
        }
        let faults = self.faults_of(from, to);
        let delay = self.delay(&faults);
        if self.chance(faults.stream_break) { StreamFate::Break } else { StreamFate::Deliver(delay) }
    }

    /// How long a refusal travels.
    pub(crate) fn refusal(&mut self, from: &Arc<str>, to: &Arc<str>) -> Duration {
        let faults = self.faults_of(from, to);
        if from == to { Duration::ZERO } else { self.delay(&faults) }
    }

    fn faults_of(&self, from: &Arc<str>, to: &Arc<str>) -> Faults {
        self.faults.get(&(Arc::clone(from), Arc::clone(to))).unwrap_or(&self.default).clone()
    }

    fn delay(&mut self, faults: &Faults) -> Duration {
        // Whole milliseconds where possible: tokio's timers know nothing finer.
        let least = faults.min_delay.min(faults.max_delay);
        let spread = u64::try_from((faults.max_delay - least).as_millis()).unwrap_or(u64::MAX);
        least + Duration::from_millis(self.rng.random_range(0..=spread))
    }

    fn chance(&mut self, likelihood: f64) -> bool {
        // Drawn even where the outcome is certain: switching one fault off leaves the other draws as they were.
        let drawn: f64 = self.rng.random();
        drawn < likelihood
    }
}
