//! The search: breadth first over histories, each replayed from its beginning.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::fingerprint::fingerprint;
use crate::operator::tests::driver::ms;
use crate::operator::tests::model::pair::Pair;
use crate::operator::tests::model::setup::{Answer, Asks, Element, Seen, Setup};
use crate::operator::tests::model::{Item, State};
use crate::*;

/// What may happen, and with what.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) setup: Setup,
    /// What the operator is like that the snapshot is restored into.
    pub(super) restored: Setup,
    /// In this order, each once.
    pub(super) inputs: Vec<Element>,
    /// Whether time may also pass without the timers being looked at.
    pub(super) late: bool,
    /// Whether histories count as the same only where nothing that an operator may still carry is different, and whether
    /// each state is brought to its end in every way instead of one.
    pub(super) fine: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The next input.
    Push,
    /// The running attempt of this record completes.
    Answer(u32, Kind),
    /// The oldest attempt of this record completes, which is not the one awaited.
    Stale(u32),
    /// Time passes until the next timer, by one tick, or by one tick while nobody looks.
    ToNextTimer,
    Tick,
    Sleep,
    End,
    Restore,
    Take,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ok,
    Retryable,
    Final,
    Lost,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Ok, Self::Retryable, Self::Final, Self::Lost];

    const fn answer(self) -> Answer {
        match self {
            Self::Ok => Ok(7),
            Self::Retryable => Err(CallError::Error(1)),
            Self::Final => Err(CallError::Error(0)),
            Self::Lost => Err(CallError::HandleDropped),
        }
    }
}

/// The ways in which each state is brought to its end.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Completions,
    Time,
    Close,
}

/// A pair of operator and model in the middle of a history.
pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) pair: Pair,
    pub(super) pushed: usize,
    pub(super) restored: bool,
    /// What has left, records alone.
    left: Vec<u32>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let pair = Pair::new(scenario.setup.clone());
        Self { scenario, pair, pushed: 0, restored: false, left: Vec::new() }
    }

    fn after(scenario: &'a Scenario, history: &[Action]) -> Self {
        let mut world = Self::new(scenario);
        world.pair.replays = true;
        history.iter().for_each(|&action| world.apply(action));
        world.pair.replays = false;
        world
    }

    fn records(&self) -> impl Iterator<Item = u32> + '_ {
        self.scenario.inputs.iter().filter_map(|input| match input {
            Element::Record(value) => Some(*value),
            _ => None,
        })
    }

    fn is_awaited(item: &Item) -> bool {
        matches!(item.state, State::InFlight | State::TimedOut { .. }) && item.attempt > 0
    }

    /// The oldest attempt of this record that is not awaited.
    fn stale(&self, value: u32) -> Option<(EntryId, u32)> {
        let awaited = self.pair.plain.find(value).filter(|item| Self::is_awaited(item));
        let awaited = awaited.map(|item| item.attempt);
        let mut of = self.pair.started.iter().filter(|&&(v, ..)| v == value);
        of.find(|&&(_, _, attempt, _)| Some(attempt) != awaited)
            .map(|&(_, entry, attempt, _)| (entry, attempt))
    }

    fn actions(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let plain = &self.pair.plain;
        if self.pushed < self.scenario.inputs.len() && plain.is_available() {
            actions.push(Action::Push);
        }
        for value in self.records() {
            if plain.find(value).is_some_and(Self::is_awaited) {
                actions.extend(Kind::ALL.map(|kind| Action::Answer(value, kind)));
            }
            if self.stale(value).is_some() {
                actions.push(Action::Stale(value));
            }
        }
        if !plain.ended && self.pushed > 0 {
            actions.push(Action::End);
        }
        if !self.restored && self.pushed > 0 {
            actions.push(Action::Restore);
        }
        if !plain.items.is_empty() || !plain.leaving.is_empty() {
            actions.push(Action::Take);
        }
        let told = plain.told() == self.pair.now;
        if let Some(next) = self.pair.next_wakeup() {
            actions.push(Action::Tick);
            if next > self.pair.now + ms(1) {
                actions.push(Action::ToNextTimer);
            }
            if self.scenario.late && told {
                actions.push(Action::Sleep);
            }
        }
        actions
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Push => {
                assert!(self.pair.push(self.scenario.inputs[self.pushed]), "there is room");
                self.pushed += 1;
            }
            Action::Answer(value, kind) => {
                let item = self.pair.plain.find(value).expect("it is held");
                let attempt = item.attempt;
                let mut of = self.pair.started.iter();
                let &(_, entry, ..) =
                    of.find(|&&(v, _, a, _)| (v, a) == (value, attempt)).expect("it was started");
                assert!(self.pair.complete(value, entry, attempt, &kind.answer()));
            }
            Action::Stale(value) => {
                let (entry, attempt) = self.stale(value).expect("there is one");
                assert!(!self.pair.complete(value, entry, attempt, &Ok(8)), "it is ignored");
            }
            Action::ToNextTimer => {
                let next = self.pair.next_wakeup().expect("there is a timer");
                self.pair.advance(next);
            }
            Action::Tick => self.pair.advance(self.pair.now + ms(1)),
            Action::Sleep => self.pair.sleep(self.pair.now + ms(1)),
            Action::End => self.pair.end(),
            Action::Restore => {
                // Refused after a failure that ends the work; the operator goes on then.
                self.restored = self.pair.restore(&self.scenario.restored) || self.pair.plain.failed;
            }
            Action::Take => {
                if let Some(Seen::Record(value, outcome, _)) = self.pair.emit() {
                    self.leaves(value, &outcome);
                }
            }
        }
    }

    /// What leaves keeps the order, unless its failure is told ahead of it.
    fn leaves(&mut self, value: u32, outcome: &Outcome<u32, u8>) {
        let ahead = matches!(outcome, Outcome::Failed { policy: FailurePolicy::Fail, .. });
        let in_order = self.scenario.setup.options.order() != Order::Unordered
            && self.scenario.restored.options.order() != Order::Unordered;
        if in_order && !ahead {
            let place = |value| self.records().position(|record| record == value);
            assert!(self.left.iter().all(|&left| place(left) < place(value)), "{value} leaves out of order");
            self.left.push(value);
        }
    }

    fn finish(mut self, ending: Ending) {
        match ending {
            Ending::Completions => self.pair.finish_by_completions(&Kind::Retryable.answer()),
            Ending::Time => self.pair.finish_by_time(),
            Ending::Close => self.pair.close(),
        }
    }
}

