//! Payloads: what changed, within the budget, and never at the cost of the heartbeat.
// What sets a test up may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use heartbeat::{Part, PayloadInbox, PayloadOutbox, PayloadReceived};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

type Outbox = PayloadOutbox<String, u32>;
type Inbox = PayloadInbox<String, u32, u32>;

fn outbox(budget: usize) -> Outbox {
    Outbox::with_budget(budget, NonZeroU32::new(3).unwrap())
}

fn slot(index: usize, value: u32) -> Part<String, u32> {
    Part { key: format!("slot {index}"), value: Some(value), size: 10, optional: false }
}

fn accumulator(name: &str, value: Option<u32>) -> Part<String, u32> {
    Part { key: format!("accumulator {name}"), value, size: 10, optional: true }
}

#[test]
fn h070_an_accumulator_that_cannot_be_made_is_left_out_and_nothing_else_is() {
    let (mut outbox, mut inbox) = (outbox(1_000), Inbox::new());
    let report = |broken| [slot(0, 1), accumulator("a", broken), accumulator("b", Some(2))];
    assert_eq!(inbox.receive(&1, outbox.frame(report(None))), PayloadReceived::Applied);
    assert_eq!(inbox.parts().keys().collect::<Vec<_>>(), ["accumulator b", "slot 0"]);
    assert_eq!(inbox.receive(&1, outbox.frame(report(Some(7)))), PayloadReceived::Applied);
    assert_eq!(inbox.parts()["accumulator a"], 7);
    assert_eq!(inbox.receive(&1, outbox.frame(report(None))), PayloadReceived::Applied);
    assert_eq!(inbox.parts()["accumulator a"], 7, "what was said last stands");
}

#[test]
fn h073_after_a_gap_everything_is_asked_for_and_applied() {
    let (mut outbox, mut inbox) = (outbox(1_000), Inbox::new());
    inbox.receive(&1, outbox.frame([slot(0, 1), slot(1, 1)]));
    let lost = outbox.frame([slot(0, 2), slot(1, 1)]);
    let after = outbox.frame([slot(0, 2), slot(1, 2)]);
    assert_eq!(after.parts.len(), 1);
    assert_eq!(inbox.receive(&1, after), PayloadReceived::NeedsFullSync);
    assert_eq!(inbox.parts()["slot 1"], 1, "nothing is applied to a version it was not made from");
    outbox.resync();
    assert_eq!(inbox.receive(&1, outbox.frame([slot(0, 2), slot(1, 2)])), PayloadReceived::Applied);
    assert_eq!(inbox.parts().values().collect::<Vec<_>>(), [&2, &2]);
    assert_eq!(inbox.receive(&1, lost), PayloadReceived::Old, "the lost frame comes late");
}

#[test]
fn another_life_begins_with_a_full_report() {
    let (mut old, mut new, mut inbox) = (outbox(1_000), outbox(1_000), Inbox::new());
    inbox.receive(&1, old.frame([slot(0, 1), slot(9, 9)]));
    let first = new.frame([slot(0, 5)]);
    let second = new.frame([slot(0, 6)]);
    assert_eq!(inbox.receive(&2, second.clone()), PayloadReceived::NeedsFullSync);
    assert_eq!(inbox.receive(&2, first), PayloadReceived::Applied);
    assert_eq!(inbox.receive(&2, second), PayloadReceived::Applied);
    assert_eq!(inbox.parts(), &BTreeMap::from([("slot 0".to_owned(), 6)]));
}

#[test]
fn what_is_gone_is_said_once() {
    let (mut outbox, mut inbox) = (outbox(1_000), Inbox::new());
    inbox.receive(&1, outbox.frame([slot(0, 1), slot(1, 1)]));
    let frame = outbox.frame([slot(1, 1)]);
    assert_eq!(frame.parts, [("slot 0".to_owned(), None)]);
    inbox.receive(&1, frame);
    assert_eq!(inbox.parts().len(), 1);
    assert_eq!(outbox.frame([slot(1, 1)]).parts, []);
}

#[test]
fn optional_parts_that_do_not_fit_go_every_third_frame() {
    let mut outbox = outbox(25);
    let report = |round| [slot(0, round), accumulator("a", Some(round)), accumulator("b", Some(round))];
    let sent: Vec<usize> = (1..=6).map(|round| outbox.frame(report(round)).parts.len()).collect();
    let optional: Vec<bool> = sent.iter().map(|parts| *parts > 1).collect();
    assert_eq!(optional, [false, false, true, false, false, true]);
}

#[test]
fn a_part_above_the_budget_is_counted_and_costs_nobody_anything() {
    let mut outbox = outbox(25);
    let huge = Part { key: "huge".to_owned(), value: Some(1), size: 26, optional: false };
    assert_eq!(outbox.frame([slot(0, 1), huge]).parts.len(), 1);
    assert_eq!(outbox.too_large(), 1);
}

proptest! {
    /// Whatever changes and however little fits: no frame is above the budget, and once nothing changes any more the
    /// receiver comes to know everything. A failing run prints its seed.
    #[test]
    fn the_receiver_comes_to_know_everything_within_the_budget(
        budget in 10..60_usize,
        rounds in prop::collection::vec((prop::collection::vec(0..4_u32, 8), any::<bool>()), 1..20),
    ) {
        let (mut outbox, mut inbox) = (outbox(budget), Inbox::new());
        let report = |values: &[u32]| -> Vec<Part<String, u32>> {
            let part = |(n, value): (usize, &u32)| match (value, n % 2) {
                (0, _) => None,
                (value, 0) => Some(slot(n, *value)),
                (value, _) => Some(accumulator(&n.to_string(), Some(*value))),
            };
            values.iter().enumerate().filter_map(part).collect()
        };
        let mut send = |values: &[u32], lost: bool| {
            let frame = outbox.frame(report(values));
            let bytes = frame.parts.iter().filter(|(_, value)| value.is_some()).count() * 10;
            assert!(bytes <= budget, "{bytes} of {budget}");
            if !lost && inbox.receive(&1, frame) == PayloadReceived::NeedsFullSync {
                outbox.resync();
            }
        };
        for (values, lost) in &rounds {
            send(values, *lost);
        }
        let last = rounds.last().unwrap().0.clone();
        (0..30).for_each(|_| send(&last, false));
        let wanted: BTreeMap<String, u32> = report(&last).into_iter().map(|p| (p.key, p.value.unwrap())).collect();
        prop_assert_eq!(inbox.parts(), &wanted);
    }
}
