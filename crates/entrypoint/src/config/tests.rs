//! The layers together: what is taken from where, and what each mistake is told as.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

struct Case {
    dir: tempfile::TempDir,
    layers: Layers,
}

impl Case {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), layers: Layers::default() }
    }

    fn file(mut self, text: &str) -> Self {
        let path = self.dir.path().join("tidegate.yaml");
        fs::write(&path, text).unwrap();
        self.layers.file = Some(path);
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.layers.environment.push((OsString::from(name), OsString::from(value)));
        self
    }

    fn set(mut self, assignment: &str) -> Self {
        self.layers.set.push(assignment.to_owned());
        self
    }

    fn load(&self, role: Role) -> Result<Config, ConfigError> {
        Config::load(role, &self.layers)
    }

    fn refusal(&self, role: Role) -> String {
        let text = self.load(role).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text:?}");
        text.replace(&format!("{}/", self.dir.path().display()), "")
    }
}

#[test]
fn the_later_layer_wins_and_is_named_as_the_origin() {
    let interval = &keys::HEARTBEAT_INTERVAL;
    let mut case = Case::new();
    let defaults = case.load(Role::JobMaster).unwrap();
    assert_eq!(
        (defaults.get(interval), defaults.origin(interval)),
        (Duration::from_secs(10), Source::Default)
    );

    case = case.file("# a comment\nheartbeat:\n  interval: 9s\n");
    let file = case.load(Role::JobMaster).unwrap();
    assert_eq!(file.get(interval), Duration::from_secs(9));
    assert!(matches!(file.origin(interval), Source::File { line: 3, .. }), "{:?}", file.origin(interval));

    case = case.variable("TIDEGATE_HEARTBEAT_INTERVAL", "8s");
    let variable = case.load(Role::JobMaster).unwrap();
    assert_eq!(variable.get(interval), Duration::from_secs(8));
    assert_eq!(variable.origin(interval), Source::Variable("TIDEGATE_HEARTBEAT_INTERVAL".to_owned()));

    case = case.set("heartbeat.interval=7s").set("heartbeat.interval = 6s");
    let set = case.load(Role::JobMaster).unwrap();
    assert_eq!((set.get(interval), set.origin(interval)), (Duration::from_secs(6), Source::Flag));
}

#[test]
fn one_file_serves_all_roles_with_nested_and_dotted_keys() {
    let case = Case::new().file(
        "heartbeat: {interval: 1s, timeout: 5000}\ntaskexecutor.slots: 3\nworker.driver: process\n\
         metrics.bind: off\nlog:\n  format: json\nstate:\n  # dir: elsewhere\n",
    );
    for role in Role::ALL {
        let config = case.load(*role).unwrap();
        assert_eq!(config.get(&keys::HEARTBEAT_TIMEOUT), Duration::from_secs(5));
        assert_eq!(config.get(&keys::LOG_FORMAT), LogFormat::Json);
        assert_eq!(config.get(&keys::METRICS_BIND), None);
    }
    assert_eq!(case.load(Role::TaskExecutor).unwrap().get(&keys::TASKEXECUTOR_SLOTS), 3);
    assert_eq!(case.load(Role::ResourceManager).unwrap().get(&keys::WORKER_DRIVER), WorkerDriver::Process);
    assert_eq!(case.load(Role::JobMaster).unwrap().get(&keys::STATE_DIR), PathBuf::from("./tidegate-state"));
}

#[test]
fn a_file_without_content_or_with_a_byte_order_mark_is_read() {
    for text in
        ["", "\n\n", "# only a comment\n", "---\n", "{}", "\u{feff}# x\n", "\u{feff}taskexecutor.slots: 1\n"]
    {
        assert!(Case::new().file(text).load(Role::TaskExecutor).is_ok(), "{text:?}");
    }
}

#[test]
fn defaults_differ_by_role_where_they_must() {
    let bind = |role| Config::defaults(role).get(&keys::RPC_BIND).port();
    assert_eq!(
        [bind(Role::ResourceManager), bind(Role::JobMaster), bind(Role::TaskExecutor)],
        [6120, 6123, 0]
    );
    assert_eq!(
        Config::defaults(Role::TaskExecutor).get(&keys::RESOURCEMANAGER_ADDRESS).as_str(),
        "http://127.0.0.1:6120"
    );
}

