//! What befalls a cluster, as a script: drawn from a seed, or written down as text.
//!
//! A line is a moment and a deed:
//!
//! ```text
//! 1.200s crash taskexecutor-1
//! 1.500s one-way jobmaster taskexecutor-2
//! 2.000s links lossy
//! 3.400s start taskexecutor-1
//! 4.000s heal jobmaster taskexecutor-2
//! 4.000s links calm
//! ```
//!
//! Every script ends with a cluster that is whole: what was cut is healed, what crashed is started, links are calm.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tidegate::cluster::Node;
use wire::network::{Faults, Loss};

/// What is done to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Nothing passes between two nodes any more.
    Cut(Node, Node),
    /// Nothing passes from one node to another any more; the other direction stays.
    OneWay(Node, Node),
    /// Everything passes between two nodes again.
    Heal(Node, Node),
    /// A node dies.
    Crash(Node),
    /// A node that died lives again.
    Start(Node),
    /// What all links do from now on.
    Links(Weather),
    /// Whether the checkpoint store takes anything.
    Store(StoreState),
}

/// What links do to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// 1 ms, nothing lost.
    Calm,
    /// Up to 200 ms, so that messages of different streams and calls overtake each other.
    Slow,
    /// Every twentieth message of a call is lost.
    Lossy,
    /// Every tenth request is carried out twice.
    Doubling,
    /// Streams break now and then.
    Breaking,
}

/// How the checkpoint store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// It refuses whatever would be written.
    Full,
    /// It takes everything.
    Well,
}

impl Weather {
    /// The faults of every link.
    #[must_use]
    pub fn faults(self) -> Faults {
        let millis = Duration::from_millis;
        let calm = Faults::default();
        match self {
            Self::Calm => calm,
            Self::Slow => Faults { max_delay: millis(200), ..calm },
            Self::Lossy => Faults { loss: 0.05, loss_shows: Loss::Either, max_delay: millis(20), ..calm },
            Self::Doubling => Faults { duplication: 0.1, max_delay: millis(50), ..calm },
            Self::Breaking => Faults { stream_break: 0.01, max_delay: millis(20), ..calm },
        }
    }
}

/// A deed and when it is done, counted from the script's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Duration,
    /// What.
    pub deed: Deed,
}

/// Steps in the order of their moments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    steps: Vec<Step>,
}

/// What a drawn script may contain.
#[derive(Debug, Clone, Copy)]
pub struct Menu {
    /// How many task executors there are.
    pub task_executors: u32,
    /// Whether the masters crash too.
    pub masters: bool,
    /// Whether the checkpoint store fails.
    pub store: bool,
    /// For how long something goes wrong now and then.
    pub length: Duration,
}

impl Script {
    /// A script of single and overlapping faults, the same one for the same seed.
    #[must_use]
    pub fn drawn(seed: u64, menu: Menu) -> Self {
        let mut draw = Draw { rng: SmallRng::seed_from_u64(seed), menu, down: BTreeSet::new() };
        let mut steps = Vec::new();
        let mut at = draw.millis(200, 1_500);
        while at < menu.length {
            let (deed, undone) = draw.fault(at);
            steps.push(Step { at, deed });
            steps.push(undone);
            at += draw.millis(100, 3_000);
        }
        steps.sort_by_key(|step| step.at);
        Self { steps }
    }

    /// The steps in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

struct Draw {
    rng: SmallRng,
    menu: Menu,
    /// Nodes that are down, and until when: nobody dies twice at a time.
    down: BTreeSet<(Node, Duration)>,
}

impl Draw {
    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(least..=most))
    }

    fn fault(&mut self, at: Duration) -> (Deed, Step) {
        // Most are over before anybody gives up, some last longer than every timeout.
        let lasting =
            if self.rng.random_bool(0.7) { self.millis(100, 2_000) } else { self.millis(5_000, 15_000) };
        let until = at + lasting;
        let (deed, undo) = match self.rng.random_range(0..10) {
            0..=1 => self.cut(),
            2 => {
                let (from, to) = self.pair();
                (Deed::OneWay(from, to), Deed::Heal(from, to))
            }
            3..=6 => self.crash(at, until),
            7 if self.menu.store => (Deed::Store(StoreState::Full), Deed::Store(StoreState::Well)),
            _ => {
                let kinds = [Weather::Slow, Weather::Lossy, Weather::Doubling, Weather::Breaking];
                let weather = kinds.choose(&mut self.rng).copied().unwrap_or(Weather::Slow);
                (Deed::Links(weather), Deed::Links(Weather::Calm))
            }
        };
        (deed, Step { at: until, deed: undo })
    }

    fn cut(&mut self) -> (Deed, Deed) {
        let (a, b) = self.pair();
        (Deed::Cut(a, b), Deed::Heal(a, b))
    }

    fn crash(&mut self, at: Duration, until: Duration) -> (Deed, Deed) {
        self.down.retain(|(_, up_again)| *up_again >= at);
        let down: Vec<Node> = self.down.iter().map(|(node, _)| *node).collect();
        let mut alive = self.nodes();
        alive.retain(|node| {
            !down.contains(node) && (self.menu.masters || matches!(node, Node::TaskExecutor(_)))
        });
        let Some(node) = alive.choose(&mut self.rng).copied() else { return self.cut() };
        self.down.insert((node, until));
        (Deed::Crash(node), Deed::Start(node))
    }

    fn nodes(&self) -> Vec<Node> {
        let task_executors = (1..=self.menu.task_executors).map(Node::TaskExecutor);
        [Node::ResourceManager, Node::JobMaster].into_iter().chain(task_executors).collect()
    }

    fn pair(&mut self) -> (Node, Node) {
        let nodes = self.nodes();
        let first = self.rng.random_range(0..nodes.len());
        let second = (first + self.rng.random_range(1..nodes.len())) % nodes.len();
        let node = |index: usize| nodes.get(index).copied().unwrap_or(Node::JobMaster);
        (node(first), node(second))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|Step { at, deed }| writeln!(f, "{:.3}s {deed}", at.as_secs_f64()))
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(a, b) => write!(f, "cut {a} {b}"),
            Self::OneWay(from, to) => write!(f, "one-way {from} {to}"),
            Self::Heal(a, b) => write!(f, "heal {a} {b}"),
            Self::Crash(node) => write!(f, "crash {node}"),
            Self::Start(node) => write!(f, "start {node}"),
            Self::Links(weather) => write!(f, "links {}", format!("{weather:?}").to_lowercase()),
            Self::Store(state) => write!(f, "store {}", format!("{state:?}").to_lowercase()),
        }
    }
}

