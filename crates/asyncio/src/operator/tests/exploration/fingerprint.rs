//! What makes two histories the same as far as the future goes.
//!
//! Everything that decides what can follow, times as what is left of them: where each element stands, the order of what is
//! ready and of timers that end together, what is parked and what leaves ahead. In a fine exploration also what a look from
//! outside does not show but an operator may still carry: outcomes, and timers of attempts and records that are over, as
//! long as they could go off.

use runtime_core::Tick;

use super::explorer::World;
use super::{BUDGET, LIMIT};
use crate::operator::tests::driver::ms;
use crate::operator::tests::model::setup::{Element, Seen};
use crate::operator::tests::model::{Item, State};
use crate::*;

fn millis(from: Tick, to: Option<Tick>) -> u64 {
    to.map_or(u64::MAX, |to| to.since(from).as_millis() as u64)
}

fn element(element: Element) -> u64 {
    match element {
        Element::Record(value) => value.into(),
        Element::Watermark(_) => 1_000,
        Element::Status(_) => 1_001,
    }
}

fn outcome(outcome: &Outcome<u32, u8>) -> u64 {
    match outcome {
        Outcome::Completed(_) => 0,
        Outcome::Failed { reason: FailureReason::Timeout, .. } => 1,
        Outcome::Failed { .. } => 2,
    }
}

fn state(item: &Item) -> u64 {
    match &item.state {
        State::Control => 0,
        State::Queued => 1,
        State::InFlight => 2,
        State::Backoff(_) => 3,
        State::Following(_) => 4,
        State::TimedOut { runs } => 5 + u64::from(*runs),
        State::Gone => 7,
        State::Done(_) => 8,
    }
}

/// Each one's place among all.
fn ranks<T: Ord>(keys: Vec<T>) -> impl Iterator<Item = u64> {
    let mut sorted: Vec<&T> = keys.iter().collect();
    sorted.sort_unstable();
    let ranks: Vec<u64> =
        keys.iter().map(|key| sorted.partition_point(|other| *other < key) as u64).collect();
    ranks.into_iter()
}

pub(super) fn fingerprint(world: &World<'_>) -> Vec<u64> {
    let (pair, plain) = (&world.pair, &world.pair.plain);
    let now = pair.now;
    let flags = [plain.ended, plain.failed, world.restored].map(u64::from);
    let mut print = vec![world.pushed as u64, millis(plain.told(), Some(now))];
    print.extend(flags);
    for item in &plain.items {
        let (budget, limit, pause) = plain.timers(item);
        print.extend([element(item.element), state(item), item.past.into(), item.attempt.into()]);
        print.extend([budget, limit, pause].map(|end| millis(now, end)));
        print.push(item.leads.into());
    }
    print.extend(ranks(plain.items.iter().map(|item| item.ready).collect()));
    print.extend(ranks(plain.items.iter().map(|item| item.budget_set).collect()));
    print.extend(ranks(plain.items.iter().map(|item| item.limit_set).collect()));
    print.push(u64::MAX);
    print.extend(plain.parked.iter().flat_map(|&(parked, past)| [element(parked), past.into()]));
    print.push(u64::MAX);
    print.extend(plain.leaving.iter().map(|seen| match seen {
        Seen::Record(value, ..) => (*value).into(),
        _ => 1_000,
    }));
    if !world.scenario.fine {
        return print;
    }
    print.push(u64::MAX);
    print.extend(plain.items.iter().map(|item| match &item.state {
        State::Done(done) => outcome(done),
        _ => 0,
    }));
    let running = plain.running();
    for &(value, _, attempt, at) in &pair.started {
        let over = !running.contains(&(value, attempt));
        let budget_left = attempt == 1 && at + ms(BUDGET) > now;
        let limit_left = if over { millis(now, Some(at + ms(LIMIT))) } else { u64::MAX };
        print.extend([limit_left, u64::from(over && budget_left)]);
    }
    print
}
