//! Checkpoints, restarts and retries.

use std::time::Duration;

use super::section::{Item, Section};
use crate::options::{CheckpointOptions, RestartStrategy, Retry};

impl RestartStrategy {
    /// Flink's default with checkpoints.
    pub(super) const fn exponential_delay() -> Self {
        Self::ExponentialDelay {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            multiplier: 1.5,
            jitter: 0.1,
            reset_after: Duration::from_secs(3600),
            attempts: None,
        }
    }
}

/// The schemes of checkpoint stores.
const STORES: [&str; 4] = ["file", "s3", "gs", "az"];

pub(super) fn checkpoints(item: &Item<'_>) -> Option<CheckpointOptions> {
    let section =
        item.section(&["interval", "min_pause", "timeout", "tolerable_failures", "dir", "retain"])?;
    let interval = section.require("interval", "from the start of one checkpoint to the next");
    let interval = interval.and_then(|item| item.positive_duration());
    let timeout = section.get("timeout").map(|item| item.positive_duration());
    let min_pause = section.get("min_pause").map(|item| item.duration());
    let tolerable = section.get("tolerable_failures").and_then(|item| item.whole(0, u32::MAX.into()));
    let retain = section.get("retain").and_then(|item| item.whole(1, 10_000));
    let dir = section.require("dir", "a URL such as file:///var/lib/tidegate/checkpoints")?;
    let url = dir.text()?;
    // Whether there is such a store, and this build can reach it, is seen where it is opened.
    if let Some((scheme, rest)) = url.split_once("://") {
        if !STORES.contains(&scheme) {
            dir.note(format!(
                "checkpoints cannot be kept at {scheme}:// addresses; write a file://, s3://, gs:// or az:// URL, or a path"
            ));
            return None;
        }
        if scheme != "file" && (rest.is_empty() || rest.starts_with('/')) {
            dir.note(format!("names no bucket; write {scheme}://BUCKET/PATH"));
            return None;
        }
    }
    Some(CheckpointOptions {
        interval: interval?,
        min_pause: min_pause.unwrap_or(Some(Duration::ZERO))?,
        timeout: timeout.unwrap_or(Some(Duration::from_secs(600)))?,
        tolerable_failures: tolerable.unwrap_or(0),
        dir: url.to_owned(),
        retain: retain.unwrap_or(1),
    })
}

/// The word of `strategy`, or the whole value where it is one word.
fn strategy<'a, T: Copy>(
    item: &Item<'a>,
    keys: &'static [&'static str],
    strategies: &[(&str, T)],
) -> Option<(T, Option<Section<'a>>)> {
    if let super::node::Value::Text(_) = item.node.value {
        return Some((item.choice(strategies)?, None));
    }
    let section = item.section(keys)?;
    let names: Vec<&str> = strategies.iter().map(|(name, _)| *name).collect();
    let word = section.require("strategy", &format!("one of {}", names.join(", ")))?;
    Some((word.choice(strategies)?, Some(section)))
}

/// Notes the keys that mean nothing to a strategy.
fn only(section: Option<&Section<'_>>, name: &str, keys: &[&str]) {
    for (key, _, item) in section.into_iter().flat_map(Section::entries) {
        if key != "strategy" && !keys.contains(&key) && is_known(key) {
            let allowed = if keys.is_empty() {
                "it takes none".to_owned()
            } else {
                format!("it takes {}", keys.join(", "))
            };
            item.note(format!("is no key of the strategy {name}; {allowed}"));
        }
    }
}

/// Unknown keys have been noted before, with a suggestion.
fn is_known(key: &str) -> bool {
    RESTART_KEYS.contains(&key) || RETRY_KEYS.contains(&key)
}

const RESTART_KEYS: &[&str] = &[
    "strategy",
    "attempts",
    "delay",
    "max_failures",
    "interval",
    "initial",
    "max",
    "multiplier",
    "jitter",
    "reset_after",
];

const RETRY_KEYS: &[&str] = &["strategy", "max_retries", "delay", "initial", "max", "multiplier", "jitter"];

#[derive(Clone, Copy)]
enum Strategy {
    None,
    FixedDelay,
    FailureRate,
    ExponentialDelay,
}

