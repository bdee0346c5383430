//! Tests of records, with serde_json as the oracle.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

fn origin() -> Origin {
    Origin { file: "in.jsonl".into(), line: 1, offset: 0, split_start: 0 }
}

fn record(line: &str) -> JsonRecord {
    JsonRecord::parse(line.to_owned().into(), origin()).unwrap()
}

fn text<'a>(record: &'a JsonRecord, name: &str) -> Option<&'a str> {
    record.field(name).map(JsonText::text)
}

#[test]
fn a_field_is_given_as_it_was_written() {
    let record = record(r#" { "a" : 1E2 ,"b":"x\n", "c": { "a": [1, 2] } , "d":-0.10,"e":null} "#);
    for (name, value) in
        [("a", "1E2"), ("b", r#""x\n""#), ("c", r#"{ "a": [1, 2] }"#), ("d", "-0.10"), ("e", "null")]
    {
        assert_eq!(text(&record, name), Some(value), "{name}");
    }
    assert_eq!(text(&record, "f"), None);
    assert_eq!(record.path("c.a").map(JsonText::text), Some("[1, 2]"));
    assert_eq!(record.path("c.b"), None);
    assert_eq!(record.path("a.b"), None);
}

#[test]
fn a_name_is_found_in_every_spelling() {
    let record = record(r#"{"t\u0061il": 1, "a\"b": 2, "\ud83d\ude00": 3, "\ud800": 4, "": 5}"#);
    for (name, value) in [("tail", "1"), ("a\"b", "2"), ("😀", "3"), ("", "5")] {
        assert_eq!(text(&record, name), Some(value), "{name}");
    }
    let names: Vec<String> = record.fields().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, ["tail", "a\"b", "😀", ""]);
}

#[test]
fn of_equal_names_the_last_is_read_and_replaced() {
    let record = record(r#"{"a":1,"b":2,"\u0061":3,"c":4}"#);
    assert_eq!(text(&record, "a"), Some("3"));
    let changed = record.with_field("a", b"[7,8]");
    assert_eq!(changed.line(), r#"{"a":1,"b":2,"\u0061":[7,8],"c":4}"#);
    assert_eq!((text(&changed, "a"), text(&changed, "c")), (Some("[7,8]"), Some("4")));
}

#[test]
fn a_field_is_added_before_the_brace_and_every_other_byte_stays() {
    for (line, expected) in [
        (r#"{"a":1}"#, r#"{"a":1,"n":{"x":2}}"#),
        (r#"  {"a" : 1 }  "#, r#"  {"a" : 1 ,"n":{"x":2}}  "#),
        ("{}", r#"{"n":{"x":2}}"#),
        ("{ }\r", "{ \"n\":{\"x\":2}}\r"),
        (r#"{"n":0}"#, r#"{"n":{"x":2}}"#),
        (r#"{"n" : "long value", "m":[1,{"n":3}] }"#, r#"{"n" : {"x":2}, "m":[1,{"n":3}] }"#),
        (r#"{"m":{"n":1}}"#, r#"{"m":{"n":1},"n":{"x":2}}"#),
    ] {
        let changed = record(line).with_field("n", br#"{"x":2}"#);
        assert_eq!(changed.line(), expected, "{line}");
        assert_eq!(text(&changed, "n"), Some(r#"{"x":2}"#), "{line}");
        // What was spliced together is what a reader finds.
        let read = record(std::str::from_utf8(changed.line()).unwrap());
        assert_eq!(format!("{:?}", read.fields), format!("{:?}", changed.fields), "{line}");
        assert_eq!(read.close, changed.close, "{line}");
    }
}

#[test]
fn an_added_name_is_escaped_where_it_has_to_be() {
    let changed = record("{}")
        .with_field("a\"\\\n\u{1}ü", b"1")
        .with_field("z", b"2")
        .with_field("a\"\\\n\u{1}ü", b"3");
    assert_eq!(changed.line(), "{\"a\\\"\\\\\\n\\u0001ü\":3,\"z\":2}");
}

#[test]
fn an_answer_takes_the_place_of_the_record_and_keeps_its_origin() {
    let changed = record("{}").replaced_by(Bytes::from_static(b"{\"b\":1}")).unwrap();
    assert_eq!((text(&changed, "b"), changed.origin()), (Some("1"), &origin()));
    assert!(record("{}").replaced_by(Bytes::from_static(b"[1]")).is_err());
}

#[test]
fn what_is_no_object_says_why_and_where() {
    for (line, at, reason) in [
        (&b""[..], 0, "the line is empty"),
        (b"  ", 2, "the line is empty"),
        (b"[1]", 0, "no JSON object"),
        (b"1", 0, "no JSON object"),
        (b"\xef\xbb\xbf{}", 0, "no JSON object"),
        (b"{", 1, "expected a field's name in quotes"),
        (b"{a:1}", 1, "expected a field's name in quotes"),
        (b"{\"a\" 1}", 5, "expected `:`"),
        (b"{\"a\":}", 5, "expected a value"),
        (b"{\"a\":nul}", 5, "expected a value"),
        (b"{\"a\":1", 6, "expected `,` or `}`"),
        (b"{\"a\":1,}", 7, "expected a field's name in quotes"),
        (b"{\"a\":[1}", 7, "expected `,` or `]`"),
        (b"{\"a\":{\"b\":1]}", 11, "expected `,` or `}`"),
        (b"{\"a\":1} x", 8, "something follows the JSON value"),
        (b"{\"a\":01}", 6, "a number does not start with 0"),
        (b"{\"a\":-}", 6, "expected a digit"),
        (b"{\"a\":1.}", 7, "expected a digit"),
        (b"{\"a\":1e}", 7, "expected a digit"),
        (b"{\"a\":\"x}", 8, "a string is not closed"),
        (b"{\"a\":\"\t\"}", 6, "a control character in a string is to be escaped"),
        (b"{\"a\":\"\\x\"}", 7, "unknown escape in a string"),
        (b"{\"a\":\"\\u12g4\"}", 10, "expected four hex digits after \\u"),
        (b"{\"a\":\"\xff\"}", 6, "invalid UTF-8"),
        (b"{\"a\":\"\xed\xa0\x80\"}", 6, "invalid UTF-8"),
    ] {
        let error = JsonRecord::parse(Bytes::from_static(line), origin()).unwrap_err();
        assert_eq!((error.reason.as_str(), error.at), (reason, at), "{}", line.escape_ascii());
    }
}

#[test]
fn depth_costs_no_stack() {
    let line = format!("{{\"a\":{}1{},\"b\":2}}", "[{\"x\":".repeat(10_000), "}]".repeat(10_000));
    let record = record(&line);
    assert_eq!(text(&record, "b"), Some("2"));
    assert_eq!(record.path("a").map(|a| a.text().len()), Some(80_001));
    assert_eq!(elements(record.field("a").unwrap()).len(), 1);
    assert_eq!(compact(line.as_bytes()).unwrap(), line);
}

#[test]
fn strings_and_numbers_are_read() {
    let record = record(
        r#"{"s":"a\u00fc\/\b\f\n\r\t\"\\😀\ud83d\ude00","lone":"x\udc00\ud800y","i":-7,"f":1.5,"e":1e2,"big":9223372036854775808,"huge":1e999,"t":true}"#,
    );
    let get = |name: &str| record.field(name).unwrap();
    assert_eq!(get("s").string().unwrap(), "aü/\u{8}\u{c}\n\r\t\"\\😀😀");
    assert_eq!(get("lone").string(), Err(LoneSurrogate));
    assert_eq!(get("i").string().unwrap(), "-7");
    assert_eq!((get("i").as_i64(), get("i").as_f64()), (Some(-7), Some(-7.0)));
    assert_eq!((get("f").as_i64(), get("f").as_f64()), (None, Some(1.5)));
    assert_eq!((get("e").as_i64(), get("e").as_f64()), (None, Some(100.0)));
    assert_eq!((get("big").as_i64(), get("big").as_f64()), (None, Some(9_223_372_036_854_775_808.0)));
    assert_eq!((get("huge").as_i64(), get("huge").as_f64()), (None, None));
    assert_eq!((get("t").as_bool(), get("t").as_i64(), get("s").as_f64()), (Some(true), None, None));
}

#[test]
fn compaction_keeps_all_but_the_white_space_between_tokens() {
    for (json, expected) in [
        (" { \"a b\" : [ 1 , 2.50 ] , \"c\\\" \" : \" \\\\\" } \n", r#"{"a b":[1,2.50],"c\" ":" \\"}"#),
        ("\r\n1\t", "1"),
        ("\" \"", "\" \""),
    ] {
        assert_eq!(compact(json.as_bytes()).unwrap(), expected);
    }
    for json in ["", " ", "{} {}", "{\"a\":}", "tru"] {
        assert!(compact(json.as_bytes()).is_err(), "{json}");
    }
}

/// JSON and what is nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?",
        "\"([ -!#-\\[\\]-~äß€😀]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-fA-F]{2}){0,12}\"",
    ];
    let white = "[ \t\r\n]{0,2}";
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let list = (proptest::collection::vec(inner.clone(), 0..4), white)
            .prop_map(|(items, w)| format!("[{w}{}{w}]", items.join(&format!("{w},{w}"))));
        let name = "\"(a|b|c|\\\\u0061|\\\\n|[ -!#-\\[\\]-~]){0,3}\"";
        let map = (proptest::collection::vec((name, inner), 0..5), white).prop_map(|(fields, w)| {
            let fields: Vec<String> = fields.iter().map(|(n, v)| format!("{n}{w}:{w}{v}")).collect();
            format!("{{{w}{}{w}}}", fields.join(&format!("{w},{w}")))
        });
        prop_oneof![list, map]
    })
}

fn spoilt(json: String, at: usize, with: Option<char>) -> String {
    let mut chars: Vec<char> = json.chars().collect();
    if !chars.is_empty() {
        let at = at % chars.len();
        match with {
            Some(c) => chars[at] = c,
            None => {
                chars.remove(at);
            }
        }
    }
    chars.into_iter().collect()
}

/// What serde_json reads of an object without building values, so that numbers of any size pass.
type Oracle = std::collections::BTreeMap<String, Box<RawValue>>;

fn agrees(line: &str) -> Result<(), TestCaseError> {
    let oracle = serde_json::from_str::<Oracle>(line);
    let ours = JsonRecord::parse(line.to_owned().into(), origin());
    prop_assert_eq!(oracle.is_ok(), ours.is_ok(), "{}: {:?} {:?}", line, oracle.err(), ours.err());
    let (Ok(oracle), Ok(ours)) = (serde_json::from_str::<Oracle>(line), ours) else { return Ok(()) };
    for (name, value) in &oracle {
        prop_assert_eq!(text(&ours, name), Some(value.get()), "{} of {}", name, line);
    }
    // Setting a field changes that field and nothing else.
    for name in oracle.keys().map(String::as_str).chain(["new"]) {
        let changed = ours.with_field(name, b"{\"set\":1}");
        let line = std::str::from_utf8(changed.line()).unwrap();
        let mut expected: Vec<(String, String)> =
            oracle.iter().map(|(n, v)| (n.clone(), v.get().to_owned())).collect();
        expected.retain(|(n, _)| n != name);
        expected.push((name.to_owned(), "{\"set\":1}".to_owned()));
        expected.sort();
        let read: Vec<(String, String)> = serde_json::from_str::<Oracle>(line)
            .map_err(|e| TestCaseError::fail(format!("{e}: {line}")))?
            .into_iter()
            .map(|(n, v)| (n, v.get().to_owned()))
            .collect();
        prop_assert_eq!(read, expected, "{}", line);
        let reread = record(line);
        prop_assert_eq!(format!("{:?}", reread.fields), format!("{:?}", changed.fields));
    }
    let compacted = compact(line.as_bytes()).unwrap();
    let (before, after) =
        (serde_json::from_str::<serde_json::Value>(line), serde_json::from_slice(&compacted));
    if let (Ok(before), Ok(after)) = (before, after) {
        let after: serde_json::Value = after;
        prop_assert_eq!(before, after);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_scanner_agrees_with_serde_json(json in nearly_json(), wrap in any::<bool>()) {
        let line = if wrap { format!("{{\"w\": {json} }}") } else { json };
        agrees(&line)?;
    }

    #[test]
    fn the_scanner_agrees_with_serde_json_on_spoilt_json(
        json in nearly_json(),
        at in any::<usize>(),
        with in proptest::option::of(proptest::sample::select(vec!['{', '}', '[', ']', '"', '\\', ',', ':', '0', '-', '.', 'e', 'u', ' ', '\t', '\u{1}', 'ä'])),
    ) {
        agrees(&spoilt(format!("{{\"w\": {json} }}"), at, with))?;
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused(prefix in "[ -!#-\\[\\]-~ä😀]{0,20}", bad in proptest::collection::vec(any::<u8>(), 1..6)) {
        let mut line = format!("{{\"a\":\"{prefix}").into_bytes();
        line.extend(&bad);
        line.extend(b"\"}");
        let ours = JsonRecord::parse(Bytes::from(line.clone()), origin()).is_ok();
        // serde_json leaves strings that it skips unchecked, so it is given text.
        let oracle = std::str::from_utf8(&line).is_ok_and(|text| serde_json::from_str::<Oracle>(text).is_ok());
        prop_assert_eq!(ours, oracle);
    }
}
