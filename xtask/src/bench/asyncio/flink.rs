//! Apache Flink's operator, by its programs `AsyncBench` and `QueueBench`.
//!
//! Flink runs with the best settings known: object reuse, chained, and without a timeout, so without a timer for each
//! record.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::super::flink::Flink as Programs;
use super::cases::{Case, FLINK, Kind};

/// A work of the bench `streams` and Flink's words for it: the function, the delay in ms, records a second at capacity
/// 1,000 in order and without.
const WORKS: &[(&str, &str, u64)] = &[
    ("ready", "immediate", 0),
    ("external", "thread", 0),
    ("timer-1ms", "delay", 1),
    ("timer-5ms", "delay", 5),
    ("exp-5ms", "exp", 5),
];

/// A pattern of the queue and Flink's word for it.
const PATTERNS: &[(&str, &str)] =
    &[("oldest-first", "fifo"), ("oldest-first", "single"), ("shuffled", "batch"), ("newest-first", "lifo")];

const QUEUE_BENCH: &str = "org.apache.flink.streaming.api.operators.async.queue.QueueBench";

/// Whether Flink does this work.
pub(super) fn works(what: &str) -> bool {
    WORKS.iter().any(|(work, ..)| *work == what)
}

pub(super) struct Flink(Programs);

impl Flink {
    /// # Errors
    /// As the programs'.
    pub(super) fn prepare(folder: &Path) -> anyhow::Result<Self> {
        Programs::prepare(folder).map(Self)
    }

    /// Runs those of `cases` that are Flink's, once.
    ///
    /// # Errors
    /// One failed.
    pub(super) fn round(&self, cases: &BTreeSet<Case>) -> anyhow::Result<Vec<(Case, Value)>> {
        let mut results = Vec::new();
        let of_flink = || cases.iter().filter(|case| case.is_flinks());
        for case in of_flink().filter(|case| case.kind == Kind::Stream) {
            let lines = self.0.java("AsyncBench", &args(case)?, None)?;
            results.extend(lines.into_iter().map(|line| (case.clone(), line)));
        }
        // One process measures all patterns.
        if of_flink().any(|case| case.kind == Kind::Queue) {
            let lines = self.0.java(QUEUE_BENCH, &["1000000".to_owned(), "1".to_owned()], None)?;
            results.extend(lines.into_iter().filter_map(|line| Some((queue(&line)?, line))));
        }
        Ok(results)
    }
}

/// Half of the records or a quarter warm it up; the virtual machine needs more of that than anybody else.
fn args(case: &Case) -> anyhow::Result<Vec<String>> {
    let work = WORKS.iter().find(|(work, ..)| *work == case.what);
    let (_, function, delay_ms) = *work.with_context(|| format!("Flink has no `{}`", case.what))?;
    let rate = match function {
        "delay" => case.size * 1000 / (delay_ms + 1),
        "exp" if case.order == "ordered" => case.size * 40,
        _ => case.size * 180,
    };
    let (records, warm) = match function {
        "immediate" => (30_000_000, 20_000_000),
        "thread" => (5_000_000, 3_000_000),
        // Two seconds.
        _ => (2 * rate + 4 * case.size, rate),
    };
    let numbers = [("--delay-ms", delay_ms), ("--capacity", case.size), ("--n", records), ("--warm", warm)];
    let words = [("--mode", case.order), ("--fn", function)];
    let words = words.into_iter().map(|(name, word)| (name, word.to_owned()));
    let numbers = numbers.into_iter().map(|(name, number)| (name, number.to_string()));
    Ok(words.chain(numbers).flat_map(|(name, value)| [name.to_owned(), value]).collect())
}

/// The case of this line of `QueueBench`.
fn queue(line: &Value) -> Option<Case> {
    let word = |member: &str| line.get(member).and_then(Value::as_str);
    let (what, _) = PATTERNS.iter().find(|(_, pattern)| Some(*pattern) == word("pattern"))?;
    let order = ["ordered", "unordered"].into_iter().find(|order| Some(*order) == word("mode"))?;
    Some(Case { kind: Kind::Queue, what, size: line.get("in_flight")?.as_u64()?, order, peer: FLINK })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_told_to_flink_in_its_words() {
        let case =
            Case { kind: Kind::Stream, what: "timer-5ms", size: 1000, order: "unordered", peer: FLINK };
        let args = args(&case).unwrap().join(" ");
        assert_eq!(args, "--mode unordered --fn delay --delay-ms 5 --capacity 1000 --n 337332 --warm 166666");
    }

    #[test]
    fn a_line_about_the_queue_is_the_figure_of_a_pattern() {
        let line = serde_json::json!({"mode": "ordered", "pattern": "fifo", "in_flight": 1000, "ns_per_element": 17.8});
        let case = queue(&line).unwrap();
        assert_eq!((case.what, case.order, case.size), ("oldest-first", "ordered", 1000));
        assert_eq!(queue(&serde_json::json!({"mode": "ordered", "pattern": "other", "in_flight": 1})), None);
    }
}
