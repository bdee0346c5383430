//! The wheel's claims, and the wheel against a sorted map.

use super::{TimerKey, TimerWheel};
use crate::time::Tick;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn fired(wheel: &mut TimerWheel<u32>, now: u64) -> Vec<u32> {
    let mut out = Vec::new();
    wheel.advance(Tick::from_nanos(now), |value| out.push(value));
    out
}

fn insert(wheel: &mut TimerWheel<u32>, at: u64, value: u32) -> TimerKey {
    wheel.insert(Tick::from_nanos(at), value)
}

#[test]
fn a_deadline_is_due_at_its_nanosecond_and_not_before() {
    for at in [1, 63, 64, 65, 4_095, 4_096, 50_000_000_000, u64::MAX - 1] {
        let mut wheel = TimerWheel::new();
        insert(&mut wheel, at, 1);
        assert!(fired(&mut wheel, at - 1).is_empty(), "{at}");
        assert_eq!(wheel.next_wakeup(), Some(Tick::from_nanos(at)), "{at}");
        assert_eq!(fired(&mut wheel, at), [1], "{at}");
    }
}

#[test]
fn equal_deadlines_fire_in_the_order_of_insertion_across_levels() {
    let mut wheel = TimerWheel::new();
    insert(&mut wheel, 10_000_000, 1);
    assert!(fired(&mut wheel, 9_000_000).is_empty());
    insert(&mut wheel, 10_000_000, 2);
    assert!(fired(&mut wheel, 9_999_990).is_empty());
    insert(&mut wheel, 10_000_000, 3);
    assert_eq!(fired(&mut wheel, 20_000_000), [1, 2, 3]);
}

#[test]
fn a_long_leap_fires_by_deadline() {
    let mut wheel = TimerWheel::new();
    for (at, value) in [(5_000_000_000, 4), (7, 1), (70_000, 3), (64, 2)] {
        insert(&mut wheel, at, value);
    }
    assert_eq!(fired(&mut wheel, u64::MAX), [1, 2, 3, 4]);
    assert!(wheel.is_empty());
}

#[test]
fn the_end_of_time_is_a_deadline_too() {
    let mut wheel = TimerWheel::new();
    insert(&mut wheel, u64::MAX, 1);
    assert!(fired(&mut wheel, u64::MAX - 1).is_empty());
    assert_eq!(wheel.next_wakeup(), Some(Tick::MAX));
    assert_eq!(fired(&mut wheel, u64::MAX), [1]);
    insert(&mut wheel, u64::MAX, 2);
    assert_eq!(fired(&mut wheel, u64::MAX), [2]);
}

#[test]
fn a_passed_deadline_fires_at_the_next_advance() {
    let mut wheel = TimerWheel::new();
    assert!(fired(&mut wheel, 1_000).is_empty());
    insert(&mut wheel, 5, 1);
    assert_eq!(wheel.next_wakeup(), Some(Tick::from_nanos(1_000)));
    assert_eq!(fired(&mut wheel, 1_000), [1]);
}

#[test]
fn a_clock_that_goes_back_fires_nothing_early() {
    let mut wheel = TimerWheel::new();
    assert!(fired(&mut wheel, 1_000).is_empty());
    insert(&mut wheel, 1_500, 1);
    assert!(fired(&mut wheel, 200).is_empty());
    assert_eq!(wheel.next_wakeup(), Some(Tick::from_nanos(1_500)));
    assert_eq!(fired(&mut wheel, 1_500), [1]);
}

#[test]
fn a_key_is_good_once() {
    let mut wheel = TimerWheel::new();
    let key = insert(&mut wheel, 10, 1);
    assert_eq!(wheel.get(key), Some(&1));
    assert_eq!(wheel.deadline(key), Some(Tick::from_nanos(10)));
    assert_eq!(fired(&mut wheel, 10), [1]);
    let successor = insert(&mut wheel, 20, 2);
    assert_eq!(key.index, successor.index, "the test wants the place taken again");
    assert_eq!((wheel.cancel(key), wheel.get(key), wheel.deadline(key)), (None, None, None));
    assert_eq!(wheel.cancel(successor), Some(2));
}

#[test]
fn churn_takes_no_more_room_than_its_peak() {
    let mut wheel = TimerWheel::new();
    for round in 0..10_000_u64 {
        let key = insert(&mut wheel, round * 1_000 + 5_000_000_000, 1);
        assert_eq!(wheel.cancel(key), Some(1));
    }
    assert_eq!((wheel.len(), wheel.entries.len()), (0, 1));
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64),
    Cancel(usize),
    Advance(u64),
}

/// Distances of every size of interest, small ones often, so that ties and every level occur.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, 0..200_u64, 0..100_000_u64, 0..20_000_000_000_u64, Just(u64::MAX), any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => distance().prop_map(Step::Insert),
        1 => any::<usize>().prop_map(Step::Cancel),
        // The end of time would leave nothing to happen after it.
        2 => (0..30_000_000_000_u64).prop_map(Step::Advance),
        2 => (0..300_u64).prop_map(Step::Advance),
    ]
}

proptest! {
    /// A failing run prints the steps and the seed that repeats them.
    #[test]
    fn the_wheel_does_what_a_sorted_map_does(steps in prop::collection::vec(step(), 0..200)) {
        let mut wheel = TimerWheel::new();
        let mut model: BTreeMap<(u64, u32), u32> = BTreeMap::new();
        let mut keys: Vec<(TimerKey, (u64, u32))> = Vec::new();
        let mut now = 0_u64;
        let mut cancelled = false;
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Insert(distance) => {
                    let at = now.saturating_add(distance);
                    keys.push((wheel.insert(Tick::from_nanos(at), number), (at, number)));
                    model.insert((at, number), number);
                }
                Step::Cancel(which) if !keys.is_empty() => {
                    let (key, in_model) = keys[which % keys.len()];
                    prop_assert_eq!(wheel.cancel(key), model.remove(&in_model));
                    cancelled = true;
                }
                Step::Cancel(_) => {}
                Step::Advance(by) => {
                    now = now.saturating_add(by);
                    let later = model.split_off(&(now, u32::MAX));
                    let due: Vec<u32> = std::mem::replace(&mut model, later).into_values().collect();
                    prop_assert_eq!(fired(&mut wheel, now), due);
                }
            }
            prop_assert_eq!(wheel.len(), model.len());
            let earliest = model.keys().next().map(|(at, _)| Tick::from_nanos(*at));
            prop_assert_eq!(wheel.next_wakeup().is_some(), earliest.is_some());
            prop_assert!(wheel.next_wakeup() <= earliest, "{:?} lies after {:?}", wheel.next_wakeup(), earliest);
            if !cancelled {
                prop_assert_eq!(wheel.next_wakeup(), earliest);
            }
        }
    }
}
