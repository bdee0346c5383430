//! The options: what is refused, what is warned of, and the metrics' shape.

mod support;

use heartbeat::{HeartbeatOptions, HeartbeatServices, OptionError, OptionWarning, RpcOutcome};
use runtime_core::metrics::{HistogramSnapshot, Observe, Visit};
use std::time::Duration;
use support::{ms, services, wall};

fn options(interval: u64, timeout: u64) -> HeartbeatOptions {
    HeartbeatOptions {
        interval: Duration::from_millis(interval),
        timeout: Duration::from_millis(timeout),
        ..HeartbeatOptions::default()
    }
}

#[test]
fn h050_an_interval_of_zero_is_refused_with_its_key() {
    let error = options(0, 1_000).validate().unwrap_err();
    assert_eq!(error, OptionError::NoInterval);
    assert!(error.to_string().contains("heartbeat.interval"), "{error}");
}

#[test]
fn an_interval_below_100_ms_is_for_tests() {
    assert!(matches!(options(99, 1_000).validate(), Err(OptionError::IntervalTooShort(_))));
    assert_eq!(options(100, 1_000).validate(), Ok(vec![]));
    assert_eq!(HeartbeatOptions { allow_short_interval: true, ..options(1, 1_000) }.validate(), Ok(vec![]));
}

#[test]
fn h051_a_timeout_below_the_interval_is_refused_with_both_keys_and_values() {
    let error = options(10_000, 9_000).validate().unwrap_err().to_string();
    for part in ["heartbeat.timeout", "9s", "heartbeat.interval", "10s"] {
        assert!(error.contains(part), "{part} in: {error}");
    }
}

#[test]
fn h052_a_timeout_of_one_interval_is_refused_unless_it_is_asked_for() {
    assert!(matches!(options(1_000, 1_000).validate(), Err(OptionError::TimeoutOfOneInterval(_))));
    let allowed = HeartbeatOptions { allow_timeout_of_one_interval: true, ..options(1_000, 1_000) };
    assert!(HeartbeatServices::new(allowed).is_ok());
}

#[test]
fn a_threshold_is_positive_or_exactly_minus_one() {
    for (threshold, accepted) in [(-2, false), (-1, true), (0, false), (1, true), (i32::MIN, false)] {
        let options = HeartbeatOptions { rpc_failure_threshold: threshold, ..HeartbeatOptions::default() };
        assert_eq!(options.validate().is_ok(), accepted, "{threshold}");
    }
}

#[test]
fn h054_a_threshold_that_never_decides_is_a_warning() {
    let options = HeartbeatOptions { rpc_failure_threshold: 6, ..HeartbeatOptions::default() };
    let services = HeartbeatServices::new(options).unwrap();
    assert!(matches!(services.warnings(), [OptionWarning::ThresholdNeverReached { threshold: 6, .. }]));
}

#[test]
fn a_timeout_below_three_intervals_is_a_warning() {
    assert!(matches!(options(1_000, 2_999).validate().unwrap()[..], [OptionWarning::FewIntervals { .. }]));
    assert_eq!(options(1_000, 3_000).validate(), Ok(vec![]));
}

#[test]
fn a_stuck_timeout_of_zero_is_refused() {
    let options = HeartbeatOptions { stuck_timeout: Some(Duration::ZERO), ..HeartbeatOptions::default() };
    assert!(options.validate().is_err_and(|error| error.to_string().contains("heartbeat.stuck-timeout")));
}

#[test]
fn a_lease_that_one_lost_request_ends_is_a_warning() {
    let fenced =
        |timeout| HeartbeatOptions { self_fence: true, ..options(1_000, timeout) }.validate().unwrap();
    assert!(matches!(fenced(3_700)[..], [OptionWarning::TightSelfFence { .. }]));
    assert_eq!(fenced(4_000), []);
}

#[test]
fn h057_by_default_the_timeout_is_at_least_five_intervals() {
    let defaults = HeartbeatOptions::default();
    assert_eq!(defaults.validate(), Ok(vec![]));
    assert!(defaults.timeout >= defaults.interval * 5);
}

#[test]
fn a_heartbeat_call_is_never_longer_than_an_interval() {
    let services = HeartbeatServices::new(options(2_000, 50_000)).unwrap();
    assert_eq!(services.rpc_deadline(Duration::from_secs(10)), Duration::from_secs(2));
    assert_eq!(services.rpc_deadline(Duration::from_secs(1)), Duration::from_secs(1));
}

#[test]
fn keep_alive_that_outlasts_the_verdict_is_refused() {
    let services = HeartbeatServices::new(HeartbeatOptions::default()).unwrap();
    assert!(services.check_keep_alive(Duration::from_secs(5), Duration::from_secs(5)).is_ok());
    let error = services.check_keep_alive(Duration::from_secs(30), Duration::from_secs(20)).unwrap_err();
    assert!(matches!(error, OptionError::KeepAliveTooLong { .. }));
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Visit for Lines {
    fn counter(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], value: u64) {
        self.0.push(format!("{name}{labels:?} {value}"));
    }

    fn gauge(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push(format!("{name}{labels:?} {value}"));
    }

    fn histogram(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: &HistogramSnapshot) {}
}

#[test]
fn every_heartbeat_call_and_verdict_is_counted_once() {
    let mut manager = services(10, 50, 2).unwrap().create_heartbeat_manager::<_, u32>("job master");
    manager.monitor_target("a", 1, ms(0));
    manager.receive_heartbeat(&"a", &1, ms(1), wall(1));
    manager.receive_heartbeat(&"x", &1, ms(1), wall(1));
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Other, ms(1)), None);
    assert_eq!(manager.advance(ms(51)).len(), 1);
    let mut lines = Lines::default();
    manager.metrics().observe(&mut lines);
    for line in [
        r#"heartbeat_targets[("peer", "job master")] 1"#,
        r#"heartbeat_received[("peer", "job master")] 1"#,
        r#"heartbeat_ignored[("peer", "job master"), ("reason", "unknown")] 1"#,
        r#"heartbeat_calls[("peer", "job master"), ("outcome", "other")] 1"#,
        r#"heartbeat_verdicts[("peer", "job master"), ("reason", "timeout")] 1"#,
        r#"heartbeat_verdicts[("peer", "job master"), ("reason", "unreachable")] 0"#,
    ] {
        assert!(lines.0.iter().any(|found| found == line), "{line} in {:#?}", lines.0);
    }
}
