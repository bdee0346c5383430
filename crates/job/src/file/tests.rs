//! Tests of job files that are right, of `--set`, of paths and of the JSON that travels.

use proptest::prelude::*;

use super::*;
use crate::options::{OnFailure, Order, Retry};

/// The example of the documentation, every key written out.
const FULL: &str = r#"
name: enrich-orders
parallelism: 2
max_parallelism: 128
checkpoints:
  interval: 1s
  timeout: 10m
  dir: file:///var/lib/tidegate/checkpoints
  retain: 1
restart:
  strategy: fixed-delay
  attempts: 10
  delay: 1s
source:
  file:
    path: orders/*.jsonl
    split: auto
    event_time: ts
    watermark_lag: 5s
    max_rate: 10000
    max_record: 1MiB
steps:
  - filter: "amount > 500"
  - enrich:
      name: customer
      order: ordered
      key: customer_id
      max_in_flight_per_key: 1
      capacity: 100
      timeout: 30s
      attempt_timeout: 1s
      retry: {strategy: fixed-delay, max_retries: 3, delay: 100ms}
      on_empty: keep
      on_failure: fail
      into: customer
      max_answer: 1MiB
      call:
        http: {url: "http://127.0.0.1:9900/customers/{customer_id}.json"}
sink:
  file: {path: out/enriched.jsonl}
dead_letters:
  file: {path: out/dead.jsonl}
"#;

const SMALL: &str = "name: s\nsource: {file: {path: in.jsonl}}\nsteps:\n  - filter: a\n  - enrich: {name: c.d, call: {rust: f}}\n\
                     sink: {file: {path: out.jsonl}}\n";

fn spec(file: &JobFile) -> JobSpec {
    file.spec().unwrap()
}

fn step(spec: &JobSpec, index: usize) -> &crate::options::EnrichOptions {
    match &spec.steps[index].kind {
        StepKind::Enrich(enrich) => enrich,
        StepKind::Filter(_) => panic!("step {index} is a filter"),
    }
}

#[test]
fn every_key_is_read() {
    let spec = spec(&JobFile::parse(FULL, "full.yaml").unwrap());
    assert_eq!((spec.name.as_str(), spec.parallelism, spec.max_parallelism), ("enrich-orders", 2, 128));
    let source = &spec.source;
    assert_eq!(
        (source.event_time.as_deref(), source.max_rate, source.max_record),
        (Some("ts"), Some(1e4), 1 << 20)
    );
    let enrich = step(&spec, 1);
    assert_eq!(enrich.order, Order::Ordered);
    assert_eq!(enrich.on_failure, OnFailure::Fail);
    assert_eq!(enrich.attempt_timeout, Some(std::time::Duration::from_secs(1)));
    assert!(matches!(enrich.retry, Retry::FixedDelay { max_retries: 3, .. }));
    assert!(spec.dead_letters.is_some_and(|sink| sink.dead_letters && !sink.parts));
}

#[test]
fn what_becomes_of_failures_depends_on_whether_there_are_dead_letters() {
    let without = JobFile::parse(SMALL, "s.yaml").unwrap();
    assert_eq!(step(&spec(&without), 1).on_failure, OnFailure::Fail);
    let mut with = without;
    with.apply_set("dead_letters.file.path", "dead/").unwrap();
    let spec = spec(&with);
    assert_eq!(step(&spec, 1).on_failure, OnFailure::DeadLetter);
    assert!(
        matches!(&spec.steps[0].kind, StepKind::Filter(filter) if filter.on_failure == OnFailure::DeadLetter)
    );
}

#[test]
fn the_restart_default_depends_on_whether_there_are_checkpoints() {
    let mut file = JobFile::parse(SMALL, "s.yaml").unwrap();
    assert_eq!(spec(&file).restart, crate::options::RestartStrategy::None);
    file.apply_set("checkpoints", "{interval: 1s, dir: /tmp/c}").unwrap();
    assert!(matches!(spec(&file).restart, crate::options::RestartStrategy::ExponentialDelay { .. }));
    file.apply_set("restart", "none").unwrap();
    assert_eq!(spec(&file).restart, crate::options::RestartStrategy::None);
}

#[test]
fn a_timeout_can_be_switched_off() {
    let mut file = JobFile::parse(SMALL, "s.yaml").unwrap();
    assert_eq!(step(&spec(&file), 1).timeout, Some(std::time::Duration::from_secs(30)));
    file.apply_set("steps.c.d.timeout", "none").unwrap();
    assert_eq!(step(&spec(&file), 1).timeout, None);
}

#[test]
fn a_set_reaches_steps_by_name_and_by_place() {
    let mut file = JobFile::parse(SMALL, "s.yaml").unwrap();
    for (key, value) in [
        ("parallelism", "3"),
        ("source.file.max_rate", "2.5"),
        ("steps.c.d.capacity", "7"),
        ("steps.1.enrich.into", "x"),
        ("steps[1].enrich.on_empty", "drop"),
        ("steps.filter-1.on_failure", "drop"),
        ("steps.c.d.call.rust", "g"),
    ] {
        file.apply_set(key, value).unwrap();
    }
    let spec = spec(&file);
    assert_eq!((spec.parallelism, spec.source.max_rate), (3, Some(2.5)));
    let enrich = step(&spec, 1);
    assert_eq!((enrich.capacity, enrich.into.as_deref()), (7, Some("x")));
    assert_eq!(enrich.on_empty, crate::options::OnEmpty::Drop);
    assert!(matches!(&enrich.call, crate::options::CallOptions::Rust(name) if name == "g"));
    let StepKind::Filter(filter) = &spec.steps[0].kind else { panic!() };
    assert_eq!((filter.on_failure, filter.condition.source()), (OnFailure::Drop, "a"));
}

#[test]
fn what_a_set_spoils_names_the_flag() {
    for (key, value, message) in [
        ("parallelism", "0", "parallelism: expected a whole number from 1 to 128, found the number 0"),
        (
            "steps.c.d.capacity",
            "0",
            "steps[1].enrich.capacity: expected a whole number from 1 to 100000000, found the number 0",
        ),
        (
            "paralelism",
            "2",
            "paralelism: unknown key, did you mean `parallelism`? Allowed here: name, parallelism, \
          max_parallelism, checkpoints, restart, source, steps, sink, dead_letters",
        ),
        (
            "steps.c.d.retry.strategy",
            "no",
            "steps[1].enrich.retry.strategy: expected one of none, fixed-delay, \
          exponential-delay, found \"no\", did you mean `none`?",
        ),
        ("steps.cd.capacity", "1", "there is no step `cd`; there are filter-1, c.d"),
        ("steps.x.capacity", "1", "there is no step `x`; there are filter-1, c.d"),
        ("steps.c.d", "1", "say which key of the step is meant: steps.c.d.KEY"),
        ("steps.2.filter", "a", "there is no step 2; there are 2, from 0"),
        ("name.first", "x", "`first` cannot be set: what it belongs to has no keys"),
        ("", "x", "expected KEY=VALUE, such as parallelism=4 or steps.customer.capacity=50"),
        ("name", "{", "the value is no YAML: unclosed bracket '{'"),
    ] {
        let mut file = JobFile::parse(SMALL, "s.yaml").unwrap();
        let result = file.apply_set(key, value).and_then(|()| file.check());
        let errors = result.expect_err(key);
        assert_eq!(errors.to_string(), format!("--set {key}={value}: {message}"));
        assert!(errors.iter().all(|error| error.line().is_none()));
    }
}

#[test]
fn a_set_can_supply_what_the_file_lacks() {
    let mut file = JobFile::read("name: s\nsteps: [{filter: a}]\nsource: {file: }\n", "s.yaml").unwrap();
    assert!(file.check().is_err());
    file.apply_set("source.file.path", "in").unwrap();
    file.apply_set("sink.file.path", "out/").unwrap();
    file.check().unwrap();
}

#[test]
fn checkpoints_may_be_kept_in_buckets() {
    let mut file = JobFile::parse(FULL, "full.yaml").unwrap();
    for url in ["s3://bucket/path", "gs://bucket", "az://container/path"] {
        file.apply_set("checkpoints.dir", url).unwrap();
        file.absolute_paths("/jobs".as_ref());
        assert_eq!(spec(&file).checkpoints.unwrap().dir, url);
    }
}

#[test]
fn relative_paths_are_meant_from_the_job_files_folder() {
    let mut file = JobFile::parse(FULL, "full.yaml").unwrap();
    file.apply_set("steps.customer.call", "{table: {file: ./c.jsonl, key: k, by: b}}").unwrap();
    file.apply_set("checkpoints.dir", "ck").unwrap();
    file.apply_set("dead_letters.file.path", "/abs/dead/").unwrap();
    let relative = file.require_absolute_paths().unwrap_err();
    let paths: Vec<&str> = relative.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        paths,
        ["source.file.path", "sink.file.path", "checkpoints.dir", "steps[1].enrich.call.table.file"]
    );
    file.absolute_paths("/jobs/[new]".as_ref());
    file.require_absolute_paths().unwrap();
    let spec = spec(&file);
    // A glob keeps the folder's own brackets from being wild.
    assert_eq!(spec.source.path, "/jobs/[[]new]/orders/*.jsonl");
    assert_eq!(spec.sink.path, std::path::Path::new("/jobs/[new]/out/enriched.jsonl"));
    assert_eq!(spec.checkpoints.unwrap().dir, "file:///jobs/[new]/ck");
    assert!(spec.dead_letters.unwrap().parts);
    let StepKind::Enrich(enrich) = &spec.steps[1].kind else { panic!() };
    assert!(
        matches!(&enrich.call, crate::options::CallOptions::Table(table) if table.file.ends_with("c.jsonl") && table.file.is_absolute())
    );
}

#[test]
fn the_json_that_travels_is_the_same_job() {
    let file = JobFile::parse(FULL, "full.yaml").unwrap();
    let json = file.to_json();
    assert!(!json.contains('\n'));
    let read = JobFile::parse(&json, "body").unwrap();
    assert_eq!(read.to_json(), json);
    assert_eq!(format!("{:?}", spec(&read)), format!("{:?}", spec(&file)));
    assert_eq!(read.name(), Some("enrich-orders"));
}

#[test]
fn shorthands_and_yaml_features_are_understood() {
    let text = "x: &t 5s\n".to_owned() + SMALL;
    // An anchor needs a key to stand in, and unknown keys are refused; within known keys it works.
    assert!(JobFile::parse(&text, "s.yaml").is_err());
    let text = SMALL.replace("name: c.d,", "name: c.d, timeout: &t 5s, attempt_timeout: *t, retry: none,");
    let spec = spec(&JobFile::parse(&text, "s.yaml").unwrap());
    assert_eq!(step(&spec, 1).attempt_timeout, Some(std::time::Duration::from_secs(5)));
}

#[test]
fn json_is_read_with_all_its_escapes_and_doubled_keys_are_refused() {
    let json = r#"{"name":"\ud83d\ude00 \u007fDEL","steps":[]}"#;
    let json = &json.replace("DEL", "\u{7f}");
    assert_eq!(JobFile::read(json, "j").unwrap().name(), Some("\u{1f600} \u{7f}\u{7f}"));
    let doubled = json.replace("steps", "name");
    let error = JobFile::read(&doubled, "j").unwrap_err();
    assert!(error.to_string().starts_with("j:1:"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_survives_the_json(text in "\\PC{0,20}|[\\x00-\\x7f]{0,12}", number in any::<i64>(), float in any::<f64>()) {
        let file = JobFile { file: "a".to_owned(), root: tree(&text, number, float) };
        let read = JobFile::read(&file.to_json(), "a").map_err(|e| TestCaseError::fail(format!("{e} {}", file.to_json())))?;
        prop_assert_eq!(read.to_json(), file.to_json());
    }
}

fn tree(text: &str, number: i64, float: f64) -> Node {
    use node::{Entry, Value};
    let place = Place::START;
    let node = |value| Node { place: Place::START, value };
    let float = if float.is_finite() { float } else { 0.5 };
    let values = vec![
        node(Value::Text(text.to_owned())),
        node(Value::Whole(number.into())),
        node(Value::Float(float)),
        node(Value::Null),
    ];
    let entry = Entry { key: format!("k{text}"), key_place: place.clone(), node: node(Value::List(values)) };
    Node { place, value: Value::Map(vec![entry]) }
}

#[test]
fn files_that_are_made_to_hurt_are_refused() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(b'b'..=b'k')
            .map(|c| (char::from(c), char::from(c - 1)))
            .fold(String::new(), |text, (c, before)| {
                format!("{text}{c}: &{c} [{}]\n", vec![format!("*{before}"); 9].join(","))
            });
    for text in
        ["[".repeat(2_000), format!("{}{}", "{a: ".repeat(5_000), "}".repeat(5_000)), bomb, "\0".to_owned()]
    {
        assert!(JobFile::parse(&text, "j.yaml").is_err());
    }
}
