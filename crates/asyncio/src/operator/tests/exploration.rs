//! Every interleaving of what can happen to two records and their three attempts each.
//!
//! Answers of every kind, stale completions, timers looked at in time and late, the end of input, a snapshot and a restore
//! in all orders, breadth first, so that a failure names the shortest history that shows it. Histories that lead to what
//! looks the same are followed once: [`fingerprint`] says what that is. Each step is checked against the plain model and by
//! itself, as [`Pair`](super::model::pair::Pair) does it, and from each state the operator is brought to its end three ways.

mod explorer;
mod fingerprint;

use super::driver::{fixed, ms};
use super::model::setup::{Asks, Element, Setup};
use crate::*;
use explorer::{Exploration, Scenario};

/// Both have the same key that keeps them in order, and the same key that lets them share a call.
const RECORDS: [u32; 2] = [4, 12];

const BUDGET: u64 = 5;
const LIMIT: u64 = 2;
const PAUSE: u64 = 1;

fn options(order: Order) -> OptionsBuilder {
    Options::with_order(order)
        .capacity(2)
        .timeout(ms(BUDGET))
        .attempt_timeout(ms(LIMIT))
        .retry(fixed(2, PAUSE))
        .on_failure(FailurePolicy::Keep)
}

fn setup(options: OptionsBuilder) -> Setup {
    Setup { options: options.build().unwrap(), asks: Asks::Nobody, coalesces: false }
}

fn records() -> Vec<Element> {
    RECORDS.map(Element::Record).to_vec()
}

/// Two records, restored into an operator of the same kind.
fn scenario(setup: Setup) -> Scenario {
    Scenario { restored: setup.clone(), setup, inputs: records(), late: false, fine: false }
}

/// A scenario, its name, and how many states there are at least, coarse and fine.
type Named = (&'static str, Scenario, [usize; 2]);

/// Each record has calls of its own.
fn own_calls() -> Vec<Named> {
    let plain = |order| setup(options(order));
    let asking = |asks, order| Setup { asks, ..plain(order) };
    let narrow = |order| setup(options(order).capacity(1));
    vec![
        ("ordered", scenario(plain(Order::Ordered)), [7_760, 52_210]),
        ("unordered", scenario(plain(Order::Unordered)), [7_920, 55_960]),
        ("keyed", scenario(plain(Order::Keyed)), [2_420, 20_690]),
        ("keyed, answered for", scenario(asking(Asks::Answers, Order::Keyed)), [2_420, 19_110]),
        ("keyed, asked in vain", scenario(asking(Asks::Silent, Order::Keyed)), [2_770, 20_750]),
        (
            "keyed, restored into one place in order",
            Scenario { restored: narrow(Order::Ordered), ..scenario(plain(Order::Keyed)) },
            [1_030, 6_250],
        ),
    ]
}

/// The records may share a call.
fn shared_calls() -> Vec<Named> {
    let sharing = |asks, options| Setup { asks, coalesces: true, ..setup(options) };
    let both_of_a_key = || options(Order::Keyed).max_in_flight_per_key(2);
    vec![
        ("keyed, overlapping and shared", scenario(sharing(Asks::Nobody, both_of_a_key())), [2_060, 9_880]),
        ("ordered, shared", scenario(sharing(Asks::Nobody, options(Order::Ordered))), [2_060, 9_880]),
        (
            "unordered, shared, answered for",
            scenario(sharing(Asks::Answers, options(Order::Unordered))),
            [2_060, 9_310],
        ),
        (
            "unordered, shared, asked in vain",
            scenario(sharing(Asks::Silent, options(Order::Unordered))),
            [3_270, 14_740],
        ),
    ]
}

/// Those that take minutes, to be looked at finely alone.
fn large() -> Vec<(&'static str, Scenario, usize)> {
    let plain = |order| scenario(setup(options(order)));
    let fatal = setup(options(Order::Keyed).on_failure(FailurePolicy::Fail));
    let three = || options(Order::Unordered).capacity(3);
    let shared = Setup { coalesces: true, ..setup(options(Order::Ordered)) };
    let [first, second] = RECORDS.map(Element::Record);
    let inputs = vec![first, Element::Watermark(4), second];
    vec![
        (
            "unordered, answered for",
            scenario(Setup { asks: Asks::Answers, ..setup(options(Order::Unordered)) }),
            54_770,
        ),
        (
            "unordered, asked in vain",
            scenario(Setup { asks: Asks::Silent, ..setup(options(Order::Unordered)) }),
            64_670,
        ),
        ("ordered, shared, looked at late", Scenario { late: true, ..scenario(shared) }, 22_910),
        ("keyed, fatal", scenario(fatal), 35_840),
        ("keyed, looked at late", Scenario { late: true, ..plain(Order::Keyed) }, 48_260),
        ("unordered, looked at late", Scenario { late: true, ..plain(Order::Unordered) }, 156_640),
        ("unordered, around a watermark", Scenario { inputs, ..scenario(setup(three())) }, 57_720),
    ]
}

fn explore(name: &str, scenario: &Scenario, least: usize) {
    let Exploration { states, histories } = explorer::explore(scenario);
    println!("{name}: {states} states, {histories} histories");
    assert!(states >= least, "{name}: {states} states, no longer {least}: is something unreachable?");
    assert!(histories > 6 * states, "{name}: {histories} histories of {states} states");
}

#[test]
fn records_with_calls_of_their_own_end_once_and_in_time_in_every_interleaving() {
    own_calls().iter().for_each(|(name, scenario, [coarse, _])| explore(name, scenario, *coarse));
}

#[test]
fn records_that_share_calls_end_once_and_in_time_in_every_interleaving() {
    shared_calls().iter().for_each(|(name, scenario, [coarse, _])| explore(name, scenario, *coarse));
}

fn explore_finely(scenarios: Vec<Named>) {
    for (name, scenario, [_, fine]) in scenarios {
        explore(name, &Scenario { fine: true, ..scenario }, fine);
    }
}

#[test]
#[ignore = "minutes"]
fn records_with_calls_of_their_own_end_once_and_in_time_whatever_is_carried_on() {
    explore_finely(own_calls());
}

#[test]
#[ignore = "minutes"]
fn records_that_share_calls_end_once_and_in_time_whatever_is_carried_on() {
    explore_finely(shared_calls());
}

#[test]
#[ignore = "minutes"]
fn records_around_watermarks_looked_at_late_and_fatal_ones_end_once_and_in_time() {
    for (name, scenario, least) in large() {
        explore(name, &Scenario { fine: true, ..scenario }, least);
    }
}
