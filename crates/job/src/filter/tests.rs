//! Tests of conditions.

use super::*;
use crate::record::Origin;

fn evaluate(condition: &str, record: &str) -> Result<bool, FilterError> {
    let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
    let record = JsonRecord::parse(record.to_owned().into(), origin).unwrap();
    Filter::compile(condition).unwrap().evaluate(&record)
}

const FLIGHT: &str = r#"{"distance": 719, "carrier": "UA", "delay": null, "share": 0.5, "big": 99999999999999999999,
    "on time": true, "late": false, "plane": {"year": 1999, "tags": ["a", {"b": [1, 2.5]}], "year": 2001}, "t\u0061il": "N\u0031"}"#;

#[test]
fn conditions_see_fields_of_every_kind() {
    for (condition, expected) in [
        ("distance > 500 && carrier == 'UA'", true),
        ("distance > 500.5", true),
        ("distance < 500", false),
        ("delay == null", true),
        ("share * 2.0 == 1.0", true),
        ("big > 1e19", true),
        ("!late", true),
        ("plane.year == 2001", true),
        ("plane.tags[1].b[1] == 2.5", true),
        ("'a' in plane.tags", true),
        ("plane.tags.size() == 2", true),
        ("has(plane.year) && !has(plane.wings)", true),
        ("tail == 'N1'", true),
        ("record['on time']", true),
        ("record.distance == distance", true),
        ("has(record.distance) && !has(record.altitude)", true),
        ("record.delay != null", false),
        ("has(record.delay)", true),
        ("record.altitude != null", false),
        ("null == record['altitude']", true),
        ("record.distance != null && distance > 1", true),
        ("record.plane.wings != null || record.plane.tags == null", false),
        ("[1].exists(x, record.altitude == null)", true),
        ("'carrier' in record && !('x' in record)", true),
        ("size(record) == 9", true),
        ("has(record.plane.year)", true),
        ("carrier.startsWith('U') && carrier.matches('^U.$') && double(distance) + 1.5 > 700.0", true),
        ("timestamp('2013-01-01T10:00:00Z').getFullYear() == 2013", true),
        ("plane.tags.exists(t, t == 'a')", true),
        ("altitude > 1 && false", false),
        ("altitude > 1 || true", true),
        ("carrier == 7", false),
    ] {
        assert_eq!(evaluate(condition, FLIGHT), Ok(expected), "{condition}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_an_error_that_says_why() {
    for (condition, message) in [
        ("altitude > 1", "the record has no field altitude"),
        ("record.altitude > 1", "there is no field altitude"),
        ("plane.wings == 2", "there is no field wings"),
        ("delay > 1", "found no matching overload for '_>_' applied to '(null_type, int)'"),
        ("carrier > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
    ] {
        let expected = FilterError::Evaluation { message: message.to_owned() };
        assert_eq!(evaluate(condition, FLIGHT), Err(expected), "{condition}");
    }
    assert!(matches!(evaluate("distance / 0 == 1", FLIGHT), Err(FilterError::Evaluation { .. })));
    assert!(matches!(evaluate("distance", FLIGHT), Err(FilterError::NotBool { .. })));
}

#[test]
fn a_value_that_cel_cannot_hold_spoils_only_the_conditions_that_use_it() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for value in [&deep, "1e999", r#""\ud800""#] {
        let record = format!(r#"{{"odd": {value}, "even": 2}}"#);
        assert_eq!(evaluate("even == 2 && record.even == 2 && has(record.even)", &record), Ok(true));
        for condition in ["odd == 1", "record.odd == 1"] {
            let error = evaluate(condition, &record).unwrap_err().to_string();
            assert!(error.contains("cannot be used in a condition"), "{error}");
        }
    }
}

#[test]
fn what_is_no_condition_is_refused_with_its_place() {
    for (condition, line, column) in
        [("amount >", 1, 9), ("a &&\n  ) b", 2, 3), ("", 1, 1), ("has(amount)", 1, 5)]
    {
        match Filter::compile(condition) {
            Err(FilterError::Syntax { line: l, column: c, message }) => {
                assert_eq!((l, c), (line, column), "{condition}: {message}");
                assert!(!message.contains("expecting") && !message.contains('\n'), "{message}");
            }
            other => panic!("{condition}: {other:?}"),
        }
    }
}

#[test]
fn unknown_functions_are_refused_before_a_record_comes() {
    let error = Filter::compile("carrier.startWith('U')").unwrap_err();
    assert_eq!(error.to_string(), "unknown function `startWith`, did you mean `startsWith`?");
    let error = Filter::compile("zip(carrier)").unwrap_err();
    assert_eq!(error.to_string(), "unknown function `zip`");
}

#[test]
fn the_known_functions_are_sorted_for_the_search() {
    assert!(FUNCTIONS.is_sorted());
}

#[test]
fn no_condition_brings_the_task_down() {
    for condition in [
        "carrier.matches('(')",
        "9223372036854775807 + distance > 0",
        "-(-9223372036854775807 - 1) > 0",
        "distance % 0 == 0",
        "timestamp(carrier) == timestamp('2013-01-01T10:00:00Z')",
        "duration('99999999999999h') > duration('1s')",
        "int(1e300) > 0",
        "uint(-1) > 0u",
        "plane.tags[5] == 1",
        "plane.tags[-1] == 1",
        "{'a': 1}.b == 1",
        "string(plane) == ''",
        "plane.tags.map(t, t + 1) == []",
        "record.exists(f, f == 'carrier')",
        "record == plane",
        "size(distance) == 1",
        "Flight{distance: 1} == 1",
        "timestamp('9999-12-31T23:59:59Z') + duration('1000h') > timestamp('2013-01-01T10:00:00Z')",
    ] {
        // Refused, an error of the record, or an answer: anything but a panic.
        let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
        let record = JsonRecord::parse(FLIGHT.into(), origin).unwrap();
        let outcome =
            std::panic::catch_unwind(|| Filter::compile(condition).map(|f| f.evaluate(&record)).is_ok());
        assert!(outcome.is_ok(), "{condition}");
    }
}