impl FromStr for Script {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut steps = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let step = step(line).with_context(|| format!("line {}: `{line}`", number + 1))?;
            let in_order = steps.last().is_none_or(|last: &Step| last.at <= step.at);
            ensure!(in_order, "line {}: `{line}` is earlier than the line before it", number + 1);
            steps.push(step);
        }
        Ok(Self { steps })
    }
}

fn step(line: &str) -> anyhow::Result<Step> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [at, deed @ ..] = words.as_slice() else { bail!("a moment and a deed are expected") };
    let seconds: f64 = at.strip_suffix('s').context("the moment is written like `1.250s`")?.parse()?;
    let at = Duration::try_from_secs_f64(seconds)?;
    let deed = match deed {
        ["cut", a, b] => Deed::Cut(node(a)?, node(b)?),
        ["one-way", from, to] => Deed::OneWay(node(from)?, node(to)?),
        ["heal", a, b] => Deed::Heal(node(a)?, node(b)?),
        ["crash", name] => Deed::Crash(node(name)?),
        ["start", name] => Deed::Start(node(name)?),
        ["links", "calm"] => Deed::Links(Weather::Calm),
        ["links", "slow"] => Deed::Links(Weather::Slow),
        ["links", "lossy"] => Deed::Links(Weather::Lossy),
        ["links", "doubling"] => Deed::Links(Weather::Doubling),
        ["links", "breaking"] => Deed::Links(Weather::Breaking),
        ["store", "full"] => Deed::Store(StoreState::Full),
        ["store", "well"] => Deed::Store(StoreState::Well),
        _ => bail!(
            "no such deed; there are: cut A B, one-way FROM TO, heal A B, crash NODE, start NODE, links WEATHER, store STATE"
        ),
    };
    Ok(Step { at, deed })
}

fn node(name: &str) -> anyhow::Result<Node> {
    match name {
        "resourcemanager" => Ok(Node::ResourceManager),
        "jobmaster" => Ok(Node::JobMaster),
        _ => {
            let number = name.strip_prefix("taskexecutor-").and_then(|number| number.parse().ok());
            number.map(Node::TaskExecutor).with_context(|| format!("`{name}` is no node"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MENU: Menu =
        Menu { task_executors: 2, masters: true, store: true, length: Duration::from_secs(30) };

    #[test]
    fn what_is_written_down_is_read_back() {
        for seed in 0..50 {
            let script = Script::drawn(seed, MENU);
            assert_eq!(script.to_string().parse::<Script>().unwrap(), script, "seed {seed}");
        }
    }

    #[test]
    fn whatever_is_done_is_undone_later() {
        for seed in 0..50 {
            let script = Script::drawn(seed, MENU);
            let (mut down, mut links, mut store) = (BTreeSet::new(), Weather::Calm, StoreState::Well);
            for step in script.steps() {
                match step.deed {
                    Deed::Crash(node) => assert!(down.insert(node), "seed {seed}: {node} dies twice"),
                    Deed::Start(node) => assert!(down.remove(&node), "seed {seed}: {node} is up already"),
                    Deed::Links(weather) => links = weather,
                    Deed::Store(state) => store = state,
                    _ => {}
                }
            }
            assert!(down.is_empty(), "seed {seed}");
            assert_eq!((links, store), (Weather::Calm, StoreState::Well), "seed {seed}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let error = "0.5s cut jobmaster taskexecutor-1\n1s explode".parse::<Script>().unwrap_err();
        assert!(format!("{error:#}").starts_with("line 2: `1s explode`: no such deed"), "{error:#}");
        let error = "2s crash jobmaster\n1s start jobmaster".parse::<Script>().unwrap_err();
        assert!(error.to_string().contains("is earlier"), "{error}");
    }
}
