//! What a heartbeat costs, beside other timers: the benchmark of the crate, whose lines become rows of the report.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::report::Report;
use crate::workspace::cargo;

#[derive(Deserialize)]
struct Line {
    bench: String,
    value: f64,
    unit: String,
    peer: Option<String>,
    peer_value: Option<f64>,
    ratio: Option<f64>,
}

/// Runs the benchmark and passes its rows on as they come.
///
/// # Errors
/// It does not build, fails, or prints something else.
pub(super) fn measure(quick: bool, report: &mut Report) -> anyhow::Result<()> {
    let mut bench = cargo();
    bench.args(["bench", "--quiet", "--package", "heartbeat", "--bench", "heartbeat", "--", "--json"]);
    if quick {
        bench.arg("--quick");
    }
    let mut running = bench.stdout(Stdio::piped()).spawn().context("cargo bench")?;
    let output = running.stdout.take().context("the benchmark has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line.context("what the benchmark prints")?;
        let row: Line =
            serde_json::from_str(&line).with_context(|| format!("the benchmark printed: {line}"))?;
        print(&row);
        report.pass(&line)?;
    }
    let status = running.wait().context("cargo bench")?;
    if !status.success() {
        bail!("the benchmark of heartbeat ended with {status}");
    }
    Ok(())
}

fn print(row: &Line) {
    let Line { bench, value, unit, .. } = row;
    let peer = row.peer.as_deref().unwrap_or("-");
    let (peer_value, ratio) = (row.peer_value.unwrap_or(f64::NAN), row.ratio.unwrap_or(f64::NAN));
    println!("{bench:<42} {value:>9.2} {unit:<11} {peer:<24} {peer_value:>9.2} {ratio:>7.2}x");
}
