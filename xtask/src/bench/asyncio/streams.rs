//! The bench `streams` of the crate, built as cargo builds benches.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::cases::Case;
use crate::workspace::cargo;

pub(super) struct Streams {
    program: PathBuf,
}

impl Streams {
    /// Builds it. Its name has a hash in it, which cargo tells.
    ///
    /// # Errors
    /// It cannot be built.
    pub(super) fn build() -> anyhow::Result<Self> {
        let mut command = cargo();
        command.args(["bench", "--no-run", "--package", "asyncio", "--bench", "streams"]);
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        let output = command.output().context("cannot start cargo")?;
        ensure!(output.status.success(), "the bench of asyncio cannot be built");
        let messages = String::from_utf8(output.stdout).context("what cargo printed")?;
        let program = messages.lines().find_map(executable).context("cargo tells no program")?;
        Ok(Self { program })
    }

    /// Runs one case.
    ///
    /// # Errors
    /// It failed: for one, a record was lost.
    pub(super) fn run(&self, case: &Case) -> anyhow::Result<Value> {
        let args = case.args();
        let output = Command::new(&self.program).args(&args).output().context("cannot start the bench")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`streams {}` failed: {}", args.join(" "), said.trim());
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("what `streams {}` printed", args.join(" ")))
    }
}

/// The program that this message of cargo's is about.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    (message.pointer("/target/name")? == "streams").then_some(())?;
    message.get("executable")?.as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_benchs_own_message_names_its_program() {
        let message = |name: &str, program: &str| {
            format!(r#"{{"reason":"compiler-artifact","target":{{"name":"{name}"}},"executable":{program}}}"#)
        };
        assert_eq!(executable(&message("streams", r#""a/b""#)), Some(PathBuf::from("a/b")));
        assert_eq!(executable(&message("asyncio", r#""a/b""#)), None);
        assert_eq!(executable(&message("streams", "null")), None);
        assert_eq!(executable(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