/// How much was looked at.
pub(super) struct Exploration {
    pub(super) states: usize,
    pub(super) histories: usize,
}

/// Runs this part of a history; prints the whole of it if it fails.
fn named<T>(scenario: &Scenario, history: &[Action], then: &str, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        eprintln!("the shortest history that fails:\n{scenario:?}");
        history.iter().for_each(|action| eprintln!("    {action:?}"));
        eprintln!("    {then}");
        resume_unwind(panic)
    })
}

/// A state is kept as the action that led to it from an earlier one, and what may happen in it.
struct Known {
    from: usize,
    by: Option<Action>,
    actions: Vec<Action>,
}

/// The history that leads to this state.
fn history_of(states: &[Known], mut at: usize) -> Vec<Action> {
    let mut history = Vec::new();
    while let Known { from, by: Some(action), .. } = states[at] {
        history.push(action);
        at = from;
    }
    history.reverse();
    history
}

pub(super) fn explore(scenario: &Scenario) -> Exploration {
    let mut beginning = World::new(scenario);
    let mut visited = HashSet::from([fingerprint(&beginning)]);
    let mut states = vec![Known { from: 0, by: None, actions: beginning.actions() }];
    let (mut histories, mut next) = (0, 0);
    let mut endings = vec![Ending::Completions, Ending::Close];
    // Where nobody answers for a timeout, time alone ends nothing.
    if scenario.setup.asks != Asks::Silent && scenario.restored.asks != Asks::Silent {
        endings.push(Ending::Time);
    }
    while next < states.len() {
        let history = history_of(&states, next);
        for action in std::mem::take(&mut states[next].actions) {
            histories += 1;
            let (print, mut world) = named(scenario, &history, &format!("{action:?}"), || {
                let mut world = World::after(scenario, &history);
                world.apply(action);
                (fingerprint(&world), world)
            });
            if !visited.insert(print) {
                continue;
            }
            states.push(Known { from: next, by: Some(action), actions: world.actions() });
            let ways = if scenario.fine { endings.len() } else { 1 };
            let mut worlds = vec![world];
            worlds.extend((1..ways).map(|_| {
                let mut world = World::after(scenario, &history);
                world.apply(action);
                world
            }));
            for (world, ending) in worlds.into_iter().zip(endings.iter().cycle().skip(states.len())) {
                histories += 1;
                named(scenario, &history, &format!("{action:?}, {ending:?}"), || world.finish(*ending));
            }
        }
        next += 1;
    }
    Exploration { states: states.len(), histories }
}