pub(super) fn restart(item: &Item<'_>) -> Option<RestartStrategy> {
    let strategies = [
        ("none", Strategy::None),
        ("fixed-delay", Strategy::FixedDelay),
        ("failure-rate", Strategy::FailureRate),
        ("exponential-delay", Strategy::ExponentialDelay),
    ];
    let (strategy, section) = strategy(item, RESTART_KEYS, &strategies)?;
    let section = section.as_ref();
    let count = |key: &str| section.and_then(|s| s.get(key)).and_then(|item| item.whole(0, u32::MAX.into()));
    let pause = |key: &str, default: u64| pause(section, key, Duration::from_secs(default));
    Some(match strategy {
        Strategy::None => {
            only(section, "none", &[]);
            RestartStrategy::None
        }
        Strategy::FixedDelay => {
            only(section, "fixed-delay", &["attempts", "delay"]);
            RestartStrategy::FixedDelay { attempts: count("attempts").unwrap_or(1), delay: pause("delay", 1) }
        }
        Strategy::FailureRate => {
            only(section, "failure-rate", &["max_failures", "interval", "delay"]);
            let interval = section.and_then(|s| s.get("interval")).and_then(|item| item.positive_duration());
            RestartStrategy::FailureRate {
                max_failures: count("max_failures").unwrap_or(1),
                interval: interval.unwrap_or(Duration::from_secs(60)),
                delay: pause("delay", 1),
            }
        }
        Strategy::ExponentialDelay => {
            only(
                section,
                "exponential-delay",
                &["initial", "max", "multiplier", "jitter", "reset_after", "attempts"],
            );
            let Growth { initial, max, multiplier, jitter } =
                growth(section, Duration::from_secs(1), Duration::from_secs(60), 1.5);
            let reset_after = pause("reset_after", 3600);
            RestartStrategy::ExponentialDelay {
                initial,
                max,
                multiplier,
                jitter,
                reset_after,
                attempts: count("attempts"),
            }
        }
    })
}

#[derive(Clone, Copy)]
enum Repeat {
    Never,
    FixedDelay,
    ExponentialDelay,
}

pub(super) fn retry(item: &Item<'_>) -> Option<Retry> {
    let strategies = [
        ("none", Repeat::Never),
        ("fixed-delay", Repeat::FixedDelay),
        ("exponential-delay", Repeat::ExponentialDelay),
    ];
    let (strategy, section) = strategy(item, RETRY_KEYS, &strategies)?;
    let section = section.as_ref();
    let max_retries =
        section.and_then(|s| s.get("max_retries")).and_then(|item| item.whole(0, u32::MAX.into()));
    Some(match strategy {
        Repeat::Never => {
            only(section, "none", &[]);
            Retry::None
        }
        Repeat::FixedDelay => {
            only(section, "fixed-delay", &["max_retries", "delay"]);
            let delay = pause(section, "delay", Duration::from_millis(100));
            Retry::FixedDelay { max_retries: max_retries.unwrap_or(3), delay }
        }
        Repeat::ExponentialDelay => {
            only(section, "exponential-delay", &["max_retries", "initial", "max", "multiplier", "jitter"]);
            let Growth { initial, max, multiplier, jitter } =
                growth(section, Duration::from_millis(50), Duration::from_secs(2), 2.0);
            Retry::ExponentialDelay {
                max_retries: max_retries.unwrap_or(5),
                initial,
                max,
                multiplier,
                jitter,
            }
        }
    })
}

fn pause(section: Option<&Section<'_>>, key: &str, default: Duration) -> Duration {
    section.and_then(|s| s.get(key)).and_then(|item| item.duration()).unwrap_or(default)
}

/// Pauses that grow.
struct Growth {
    initial: Duration,
    max: Duration,
    multiplier: f64,
    jitter: f64,
}

fn growth(section: Option<&Section<'_>>, initial: Duration, max: Duration, multiplier: f64) -> Growth {
    let get = |key: &str| section.and_then(|s| s.get(key));
    let stated_max = get("max").and_then(|item| item.positive_duration());
    let initial_item = get("initial");
    let initial = initial_item.as_ref().and_then(Item::positive_duration).unwrap_or(initial);
    // A first pause above the default of the longest one says what the longest one is.
    let max = stated_max.unwrap_or(max.max(initial));
    if initial > max
        && let Some(item) = initial_item.or_else(|| get("max"))
    {
        item.note("the first pause is longer than the longest one (`initial` is above `max`)");
    }
    let multiplier = get("multiplier")
        .and_then(|item| item.number("a number of 1 or more", |m| m >= 1.0))
        .unwrap_or(multiplier);
    let jitter =
        get("jitter").and_then(|item| item.number("a number from 0 to 1", |j| (0.0..=1.0).contains(&j)));
    Growth { initial, max, multiplier, jitter: jitter.unwrap_or(0.1) }
}