#[test]
fn every_default_passes_its_own_check_and_reads_back() {
    for role in Role::ALL {
        Case::new().load(*role).unwrap();
        for key in keys::KEYS {
            let text = key.default_text(*role);
            let read = key.read(&text).unwrap_or_else(|e| panic!("{} = {text}: {e}", key.name()));
            assert_eq!(read.text, text);
        }
    }
}

#[test]
fn keys_stand_in_order_and_no_two_share_a_variable() {
    let names: Vec<_> = keys::KEYS.iter().map(|key| key.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
    let variables: std::collections::BTreeSet<_> = names.iter().map(|name| variable(name)).collect();
    assert_eq!(variables.len(), names.len());
    assert!(variables.contains("TIDEGATE_HEARTBEAT_RPC_FAILURE_THRESHOLD"));
}

/// Each mistake with what its one line must have in it.
#[test]
fn mistakes_name_key_value_source_and_what_would_be_right() {
    let te = Role::TaskExecutor;
    let cases: &[(Case, Role, &[&str])] = &[
        (
            Case::new().file("a: 1\n").set("x=1"),
            te,
            &["a: unknown key", "\"1\"", "tidegate.yaml:1", "--print-config"],
        ),
        (
            Case::new().file("\nheartbeat:\n  intervall: 5s\n"),
            te,
            &["heartbeat.intervall", "\"5s\"", "tidegate.yaml:3", "did you mean heartbeat.interval?"],
        ),
        (
            Case::new().set("worker.drivr=process"),
            te,
            &["worker.drivr", "flag --set", "did you mean worker.driver?"],
        ),
        (Case::new().file("heartbeat: 5\n"), te, &["heartbeat: unknown key", "a group", "heartbeat.timeout"]),
        (
            Case::new().file("rpc: {bind: {host: x}}\n"),
            te,
            &["rpc.bind.host: unknown key", "did you mean rpc.bind?"],
        ),
        (
            Case::new().file("heartbeat:\n  interval: 5 parsecs\n"),
            te,
            &["heartbeat.interval", "\"5 parsecs\"", "tidegate.yaml:2", "a duration such as"],
        ),
        (
            Case::new().variable("TIDEGATE_TASKEXECUTOR_SLOTS", "many"),
            te,
            &["taskexecutor.slots", "\"many\"", "variable TIDEGATE_TASKEXECUTOR_SLOTS", "whole number"],
        ),
        (
            Case::new().set("taskexecutor.slots=0"),
            te,
            &["taskexecutor.slots", "\"0\"", "flag --set", "1 to 65536"],
        ),
        (Case::new().set("taskexecutor.slots=-1"), te, &["\"-1\"", "whole number"]),
        (Case::new().set("taskexecutor.slots=99999999999999999999"), te, &["whole number"]),
        (Case::new().set("heartbeat.interval=0"), te, &["heartbeat.interval", "\"0\"", "above 0"]),
        (Case::new().set("heartbeat.rpc-failure-threshold=0"), te, &["\"0\"", "above 0, or -1"]),
        (Case::new().set("heartbeat.detector=clever"), te, &["\"clever\"", "one of fixed, adaptive"]),
        (Case::new().set("rpc.bind=6123"), te, &["rpc.bind", "\"6123\"", "127.0.0.1:6123"]),
        (Case::new().set("rpc.bind=127.0.0.1:66000"), te, &["127.0.0.1:66000"]),
        (Case::new().set("metrics.bind=on"), te, &["metrics.bind", "\"on\"", "or off"]),
        (Case::new().set("resourcemanager.address=127.0.0.1:6120"), te, &["http://127.0.0.1:6120"]),
        (Case::new().set("taskexecutor.resource-id=a b"), te, &["\"a b\"", "A-Z a-z 0-9 . _ -"]),
        (Case::new().set("data.batch-size=1GiB"), te, &["1KiB to 4MiB"]),
        (Case::new().set("state.dir="), Role::JobMaster, &["state.dir", "\"\"", "a path"]),
        (Case::new().file("heartbeat.interval:\n"), te, &["heartbeat.interval", "nothing", "a duration"]),
        (Case::new().file("heartbeat.interval: [1, 2]\n"), te, &["a list", "a duration"]),
        (Case::new().file("a\nb: [\n"), te, &["--config tidegate.yaml", "line"]),
        (Case::new().file("- 1\n"), te, &["--config tidegate.yaml", "mapping"]),
        (
            Case::new().file("heartbeat: {interval: 1s}\nheartbeat.interval: 2s\n"),
            te,
            &["heartbeat.interval: set twice", "lines 1 and 2"],
        ),
        (Case::new().set("heartbeat.interval"), te, &["--set \"heartbeat.interval\"", "KEY=VALUE"]),
        (Case::new().set("=5"), te, &["KEY=VALUE"]),
        (
            Case::new().file("heartbeat.interval: 5s\n").set("heartbeat.timeout=5s"),
            te,
            &[
                "heartbeat.timeout: 5s from flag --set",
                "heartbeat.interval = 5s",
                "tidegate.yaml:1",
                "longer",
            ],
        ),
        (
            Case::new().set("rpc.bind=0.0.0.0:6123"),
            te,
            &[
                "rpc.bind: 0.0.0.0:6123",
                "flag --set",
                "rpc.advertise = auto from default",
                "expected rpc.advertise",
            ],
        ),
        (Case::new().set("rpc.bind=[::]:6123"), te, &["rpc.advertise"]),
        (Case::new().set("data.bind=0.0.0.0:0"), te, &["data.bind", "expected data.advertise"]),
        (Case::new().set("rpc.advertise=0.0.0.0:1"), te, &["rpc.advertise", "peers can reach"]),
        (Case::new().set("rest.bind=127.0.0.1:6123"), Role::JobMaster, &["rest.bind", "rpc.bind", "port"]),
        (
            Case::new().set("metrics.bind=0.0.0.0:8081"),
            Role::JobMaster,
            &["metrics.bind", "rest.bind", "port"],
        ),
    ];
    for (case, role, parts) in cases {
        let text = case.refusal(*role);
        for part in *parts {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
    }
}

#[test]
fn a_mistake_in_a_layer_is_told_although_a_later_layer_replaces_the_value() {
    let case = Case::new().file("heartbeat.interval: x\n").set("heartbeat.interval=1s");
    assert!(case.refusal(Role::JobMaster).contains("tidegate.yaml:1"));
}

#[test]
fn a_missing_file_is_named() {
    let mut case = Case::new();
    case.layers.file = Some(case.dir.path().join("nowhere.yaml"));
    assert!(case.refusal(Role::JobMaster).starts_with("--config nowhere.yaml: "));
}

#[test]
fn a_value_with_line_ends_stays_on_one_line_and_is_cut() {
    let text =
        Case::new().set(&format!("heartbeat.interval=1\n{}", "x".repeat(500))).refusal(Role::JobMaster);
    assert!(text.contains("1\\nxxx") && text.contains("...\"") && text.len() < 400, "{text}");
}

#[test]
fn unknown_variables_are_warnings_and_others_are_passed_over() {
    let case = Case::new()
        .variable("TIDEGATE_SERVICE_HOST", "10.0.0.1")
        .variable("TIDEGATE_HEARTBEAT_INTERVALL", "1s")
        .variable("PATH", "/bin");
    let config = case.load(Role::JobMaster).unwrap();
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("did you mean TIDEGATE_HEARTBEAT_INTERVAL?"), "{warnings:?}");
    assert!(warnings[1].contains("TIDEGATE_SERVICE_HOST"), "{warnings:?}");
}

#[test]
fn odd_heartbeats_are_warnings() {
    let case = Case::new()
        .set("heartbeat.interval=1s")
        .set("heartbeat.timeout=2s")
        .set("heartbeat.rpc-failure-threshold=3");
    assert_eq!(case.load(Role::JobMaster).unwrap().warnings().len(), 2);
    let never = case.set("heartbeat.rpc-failure-threshold=-1").set("heartbeat.timeout=3s");
    assert!(never.load(Role::JobMaster).unwrap().warnings().is_empty());
}

#[test]
fn a_wildcard_with_an_advertised_host_is_fine_and_takes_the_bound_port() {
    let case = Case::new().set("rpc.bind=0.0.0.0:0").set("rpc.advertise=worker-1");
    let config = case.load(Role::JobMaster).unwrap();
    let advertise = config.get(&keys::RPC_ADVERTISE).0.unwrap();
    assert_eq!(advertise.at(SocketAddr::from(([0, 0, 0, 0], 77))), "worker-1:77");
    for (text, at) in
        [("h:9", "h:9"), ("[::1]:9", "[::1]:9"), ("[::1]", "[::1]:77"), ("10.0.0.1", "10.0.0.1:77")]
    {
        assert_eq!(Advertise::parse(text).unwrap().at(SocketAddr::from(([0, 0, 0, 0], 77))), at);
    }
    for text in ["", ":9", "h:", "h:0", "h:x", "::1", "[::]:1", "a b", "http://h"] {
        assert_eq!(Advertise::parse(text), None, "{text:?}");
    }
}

#[test]
fn what_is_printed_is_a_configuration_file_with_the_same_values() {
    let dir = PathBuf::from("it's here: #1");
    let config = Config::defaults(Role::JobMaster)
        .with(&keys::STATE_DIR, dir.clone())
        .with(&keys::HEARTBEAT_INTERVAL, Duration::from_millis(1_500));
    let printed = config.print();
    assert!(printed.contains("# default") && printed.contains("# program"), "{printed}");
    let again = Case::new().file(&printed).load(Role::JobMaster).unwrap();
    assert_eq!(again.get(&keys::STATE_DIR), dir);
    assert_eq!(again.get(&keys::HEARTBEAT_INTERVAL), Duration::from_millis(1_500));
    let without_origins = |text: &str| {
        text.lines().map(|l| l.split("  #").next().unwrap().trim_end().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(without_origins(&again.print()), without_origins(&printed));
    assert!(!printed.contains("taskexecutor.slots"), "only the role's own keys are printed");
}

#[test]
fn a_key_that_nothing_acts_upon_yet_is_said_so_where_it_is_set() {
    let case = Case::new().set("data.credits=9").set("data.batch-size=64KiB");
    let config = case.load(Role::TaskExecutor).unwrap();
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 1, "a default needs no word, nor another role's key: {warnings:?}");
    assert!(warnings[0].contains("data.credits 9") && warnings[0].contains("no effect"), "{warnings:?}");
    assert!(case.load(Role::ResourceManager).unwrap().warnings().is_empty());
}

#[test]
fn what_was_given_for_another_role_is_known_and_defaults_are_not() {
    let case = Case::new()
        .file("heartbeat.interval: 2s\nrest.bind: 127.0.0.1:1\n")
        .variable("TIDEGATE_TASKEXECUTOR_SLOTS", "3");
    let config = case.load(Role::ResourceManager).unwrap();
    let given = config.given_for(Role::TaskExecutor);
    assert_eq!(given, [("heartbeat.interval", "2s"), ("taskexecutor.slots", "3")]);
}

#[test]
fn words_are_separated_by_blanks_and_may_be_none() {
    for (text, words) in [("", vec![]), (" --a  b=c ", vec!["--a", "b=c"])] {
        let config = Case::new().set(&format!("worker.args={text}")).load(Role::ResourceManager).unwrap();
        assert_eq!(config.get(&keys::WORKER_ARGS).0, words, "{text:?}");
    }
}

#[test]
fn h056_a_duration_has_a_unit_or_is_in_milliseconds() {
    for text in ["10 s", "10s", "10000", "10000 ms"] {
        let config = Case::new().set(&format!("heartbeat.interval={text}")).load(Role::TaskExecutor).unwrap();
        assert_eq!(config.get(&keys::HEARTBEAT_INTERVAL), Duration::from_secs(10), "{text}");
    }
    let error = Case::new().set("heartbeat.interval=abc").load(Role::TaskExecutor).unwrap_err().to_string();
    assert!(error.contains("heartbeat.interval") && error.contains("abc"), "{error}");
}
