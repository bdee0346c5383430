//! Checks of values against each other: what each key alone cannot know.

use std::net::SocketAddr;
use std::time::Duration;

use super::error::{ConfigError, Contradiction};
use super::key::{AnyKey, Key};
use super::value::{Advertise, Auto, Setting};
use super::{Config, keys};
use crate::role::Role;

/// Refuses contradictions; returns what is possible but odd.
pub(super) fn together(config: &Config) -> Result<Vec<String>, ConfigError> {
    heartbeat(config)?;
    advertise(config, &keys::RPC_BIND, &keys::RPC_ADVERTISE)?;
    if config.role() == Role::TaskExecutor {
        advertise(config, &keys::DATA_BIND, &keys::DATA_ADVERTISE)?;
    }
    same_port(config)?;
    let mut warnings = oddities(config);
    warnings.extend(without_effect(config));
    Ok(warnings)
}

/// Keys that are read and checked, and that nothing acts upon yet: whoever sets one is told so.
fn without_effect(config: &Config) -> Vec<String> {
    let mut set = Vec::new();
    note(config, &keys::DATA_BATCH_SIZE, &mut set);
    note(config, &keys::DATA_CREDITS, &mut set);
    set
}

fn note<T: Setting>(config: &Config, key: &'static Key<T>, set: &mut Vec<String>) {
    let (value, default) = (config.get(key).print(), (key.default)(config.role()).print());
    if key.belongs_to(config.role()) && value != default {
        let origin = config.origin(key);
        set.push(format!(
            "{} {value} ({origin}) has no effect in this version; it works as {default}",
            key.name
        ));
    }
}

/// With equal values the first request may be one interval late, which would be a verdict every time.
fn heartbeat(config: &Config) -> Result<(), ConfigError> {
    if config.get(&keys::HEARTBEAT_TIMEOUT) <= config.get(&keys::HEARTBEAT_INTERVAL) {
        let expected = "expected a timeout longer than the interval, best 3 times or more".to_owned();
        return Err(contradiction(config, &keys::HEARTBEAT_TIMEOUT, &keys::HEARTBEAT_INTERVAL, expected));
    }
    Ok(())
}

/// A wildcard address tells peers nothing.
fn advertise(
    config: &Config,
    bind: &'static Key<SocketAddr>,
    advertise: &'static Key<Auto<Advertise>>,
) -> Result<(), ConfigError> {
    if config.get(bind).ip().is_unspecified() && config.get(advertise).0.is_none() {
        let expected = format!("expected {} to name a host that peers can reach", advertise.name);
        return Err(contradiction(config, bind, advertise, expected));
    }
    Ok(())
}

/// Two listeners of one process on one port: the second could not be bound.
fn same_port(config: &Config) -> Result<(), ConfigError> {
    let mut listeners: Vec<&'static Key<SocketAddr>> = vec![&keys::RPC_BIND];
    match config.role() {
        Role::JobMaster => listeners.push(&keys::REST_BIND),
        Role::TaskExecutor => listeners.push(&keys::DATA_BIND),
        Role::ResourceManager => {}
    }
    let expected = || "expected ports of their own, or port 0".to_owned();
    for (place, one) in listeners.iter().enumerate() {
        for other in listeners.iter().skip(place + 1) {
            if collide(config.get(one), config.get(other)) {
                return Err(contradiction(config, other, one, expected()));
            }
        }
        if config.get(&keys::METRICS_BIND).is_some_and(|metrics| collide(config.get(one), metrics)) {
            return Err(contradiction(config, &keys::METRICS_BIND, one, expected()));
        }
    }
    Ok(())
}

fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let overlap = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && overlap
}

fn oddities(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let interval = config.get(&keys::HEARTBEAT_INTERVAL);
    let timeout = config.get(&keys::HEARTBEAT_TIMEOUT);
    let times = |n: u32| interval.checked_mul(n).unwrap_or(Duration::MAX);
    if timeout < times(3) {
        warnings.push(format!(
            "heartbeat.timeout {} is shorter than 3 times heartbeat.interval {}: one lost answer may look like a death",
            timeout.print(),
            interval.print()
        ));
    }
    let threshold = config.get(&keys::HEARTBEAT_RPC_FAILURE_THRESHOLD);
    if u32::try_from(threshold).is_ok_and(|threshold| times(threshold) > timeout) {
        warnings.push(format!(
            "heartbeat.rpc-failure-threshold {threshold} can never be reached within heartbeat.timeout {}",
            timeout.print()
        ));
    }
    warnings
}

fn contradiction<A: Setting, B: Setting>(
    config: &Config,
    key: &'static Key<A>,
    other: &'static Key<B>,
    expected: String,
) -> ConfigError {
    Box::new(Contradiction {
        key: key.name(),
        value: config.get(key).print(),
        origin: config.origin(key),
        other: other.name(),
        other_value: config.get(other).print(),
        other_origin: config.origin(other),
        expected,
    })
    .into()
}
