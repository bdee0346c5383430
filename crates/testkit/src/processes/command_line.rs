//! The program `tidegate`, as a person would run it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use super::{Binaries, Process, Signal, Usage};
use crate::patience::Patience;

/// Longer than any command that is waited for.
const DEADLINE: Duration = Duration::from_secs(600);

/// Runs `tidegate` against one cluster.
#[derive(Debug, Clone)]
pub struct CommandLine {
    program: PathBuf,
    cluster: Option<String>,
    logs: PathBuf,
}

impl CommandLine {
    /// For commands that need no cluster.
    #[must_use]
    pub fn new(binaries: &Binaries, logs: &Path) -> Self {
        Self { program: binaries.path("tidegate"), cluster: None, logs: logs.to_owned() }
    }

    /// For the cluster whose REST is at this address.
    #[must_use]
    pub fn of_cluster(mut self, rest: &str) -> Self {
        self.cluster = Some(format!("http://{rest}"));
        self
    }

    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, args: &[&str]) -> anyhow::Result<RunningCommand> {
        let mut command = Command::new(&self.program);
        command.args(args);
        if let Some(cluster) = &self.cluster {
            command.args(["--jobmaster", cluster]);
        }
        // A log of its own: two of them may run at the same time.
        let log = tempfile::Builder::new().prefix("tidegate-").tempdir_in(&self.logs)?;
        let begun = Patience::endless();
        let process = Process::spawn("tidegate", command, log.path())?;
        Ok(RunningCommand { process, begun, log })
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// It cannot be started. Its status is the caller's to judge.
    pub fn run(&self, args: &[&str]) -> anyhow::Result<CommandOutput> {
        self.start(args)?.wait(DEADLINE)
    }
}

/// A command that runs.
#[derive(Debug)]
pub struct RunningCommand {
    process: Process,
    begun: Patience,
    /// Held, because its end removes it.
    log: tempfile::TempDir,
}

impl RunningCommand {
    /// Sends a signal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        self.process.signal(signal)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end within the time.
    pub fn wait(mut self, within: Duration) -> anyhow::Result<CommandOutput> {
        let (status, usage) = self.process.watch(within)?;
        let took = self.begun.elapsed();
        let (stdout, stderr) = (self.process.rest_of_stdout(), self.process.log());
        drop(self.log);
        Ok(CommandOutput { status: status.code(), stdout, stderr, took, usage })
    }
}

/// What a command left.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// The exit status; none if a signal ended it.
    pub status: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it told people.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
    /// What it used, as seen last.
    pub usage: Usage,
}

impl CommandOutput {
    /// The JSON document that it printed.
    ///
    /// # Errors
    /// It printed none.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("no JSON document: {self}"))
    }

    /// Itself, if the status is the expected one.
    ///
    /// # Errors
    /// Another; the error shows what it printed.
    pub fn expect_status(self, status: i32) -> anyhow::Result<Self> {
        anyhow::ensure!(self.status == Some(status), "expected status {status}: {self}");
        Ok(self)
    }
}

impl std::fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, stdout, stderr, .. } = self;
        write!(f, "`tidegate` ended with {status:?} and printed\n{stdout}{stderr}")
    }
}
