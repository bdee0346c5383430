//! Snapshots and their bytes.

use asyncio::{DecodeError, EncodeError, Snapshot};
use runtime_core::{Record, StreamElement, Tick, WatermarkStatus};

use crate::build::*;

fn record(value: &[u8]) -> Element {
    Element::Record(value.to_vec(), Some(1), 1)
}

/// One unit with every kind of element, of the operator `prices` with scope 7, after one record that had left.
fn every_kind() -> Snapshot<Vec<u8>> {
    let elements = [
        Element::Record(b"ab".to_vec(), Some(5), 2),
        Element::Watermark(-9),
        Element::Status(WatermarkStatus::Idle),
        Element::Record(Vec::new(), None, 1),
        Element::Status(WatermarkStatus::Active),
    ];
    snapshot("prices", 7, 1, &elements)
}

/// The bytes of [`every_kind`] in version 1. They must be read for ever, so they are never changed.
const VERSION_1: &str = "\
    4157414954 4f5053 0100 0600 707269636573 01000000 \
    0600000000000000 0500000000000000 \
    01 01 0500000000000000 02000000 0700000000000000 0100000000000000 02000000 6162 \
    02 f7ffffffffffffff \
    03 \
    01 00 01000000 0700000000000000 0400000000000000 00000000 \
    04";

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn the_bytes_of_version_1_are_what_they_were() {
    assert_eq!(encoded(&every_kind()), from_hex(VERSION_1));
    assert_eq!(decoded(&from_hex(VERSION_1)).unwrap(), every_kind());
}

#[test]
fn what_is_written_is_read_again() {
    check(256, (".{0,12}", units()), |(name, units)| {
        let snapshot = combined(&name, &units);
        let read = decoded(&encoded(&snapshot)).unwrap();
        assert_eq!(read, snapshot);
        assert_eq!(read.operator(), if units.is_empty() { "" } else { &name });
        assert_eq!(encoded(&read), encoded(&snapshot));
    });
}

#[test]
fn an_empty_operator_and_no_operator_at_all_are_snapshots_too() {
    for snapshot in [snapshot("empty", 0, 3, &[]), Snapshot::combined([])] {
        assert!(snapshot.is_empty());
        let read = decoded(&encoded(&snapshot)).unwrap();
        assert_eq!(read, snapshot);
        let mut restored = operator("empty", 0);
        restored.restore(read, Tick::ZERO).unwrap();
        assert!(restored.is_empty() && restored.is_available());
    }
}

#[test]
fn a_parked_record_that_was_never_asked_about_keeps_its_0_attempts() {
    let options = asyncio::Options::ordered().capacity(1).build().unwrap();
    let mut operator = Operator::new(options);
    for value in [1, 2] {
        operator.park(StreamElement::Record(Record::new(vec![value])), Tick::ZERO).unwrap();
    }
    let snapshot = decoded(&encoded(&operator.snapshot().unwrap().cloned())).unwrap();
    assert_eq!(snapshot.attempts().collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_name_too_long_is_cut_at_a_character() {
    let name = "ä".repeat(40_000);
    let read = decoded(&encoded(&snapshot(&name, 0, 0, &[record(b"x")]))).unwrap();
    assert_eq!(read.operator(), "ä".repeat(32_767));
    assert_eq!(read.len(), 1);
}

#[test]
fn i15_a_value_that_cannot_be_written_fails_the_snapshot_and_nothing_else() {
    let mut operator =
        holding("prices", 0, 0, &[record(b"a"), Element::Watermark(1), record(b"bad"), record(b"c")]);
    let write = |value: &&Vec<u8>, into: &mut Vec<u8>| {
        into.extend(*value);
        if value.as_slice() == b"bad" { Err("disk full") } else { Ok(()) }
    };
    let failed = operator.snapshot().unwrap().encode(write).unwrap_err();
    assert_eq!(failed, EncodeError::Value { operator: "prices".into(), index: 2, error: "disk full" });
    assert_eq!(
        failed.to_string(),
        "snapshot of `prices`: the value of element 2 could not be written: disk full"
    );
    assert_eq!(operator.len(), 4);
    assert!(!operator.has_failed());
    operator.push(StreamElement::Record(Record::new(b"d".to_vec())), Tick::ZERO).unwrap();
    let whole = operator.snapshot().unwrap().cloned();
    assert_eq!(decoded(&encoded(&whole)).unwrap().len(), 5, "nothing of the failed one is in the next");
}

#[test]
fn i14_a_value_that_cannot_be_read_is_named_with_its_place() {
    let bytes = encoded(&snapshot("prices", 0, 0, &[record(b"a"), Element::Watermark(1), record(b"bad")]));
    let read = |value: &[u8]| if value == b"bad" { Err("no such type") } else { Ok(value.to_vec()) };
    let failed = Snapshot::decode(&bytes, read).unwrap_err();
    let offset = bytes.len() - 3;
    assert_eq!(failed, DecodeError::Value { index: 2, offset, error: "no such type" });
    assert_eq!(
        failed.to_string(),
        format!("the value of element 2, at byte {offset} of the snapshot, could not be read: no such type")
    );
}

#[test]
fn i14_a_newer_version_is_refused_by_its_number() {
    for found in [0_u16, 2, 500, u16::MAX] {
        let mut bytes = encoded(&every_kind());
        bytes[8..10].copy_from_slice(&found.to_le_bytes());
        let refused = decoded(&bytes).unwrap_err();
        assert_eq!(refused, DecodeError::Version { found, known: 1 });
        let expected = format!(
            "the snapshot has version {found}; this program reads versions 1 to 1: use the program that wrote it"
        );
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn a_stored_key_means_the_same_to_a_service_for_ever() {
    let mut restored = operator("prices", 99);
    restored.restore(decoded(&from_hex(VERSION_1)).unwrap(), Tick::ZERO).unwrap();
    let Some(asyncio::Effect::Start { entry, .. }) = restored.next_effect() else { panic!("it starts") };
    let key = restored.context(entry).unwrap().idempotency_key();
    assert_eq!(key.to_string(), KEY_OF_SCOPE_7_NUMBER_1);
}

/// Two rounds of SplitMix64's finaliser: of the scope, and of the number xor that.
const KEY_OF_SCOPE_7_NUMBER_1: &str = "63cbe1e459320dd73d41bf495cd3075f";

#[test]
fn a_reader_sees_each_value_alone_and_whole() {
    check(64, units(), |units| {
        let snapshot = combined("x", &units);
        let mut seen = Vec::new();
        let read = |value: &[u8]| {
            seen.push(value.to_vec());
            Ok::<_, ()>(value.len())
        };
        let lengths = Snapshot::decode(&encoded(&snapshot), read).unwrap();
        let values =
            |element: StreamElement<&Vec<u8>>| element.into_record().map(|record| record.value.clone());
        assert_eq!(seen, snapshot.elements().filter_map(values).collect::<Vec<_>>());
        assert_eq!(lengths, snapshot.map(|value| value.len()));
    });
}
