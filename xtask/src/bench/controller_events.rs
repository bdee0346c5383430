//! The event loop beside channels and actors: a package of its own, built and run, since nobody who builds the workspace
//! should get its peers.
//!
//! With `--java FOLDER` also beside the Java queues in FOLDER, Kafka's own among them if its classes are there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
pub(super) fn measure(
    quick: bool,
    rounds: Option<u16>,
    java: &[PathBuf],
    report: &mut Report,
) -> anyhow::Result<()> {
    let manifest = root().join("benches/controller-events/Cargo.toml");
    let manifest = manifest.to_str().context("the project's path is no UTF-8")?;
    // Its own target folder within ours: the features of its dependencies are its own.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let target = target.join("benches");
    let build = ["build", "--quiet", "--release", "--locked", "--manifest-path", manifest];
    succeed(cargo().args(build).env("CARGO_TARGET_DIR", &target))?;
    let mut program = Command::new(target.join("release/bench-controller-events"));
    if quick {
        program.arg("--quick");
    }
    if let Some(rounds) = rounds {
        program.args(["--rounds", &rounds.to_string()]);
    }
    if !java.is_empty() {
        program.args(["--java", &class_path(java, &target.join("java"))?]);
    }
    let output = program.stderr(Stdio::inherit()).output().context("bench-controller-events")?;
    anyhow::ensure!(output.status.success(), "bench-controller-events failed");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Line = serde_json::from_str(line).with_context(|| format!("not a figure: {line}"))?;
        report.beside(&line.bench, &line.unit, &line.peer, line.value, line.ratio, line.runs)?;
    }
    Ok(())
}

/// Compiles what lies in the folders and the program that drives Kafka's queue, and tells where all of it is found.
fn class_path(folders: &[PathBuf], classes: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(classes).with_context(|| format!("cannot create {}", classes.display()))?;
    let mut places = vec![classes.display().to_string()];
    let mut sources = Vec::new();
    for folder in folders {
        let files = folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
        places.push(folder.display().to_string());
        // Java's own pattern for the jars of a folder.
        places.push(folder.join("*").display().to_string());
        let paths = files.flatten().map(|file| file.path());
        sources.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "java")));
    }
    let path = places.join(":");
    let compile = |sources: &[PathBuf]| {
        succeed(
            Command::new("javac").args(["-cp", &path, "-d"]).arg(classes).args(sources).stderr(Stdio::null()),
        )
    };
    if !sources.is_empty() {
        compile(&sources)?;
    }
    let kafka = root().join("benches/controller-events/java/KafkaQueue.java");
    if compile(&[kafka]).is_err() {
        eprintln!("controller-events: Kafka's own queue is not in these folders and is left out");
    }
    Ok(path)
}
