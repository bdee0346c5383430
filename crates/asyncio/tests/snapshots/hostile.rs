//! Bytes that are no snapshot, or one no longer.

use std::convert::Infallible;

use asyncio::{DecodeError, Snapshot};
use proptest::prelude::*;
use runtime_core::{Record, StreamElement, Tick, WatermarkStatus};

use crate::build::*;

fn sample() -> Snapshot<Vec<u8>> {
    let elements = [
        Element::Record(b"value".to_vec(), Some(5), 2),
        Element::Watermark(7),
        Element::Status(WatermarkStatus::Idle),
        Element::Record(b"x".to_vec(), None, 1),
    ];
    Snapshot::combined([snapshot("prices", 7, 1, &elements), snapshot("prices", 8, 0, &elements[..2])])
}

/// Where the first unit begins in the bytes of [`sample`].
const UNITS_AT: usize = 8 + 2 + 2 + "prices".len() + 4;

/// Restores what was read, and uses it: whatever the numbers in it are.
fn use_it(snapshot: Snapshot<Vec<u8>>) {
    let mut operator = operator("restored", 1);
    operator.restore(snapshot, Tick::ZERO).unwrap();
    operator.push(StreamElement::Record(Record::new(vec![1])), Tick::ZERO).unwrap();
    while let Some(effect) = operator.next_effect() {
        if let asyncio::Effect::Start { entry, .. } = effect {
            operator.context(entry).unwrap();
        }
    }
    operator.snapshot().unwrap();
}

#[test]
fn a_snapshot_cut_short_anywhere_says_so() {
    check(32, units(), |units| {
        let bytes = encoded(&combined("prices", &units));
        for length in 0..bytes.len() {
            match decoded(&bytes[..length]).unwrap_err() {
                DecodeError::NotASnapshot => assert!(length < 8, "at {length}"),
                DecodeError::Truncated { offset, wanted } => {
                    assert!(length >= 8 && wanted > 0, "at {length}");
                    assert_eq!(offset, length, "the missing bytes begin where the others end");
                }
                other => panic!("at {length}: {other}"),
            }
        }
    });
}

#[test]
fn bytes_behind_the_end_are_damage() {
    let mut bytes = encoded(&sample());
    let offset = bytes.len();
    bytes.push(0);
    assert_eq!(decoded(&bytes), Err(DecodeError::Damaged { what: "bytes behind the end", offset }));
}

#[test]
fn what_is_damaged_is_named() {
    let bytes = encoded(&sample());
    let damaged = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        decoded(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        damaged(0, b'a'),
        "not a snapshot of an async wait operator: it does not begin with `AWAITOPS`"
    );
    assert_eq!(damaged(12, 0xff), "the snapshot is damaged: a name that is no text at byte 12");
    let first = UNITS_AT + 16;
    assert_eq!(
        damaged(first, 9),
        format!("the snapshot is damaged: an unknown kind of element at byte {first}")
    );
    assert_eq!(
        damaged(first + 1, 2),
        format!("the snapshot is damaged: an unknown timestamp at byte {first}")
    );
    let count = UNITS_AT + 8;
    let text = damaged(count + 1, 1);
    assert_eq!(
        text,
        format!("the snapshot is damaged: more elements than were ever taken in at byte {count}")
    );
}

#[test]
fn a_flipped_bit_is_an_error_or_another_snapshot() {
    let whole = sample();
    let bytes = encoded(&whole);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            if let Ok(read) = decoded(&flipped) {
                assert_ne!(read, whole, "byte {at} bit {bit} means nothing");
                use_it(read);
            }
        }
    }
}

#[test]
fn no_length_is_believed_before_its_bytes_are_there() {
    let bytes = encoded(&sample());
    let first_value_length = UNITS_AT + 16 + 2 + 8 + 4 + 16;
    // Units, elements of a unit (with the next number, which must not be smaller), bytes of a value, bytes of the name.
    let claims: [&[(usize, usize)]; 4] =
        [&[(UNITS_AT - 4, 4)], &[(UNITS_AT, 7), (UNITS_AT + 8, 7)], &[(first_value_length, 4)], &[(10, 2)]];
    for claim in claims {
        let mut claimed = bytes.clone();
        for &(at, width) in claim {
            claimed[at..at + width].fill(0xff);
        }
        let mut read = 0;
        let outcome = Snapshot::decode(&claimed, |value| {
            read += value.len();
            Ok::<_, Infallible>(value.to_vec())
        });
        assert!(outcome.is_err(), "{claim:?}");
        assert!(read <= bytes.len(), "{claim:?}");
    }
}

#[test]
fn a_next_number_beyond_all_that_are_given_out_is_damage() {
    for (next, sane) in [(1_u64 << 62, true), ((1 << 62) + 1, false), (u64::MAX, false)] {
        let mut bytes = encoded(&sample());
        bytes[UNITS_AT..UNITS_AT + 8].copy_from_slice(&next.to_le_bytes());
        match decoded(&bytes) {
            Ok(read) => {
                assert!(sane, "{next}");
                use_it(Snapshot::combined(vec![read; 5]));
            }
            Err(error) => {
                assert!(!sane, "{next}");
                let what = "a number beyond all that are given out";
                assert_eq!(error, DecodeError::Damaged { what, offset: UNITS_AT });
            }
        }
    }
}

#[test]
fn random_bytes_are_refused_or_read_but_never_more() {
    let after_magic = prop::collection::vec(any::<u8>(), 0..200).prop_map(|rest| {
        let mut bytes = b"AWAITOPS\x01\x00".to_vec();
        bytes.extend(rest);
        bytes
    });
    // Few names are text and few numbers small, so most of these are made to begin well.
    let after_name =
        prop::collection::vec(prop_oneof![3 => 0..5_u8, 1 => any::<u8>()], 0..200).prop_map(|rest| {
            let mut bytes =
                b"AWAITOPS\x01\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00".to_vec();
            bytes.extend(b"\x02\x00\x00\x00\x00\x00\x00\x00");
            bytes.extend(rest);
            bytes
        });
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..200), after_magic, after_name];
    check(4000, bytes, |bytes| {
        if let Ok(read) = decoded(&bytes) {
            assert_eq!(encoded(&read), bytes);
            use_it(read);
        }
    });
}
