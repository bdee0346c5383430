//! The operator beside its peers: the cases of the bench `streams`, in rounds, and what their medians have to reach.
//!
//! A case is a process of its own. The rounds are the outer loop, so that a slow minute of the machine hits every peer;
//! figures that are compared come from the same rounds. Which cases are run follows from the rows that are wanted.

mod cases;
mod flink;
mod rows;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::report::{Peer, Report};
use crate::programs;
use cases::{Case, Kind};
use flink::Flink;
use streams::Streams;

/// What to measure.
pub(super) struct Plan<'a> {
    /// Capacity 1,000 alone, and at most 10,000 in flight.
    pub(super) quick: bool,
    pub(super) rounds: usize,
    /// Part of the names of the rows that are wanted.
    pub(super) only: Option<&'a str>,
    /// The folder of Flink's programs, relative to the project's.
    pub(super) flink: Option<&'a Path>,
}

/// Measures and reports.
///
/// # Errors
/// A case could not be run or lost a record, or no row has such a name.
pub(super) fn measure(plan: &Plan<'_>, report: &mut Report) -> anyhow::Result<()> {
    let flink = plan.flink.map(Flink::prepare).transpose()?;
    let mut rows = rows::all(plan.quick, flink.is_some());
    rows.retain(|row| plan.only.is_none_or(|only| row.name.contains(only)));
    ensure!(!rows.is_empty(), "no row of asyncio has `{}` in its name", plan.only.unwrap_or_default());
    let streams = Streams::build()?;
    let cases: BTreeSet<Case> = rows.iter().flat_map(|row| row.cases().cloned()).collect();
    let path = programs::target()?.join("asyncio-runs.jsonl");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut results = Results { of: BTreeMap::new(), file };
    for round in 1..=plan.rounds {
        eprintln!("asyncio: round {round} of {}, {} cases", plan.rounds, cases.len());
        // What is counted does not vary.
        let wanted = |case: &&Case| !case.is_flinks() && (round == 1 || case.kind != Kind::Counted);
        for case in cases.iter().filter(wanted) {
            results.take(case.clone(), streams.run(case)?)?;
        }
        if let Some(flink) = &flink {
            for (case, line) in flink.round(&cases)? {
                results.take(case, line)?;
            }
        }
    }
    eprintln!("each run is a line of {}", path.display());
    print(&rows, &results, report)
}

/// The lines that the cases gave, a round each.
struct Results {
    of: BTreeMap<Case, Vec<Value>>,
    file: File,
}

impl Results {
    fn take(&mut self, case: Case, line: Value) -> anyhow::Result<()> {
        writeln!(self.file, "{line}")?;
        self.of.entry(case).or_default().push(line);
        Ok(())
    }

    /// A member of each line, divided by what the row counts.
    fn figures(&self, case: &Case, row: &rows::Row) -> Vec<f64> {
        let lines = self.of.get(case).into_iter().flatten();
        let figures = lines.filter_map(|line| line.get(row.metric.member)?.as_f64());
        let by = if row.metric.per_place { case.size as f64 } else { 1.0 };
        figures.map(|figure| figure / by).collect()
    }
}

fn print(rows: &[rows::Row], results: &Results, report: &mut Report) -> anyhow::Result<()> {
    let (mut met, mut missed) = (0, 0);
    for row in rows {
        let ours = results.figures(&row.ours, row);
        let theirs = row.peer.as_ref().map(|(name, case)| (name, results.figures(case, row)));
        let peer = theirs.as_ref().map(|(name, runs)| Peer { name, runs });
        match report.compared(&row.name, (row.metric.unit, row.metric.better), &ours, peer, row.target)? {
            Some(true) => met += 1,
            Some(false) => missed += 1,
            None => {}
        }
    }
    println!("asyncio: {met} targets met, {missed} missed");
    Ok(())
}
