//! Steps of a long task: each is announced, timed, and named in the closing summary.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// The steps of one task, in order. The first that fails ends it.
pub(crate) struct Steps {
    done: Vec<(String, Outcome)>,
}

enum Outcome {
    Passed(Duration),
    Skipped(String),
}

impl Steps {
    pub(crate) const fn new() -> Self {
        Self { done: Vec::new() }
    }

    /// Runs a step.
    ///
    /// # Errors
    /// Its own, with its name.
    // A person waits for these: wall time is what they want to see.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn run(
        &mut self,
        name: &str,
        step: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        eprintln!("\n>>> {name}");
        let begun = Instant::now();
        let outcome = step();
        let took = begun.elapsed();
        match outcome {
            Ok(()) => {
                eprintln!("<<< {name}: passed in {:.1} s", took.as_secs_f64());
                self.done.push((name.to_owned(), Outcome::Passed(took)));
                Ok(())
            }
            Err(error) => {
                self.summary();
                Err(error.context(format!("{name} failed after {:.1} s", took.as_secs_f64())))
            }
        }
    }

    /// Notes a step that this machine cannot run, and what it would take.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        eprintln!("\n>>> {name}: skipped, {why}");
        self.done.push((name.to_owned(), Outcome::Skipped(why.to_owned())));
    }

    /// Prints every step that has ended.
    pub(crate) fn summary(&self) {
        let width = self.done.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        eprintln!();
        for (name, outcome) in &self.done {
            match outcome {
                Outcome::Passed(took) => eprintln!("{name:<width$}  passed  {:>7.1} s", took.as_secs_f64()),
                Outcome::Skipped(why) => eprintln!("{name:<width$}  SKIPPED {why}"),
            }
        }
    }
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, or ends with another status than 0.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("`{program} {}` ended with {status}", args.join(" "));
    }
    Ok(())
}
