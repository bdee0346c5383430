//! The steps: filters and enrichments.

use std::time::Duration;

use super::node::Value;
use super::read::{LARGEST, Limits, name};
use super::read_call::call;
use super::read_restart::retry;
use super::section::{Item, Section};
use super::spec::{StepKind, StepSpec};
use crate::filter::Filter;
use crate::options::{EnrichOptions, FilterOptions, OnEmpty, OnFailure, Order, Retry};

/// The budget of a record when the file says nothing: a call that never answers must not hold up a job for ever.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Flink: `ExecutionConfigOptions.TABLE_EXEC_ASYNC_LOOKUP_BUFFER_CAPACITY`, which is 100, as are its examples.
const DEFAULT_CAPACITY: usize = 100;
/// Far more than memory holds; a larger number is a slip.
const LARGEST_CAPACITY: i128 = 100_000_000;

const ENRICH_KEYS: &[&str] = &[
    "name",
    "order",
    "key",
    "max_in_flight_per_key",
    "capacity",
    "timeout",
    "attempt_timeout",
    "retry",
    "on_empty",
    "on_failure",
    "into",
    "max_answer",
    "call",
    "parallelism",
];

/// What depends on the rest of the job.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub(super) on_failure: OnFailure,
    pub(super) has_dead_letters: bool,
}

/// One step; `filters` counts the filters so far.
pub(super) fn step(
    item: &Item<'_>,
    limits: &Limits,
    defaults: Defaults,
    filters: &mut u32,
) -> Option<StepSpec> {
    let outer = item.section(&["filter", "enrich", "parallelism"])?;
    let (kind, inner) = outer.kind(&["filter", "enrich"], "what the step does")?;
    if kind == "filter" {
        *filters += 1;
        return filter(&outer, &inner, limits, defaults, *filters);
    }
    let section = inner.section(ENRICH_KEYS)?;
    let parallelism = limits.parallelism_of(&outer, Some(&section));
    Some(StepSpec { kind: StepKind::Enrich(enrich(&section, defaults)?), parallelism })
}

fn filter(
    outer: &Section<'_>,
    inner: &Item<'_>,
    limits: &Limits,
    defaults: Defaults,
    number: u32,
) -> Option<StepSpec> {
    let section = match &inner.node.value {
        Value::Map(_) => Some(inner.section(&["if", "on_failure", "parallelism"])?),
        _ => None,
    };
    let parallelism = limits.parallelism_of(outer, section.as_ref());
    let on_failure = section.as_ref().and_then(|section| on_failure(section, defaults));
    let condition = match &section {
        Some(section) => section.require("if", "the condition, a CEL expression")?,
        None => inner.clone(),
    };
    let compiled =
        Filter::compile(condition.text()?).map_err(|error| condition.note(error.to_string())).ok()?;
    let options = FilterOptions {
        name: format!("filter-{number}"),
        condition: compiled,
        on_failure: on_failure.unwrap_or(defaults.on_failure),
    };
    Some(StepSpec { kind: StepKind::Filter(options), parallelism })
}

fn enrich(section: &Section<'_>, defaults: Defaults) -> Option<EnrichOptions> {
    let name = section.require("name", "a name that is unique in the job").and_then(|item| name(&item));
    let order = section.get("order").map(|item| {
        item.choice(&[("ordered", Order::Ordered), ("unordered", Order::Unordered), ("keyed", Order::Keyed)])
    });
    let order = order.unwrap_or(Some(Order::Ordered));
    let key = section.get("key").and_then(|item| item.text());
    if order == Some(Order::Keyed) && section.get("key").is_none() {
        let place = section.get("order").unwrap_or_else(|| section.item().clone());
        place.note("keyed order needs a `key`: the field that holds it");
    }
    let timeout = timeout(section);
    let retry = section.get("retry").map_or(Some(Retry::None), |item| {
        let retry = retry(&item)?;
        // Without a budget a record whose service is down would be tried for as long as that lasts, unnoticed.
        if retry != Retry::None && !matches!(timeout, Stated::Duration(_) | Stated::Wrong) {
            item.note(
                "a retry needs a `timeout`, the budget of a record for all attempts and pauses: timeout: 30s",
            );
        }
        Some(retry)
    });
    let call =
        section.require("call", "what is asked, one of http, table, rust").and_then(|item| call(&item));
    let on_empty = section.get("on_empty").and_then(|item| {
        let choice = item.choice(&[
            ("keep", OnEmpty::Keep),
            ("drop", OnEmpty::Drop),
            ("dead-letter", OnEmpty::DeadLetter),
            ("fail", OnEmpty::Fail),
        ]);
        if choice == Some(OnEmpty::DeadLetter) {
            need_dead_letters(&item, defaults);
        }
        choice
    });
    let on_failure = on_failure(section, defaults);
    let in_flight = section.get("max_in_flight_per_key").and_then(|item| item.whole(1, LARGEST_CAPACITY));
    let capacity = section.get("capacity").and_then(|item| item.whole(1, LARGEST_CAPACITY));
    let attempt_timeout = section.get("attempt_timeout").and_then(|item| item.positive_duration());
    let into = section.get("into").and_then(|item| item.text().map(str::to_owned));
    let max_answer = section.get("max_answer").and_then(|item| item.size(1, LARGEST));
    let order = order?;
    Some(EnrichOptions {
        name: name?,
        order,
        key: key.filter(|_| order == Order::Keyed).map(str::to_owned),
        max_in_flight_per_key: in_flight.unwrap_or(1),
        capacity: capacity.unwrap_or(DEFAULT_CAPACITY),
        timeout: match timeout {
            Stated::Duration(duration) => Some(duration),
            Stated::Nothing | Stated::Wrong => Some(DEFAULT_TIMEOUT),
            Stated::None => None,
        },
        attempt_timeout,
        retry: retry?,
        on_empty: on_empty.unwrap_or(OnEmpty::Keep),
        on_failure: on_failure.unwrap_or(defaults.on_failure),
        into,
        max_answer: max_answer.unwrap_or(1 << 20),
        call: call?,
    })
}

/// What the file says of the timeout.
enum Stated {
    Nothing,
    Wrong,
    None,
    Duration(Duration),
}

fn timeout(section: &Section<'_>) -> Stated {
    let Some(item) = section.get("timeout") else { return Stated::Nothing };
    if matches!(&item.node.value, Value::Text(text) if text == "none") {
        return Stated::None;
    }
    match item.duration() {
        Some(duration) if duration.is_zero() => {
            item.note("a record needs more time than none at all; write `none` to switch the timeout off");
            Stated::Wrong
        }
        Some(duration) => Stated::Duration(duration),
        None => Stated::Wrong,
    }
}

fn on_failure(section: &Section<'_>, defaults: Defaults) -> Option<OnFailure> {
    let item = section.get("on_failure")?;
    let choice = item.choice(&[
        ("fail", OnFailure::Fail),
        ("drop", OnFailure::Drop),
        ("dead-letter", OnFailure::DeadLetter),
        ("keep", OnFailure::Keep),
    ]);
    if choice == Some(OnFailure::DeadLetter) {
        need_dead_letters(&item, defaults);
    }
    choice
}

fn need_dead_letters(item: &Item<'_>, defaults: Defaults) {
    if !defaults.has_dead_letters {
        item.note(
            "the job has no `dead_letters`; say where they go: dead_letters: {file: {path: dead.jsonl}}",
        );
    }
}
