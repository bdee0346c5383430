//! Another parallelism, against a plain model.

use std::collections::BTreeMap;

use asyncio::{Effect, IdempotencyKey, Outcome, Output, Snapshot};
use proptest::prelude::*;
use runtime_core::{Record, StreamElement, Tick, WatermarkStatus};

use crate::build::*;

/// What leaves a restored operator, when every call answers at once.
fn replayed(snapshot: Snapshot<Vec<u8>>) -> Vec<Element> {
    let mut operator = operator("restored", 0);
    operator.restore(snapshot, Tick::ZERO).unwrap();
    let mut attempts = BTreeMap::new();
    while let Some(effect) = operator.next_effect() {
        let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
        attempts.insert(entry.sequence(), operator.context(entry).unwrap().attempt());
        assert!(operator.complete(entry, attempt, Ok(0), Tick::ZERO));
    }
    let mut seen = Vec::new();
    while let Some(output) = operator.next_output() {
        seen.push(match output {
            Output::Record { input, outcome: Outcome::Completed(_), attempts } => {
                Element::Record(input.value, input.timestamp.map(|at| at.0), attempts.count - 1)
            }
            Output::Watermark(watermark) => Element::Watermark(watermark.0.0),
            Output::Status(status) => Element::Status(status),
            other => panic!("{other:?}"),
        });
    }
    assert!(operator.is_empty());
    seen
}

/// How many of these watermarks a record has behind it that stands after those passed ones of its unit.
fn stage(watermarks: &[i64], passed: Option<i64>) -> usize {
    watermarks.iter().filter(|&&watermark| Some(watermark) <= passed).count()
}

/// The rule, said as a table: watermarks that every unit has passed stand between the records, each record behind those
/// that its own unit had passed before it.
fn merged(units: &[Vec<Element>]) -> Vec<Element> {
    if let [unit] = units {
        return unit.clone();
    }
    let of = |unit: &[Element]| -> Vec<i64> {
        unit.iter()
            .filter_map(|element| if let Element::Watermark(at) = element { Some(*at) } else { None })
            .collect()
    };
    let lowest = units.iter().map(|unit| of(unit).into_iter().max()).min().flatten();
    let mut watermarks: Vec<i64> = units.iter().flat_map(|unit| of(unit)).collect();
    watermarks.retain(|&watermark| Some(watermark) <= lowest);
    watermarks.sort_unstable();
    watermarks.dedup();
    let mut table = vec![Vec::new(); watermarks.len() + 1];
    for unit in units {
        let mut passed = None;
        for element in unit {
            match element {
                Element::Watermark(at) => passed = passed.max(Some(*at)),
                Element::Record(..) => table[stage(&watermarks, passed)].push(element.clone()),
                Element::Status(_) => {}
            }
        }
    }
    let mut all = Vec::new();
    for (at, records) in table.into_iter().enumerate() {
        all.extend(records);
        all.extend(watermarks.get(at).map(|&watermark| Element::Watermark(watermark)));
    }
    all
}

/// Few values and few times, so that units meet.
fn small_units() -> impl Strategy<Value = Vec<Vec<Element>>> {
    let element = prop_oneof![
        4 => (0..20_u8, 1..3_u32).prop_map(|(n, tries)| Element::Record(vec![n], Some(n.into()), tries)),
        3 => (0..6_i64).prop_map(Element::Watermark),
        1 => Just(Element::Status(WatermarkStatus::Idle)),
    ];
    prop::collection::vec(prop::collection::vec(element, 0..10), 0..5)
}

fn stored(units: &[Vec<Element>]) -> Vec<Snapshot<Vec<u8>>> {
    let stored = |(scope, unit): (usize, &Vec<Element>)| snapshot("prices", scope as u64, scope, unit);
    units.iter().enumerate().map(stored).collect()
}

#[test]
fn i17_several_units_are_replayed_as_the_plain_model_says() {
    check(400, small_units(), |units| {
        let snapshot = Snapshot::combined(stored(&units));
        assert_eq!(replayed(decoded(&encoded(&snapshot)).unwrap()), merged(&units));
    });
}

#[test]
fn i17_no_record_comes_back_behind_a_watermark_that_its_unit_had_not_passed() {
    check(200, small_units(), |units| {
        // Timestamps are drawn anew above the watermarks before them: the stream has no late record.
        let mut units = units;
        for unit in &mut units {
            let mut passed = -1;
            for element in unit {
                match element {
                    Element::Watermark(at) => passed = passed.max(*at),
                    Element::Record(_, at, _) => *at = at.map(|at| at.max(passed + 1)),
                    Element::Status(_) => {}
                }
            }
        }
        let mut passed = i64::MIN;
        for element in replayed(Snapshot::combined(stored(&units))) {
            match element {
                Element::Watermark(at) => {
                    assert!(at > passed || units.len() == 1, "each once, and rising");
                    passed = passed.max(at);
                }
                Element::Record(value, at, _) => assert!(at.unwrap() > passed, "{value:?} is late"),
                Element::Status(_) => {}
            }
        }
    });
}

