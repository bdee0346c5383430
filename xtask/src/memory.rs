//! The event queue under a memory checker: it stands on the one lock in the libraries that is built of `unsafe`.
//!
//! Valgrind where it is installed, since it needs no other tool chain. The long stress tests are left out: they try
//! orders, which the model tests do better, and take fifty times longer here.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::step::succeed;
use crate::workspace::cargo;

/// Tests whose names contain one of these, and none of the others.
const TESTS: &[&str] = &[
    "queue::",
    "tests::barrier",
    "tests::capacity",
    "tests::closing",
    "tests::on_a_thread",
    "tests::waiting",
];
const NOT: &[&str] = &["k04", "e10", "b02", "b07"];

/// Whether there is a checker.
pub(crate) fn is_there() -> bool {
    let probe =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// Builds the queue's tests and runs them.
///
/// # Errors
/// A test fails, or the checker finds a bad access or a definite leak.
pub(crate) fn run() -> anyhow::Result<()> {
    let build = ["test", "--package", "controller-events", "--lib", "--no-run", "--message-format", "json"];
    let output = cargo().args(build).stderr(Stdio::inherit()).output().context("cargo test --no-run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let Some(tests) = lines.filter_map(|line| Some(line.get("executable")?.as_str()?.to_owned())).next_back()
    else {
        bail!("cargo has built no tests of controller-events");
    };
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    // One thread at a time goes on under the checker; without this a thread that looks for news keeps its turn.
    valgrind.args(["--fair-sched=try", "--show-leak-kinds=definite"]).arg(tests).args(TESTS);
    valgrind.args(NOT.iter().flat_map(|name| ["--skip", name]));
    succeed(&mut valgrind)
}
