//! The event loop beside channels and actors: a package of its own, built and run, since nobody who builds the workspace
//! should get its peers.
//!
//! With `--java FOLDER` also beside the Java queues whose class files are in FOLDER.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;

use super::report::Report;
use crate::step::succeed;
use crate::workspace::{cargo, root};

/// A line of the package's output.
#[derive(Deserialize)]
struct Line {
    bench: String,
    peer: String,
    value: f64,
    unit: String,
    ratio: f64,
    runs: usize,
}

/// Builds, runs and reports.
///
/// # Errors
/// It does not build, or a run fails.
pub(super) fn measure(quick: bool, java: Option<&Path>, report: &mut Report) -> anyhow::Result<()> {
    let manifest = root().join("benches/controller-events/Cargo.toml");
    let manifest = manifest.to_str().context("the project's path is no UTF-8")?;
    // Its own target folder within ours: the features of its dependencies are its own.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let target = target.join("benches");
    let build = ["build", "--quiet", "--release", "--locked", "--manifest-path", manifest];
    succeed(cargo().args(build).env("CARGO_TARGET_DIR", &target))?;
    let mut program = std::process::Command::new(target.join("release/bench-controller-events"));
    if quick {
        program.arg("--quick");
    }
    if let Some(folder) = java {
        program.arg("--java").arg(folder);
    }
    let output = program.stderr(Stdio::inherit()).output().context("bench-controller-events")?;
    anyhow::ensure!(output.status.success(), "bench-controller-events failed");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Line = serde_json::from_str(line).with_context(|| format!("not a figure: {line}"))?;
        report.beside(&line.bench, &line.unit, &line.peer, line.value, line.ratio, line.runs)?;
    }
    Ok(())
}