#[test]
fn i16_split_and_combined_again_every_record_is_there_once_in_the_order_of_its_unit() {
    check(200, (small_units(), 1..5_usize, 1..4_usize), |(units, parts, owners)| {
        let part_of = |value: &Vec<u8>| usize::from(value[0]) % parts;
        let whole = Snapshot::combined(stored(&units));
        let split = whole.split(parts, part_of);
        assert_eq!(split.len(), parts);
        for (part, snapshot) in split.iter().enumerate() {
            let expected: Vec<Vec<Element>> = units
                .iter()
                .map(|unit| {
                    let keep = |element: &&Element| !matches!(element, Element::Record(value, ..) if part_of(value) != part);
                    unit.iter().filter(keep).cloned().collect()
                })
                .collect();
            assert_eq!(replayed(snapshot.clone()), merged(&expected), "part {part}");
        }
        // Then fewer again: each owner takes several parts.
        let mut seen: Vec<Element> = Vec::new();
        for owner in 0..owners {
            let mine = split.iter().enumerate().filter(|(part, _)| part % owners == owner);
            let mine = Snapshot::combined(mine.map(|(_, snapshot)| snapshot.clone()));
            seen.extend(replayed(mine).into_iter().filter(|element| matches!(element, Element::Record(..))));
        }
        let mut records: Vec<Element> =
            units.concat().into_iter().filter(|element| matches!(element, Element::Record(..))).collect();
        let by = |element: &Element| format!("{element:?}");
        seen.sort_by_key(by);
        records.sort_by_key(by);
        assert_eq!(seen, records);
    });
}

#[test]
fn a_part_beyond_the_last_counts_as_the_last_and_no_parts_as_one() {
    let units = [vec![Element::Record(vec![1], None, 1), Element::Record(vec![9], None, 1)]];
    let split = stored(&units)[0].clone().split(2, |value| value[0].into());
    assert_eq!(split.iter().map(Snapshot::len).collect::<Vec<_>>(), [0, 2]);
    let split = stored(&units)[0].clone().split(0, |_| 0);
    assert_eq!(split, stored(&units));
}

/// The attempt number and the key that each held record is told, by its value.
fn told(operator: &mut Operator) -> BTreeMap<u8, (u32, IdempotencyKey)> {
    let mut told = BTreeMap::new();
    while let Some(effect) = operator.next_effect() {
        let Effect::Start { entry, .. } = effect else { panic!("{effect:?}") };
        let context = operator.context(entry).unwrap();
        let value = operator.input(entry).unwrap().value[0];
        assert_eq!(told.insert(value, (context.attempt(), context.idempotency_key())), None);
    }
    told
}

#[test]
fn attempts_and_keys_survive_bytes_split_and_combination() {
    let element = |(value, tries): (u8, u32)| Element::Record(vec![value], None, tries);
    let mut first = holding("a", 1, 3, &[(0, 1), (1, 2), (2, 3)].map(element));
    let mut second = holding("b", 2, 0, &[(10, 1), (11, 4)].map(element));
    let snapshots = [&first, &second].map(|operator| operator.snapshot().unwrap().cloned());
    // What they were told before: asked again by an operator that is restored in one piece.
    let mut before = BTreeMap::new();
    for (operator, scope) in [(&mut first, 1), (&mut second, 2)] {
        let mut whole = crate::build::operator("whole", scope);
        whole.restore(operator.snapshot().unwrap().cloned(), Tick::ZERO).unwrap();
        before.extend(told(&mut whole));
    }
    let counts: Vec<u32> = before.values().map(|told| told.0).collect();
    assert_eq!(counts, [2, 3, 4, 2, 5], "one more than before the restore");
    let bytes = encoded(&Snapshot::combined(snapshots));
    let mut after = BTreeMap::new();
    for part in decoded(&bytes).unwrap().split(3, |value| (value[0] % 3).into()) {
        let mut operator = operator("part", 77);
        operator.restore(decoded(&encoded(&part)).unwrap(), Tick::ZERO).unwrap();
        after.extend(told(&mut operator));
    }
    assert_eq!(after, before);
}

#[test]
fn after_a_restore_of_one_unit_new_records_get_the_keys_they_would_have_had() {
    let held = [1, 2].map(|value| Element::Record(vec![value], None, 1));
    let mut undisturbed = holding("a", 5, 4, &held);
    let snapshot = decoded(&encoded(&undisturbed.snapshot().unwrap().cloned())).unwrap();
    let mut restored = operator("a", 5);
    restored.restore(snapshot, Tick::ZERO).unwrap();
    told(&mut restored);
    for operator in [&mut undisturbed, &mut restored] {
        for value in [3, 4] {
            operator.push(StreamElement::Record(Record::new(vec![value])), Tick::ZERO).unwrap();
        }
    }
    let would_have = told(&mut undisturbed);
    assert_eq!(would_have.len(), 2);
    assert_eq!(told(&mut restored), would_have);
}

#[test]
fn after_a_restore_of_several_units_new_records_get_none_of_the_old_keys() {
    let units: Vec<Vec<Element>> =
        (0..3).map(|unit| (0..3).map(|n| Element::Record(vec![10 * unit + n], None, 1)).collect()).collect();
    // All of one scope, as subtasks of one operator that was told no other.
    let snapshots = units.iter().map(|unit| snapshot("a", 5, 2, unit));
    // Numbers of the units overlap, so the keys of their records do; those of new records must not.
    let mut operator = operator("a", 5);
    operator.restore(Snapshot::combined(snapshots), Tick::ZERO).unwrap();
    let old: Vec<IdempotencyKey> = told(&mut operator).into_values().map(|(_, key)| key).collect();
    for value in [100, 101] {
        operator.push(StreamElement::Record(Record::new(vec![value])), Tick::ZERO).unwrap();
    }
    for (_, key) in told(&mut operator).into_values() {
        assert!(!old.contains(&key));
    }
}
