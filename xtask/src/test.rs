//! `cargo xtask test`: what has to pass before a change goes in.

use std::process::Stdio;

use crate::demo;
use crate::docker::engine::Engine;
use crate::image::Programs;
use crate::memory;
use crate::outside;
use crate::step::{Steps, succeed};
use crate::tidy;
use crate::workspace::cargo;

/// What to run beyond the usual.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also the tests marked `#[ignore]`: minutes, real processes, real time
    #[arg(long)]
    slow: bool,
    /// Also the event queue's tests under valgrind, where that is installed: minutes
    #[arg(long)]
    memory: bool,
    /// Also `cargo xtask demo --docker`: a static image, and its cluster; without it the cluster runs with the programs of
    /// the other tests
    #[arg(long)]
    docker: bool,
}

/// Runs the steps, cheap ones first; the first failure ends it.
///
/// # Errors
/// The step that failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut steps = Steps::new();
    tool(&mut steps, "format", "fmt", "rustfmt", &["fmt", "--all", "--check"])?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    tool(&mut steps, "lints", "clippy", "clippy", &lints)?;
    steps.run("tidy", tidy::run)?;
    // Tests start the programs of other packages, which `cargo test` does not build. In one go with the tests, or else the
    // dependencies are built twice: once with the features that the tests want and once without.
    steps.run("programs", || succeed(cargo().args(["build", "--workspace", "--bins", "--tests"])))?;
    steps.run("tests", || succeed(cargo().args(["test", "--workspace"])))?;
    // Every order of the steps of the event queue and of waiting calls; their locks are others there, so each is a build of
    // its own.
    for (package, tests) in [("controller-events", "model"), ("asyncio", "driven::model")] {
        let model = ["test", "--package", package, "--features", "model", "--lib", tests];
        steps.run(&format!("model tests of {package}"), || succeed(cargo().args(model)))?;
    }
    if args.memory {
        if memory::is_there() {
            steps.run("memory", memory::run)?;
        } else {
            steps.skip("memory", "installing valgrind makes it run");
        }
    }
    steps.run("outside packages", outside::run)?;
    match Engine::find() {
        Err(error) => steps.skip("demo cluster in containers", &format!("{error:#}")),
        Ok(_) if args.docker => {
            steps.run("demo cluster in containers", || demo::in_containers(&Programs::build_static))?;
        }
        Ok(_) => steps.run("demo cluster in containers", || demo::in_containers(&Programs::as_built))?,
    }
    if args.slow {
        // Not the documentation: there, `ignore` marks text that is no program. The libraries' slow tests are measurements
        // and long searches, which say nothing without optimisation; those of the others are about processes.
        let slow = ["--lib", "--tests", "--", "--ignored", "--nocapture"];
        let (mut libraries, mut others) = (vec!["test", "--release"], vec!["test", "--workspace"]);
        for library in outside::LIBRARIES {
            libraries.extend(["--package", library]);
            others.extend(["--exclude", library]);
        }
        steps.run("slow tests of the libraries", || succeed(cargo().args(libraries).args(slow)))?;
        steps.run("slow tests", || succeed(cargo().args(others).arg("--bins").args(slow)))?;
    }
    steps.summary();
    eprintln!("\neverything passed");
    Ok(())
}

/// A step that needs a component of the tool chain, which a minimal one does not have.
fn tool(steps: &mut Steps, name: &str, probe: &str, component: &str, args: &[&str]) -> anyhow::Result<()> {
    let there = cargo().args([probe, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        steps.run(name, || succeed(cargo().args(args)))
    } else {
        steps.skip(name, &format!("`rustup component add {component}` makes it run"));
        Ok(())
    }
}
