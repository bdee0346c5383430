//! A slow service with failures, as a process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use super::{Binaries, Process, Signal};

const READY: Duration = Duration::from_secs(20);

/// How the service behaves.
#[derive(Debug, Clone, Copy)]
pub struct LookupOptions {
    /// Before each answer.
    pub delay: Duration,
    /// Share of requests that get a 503, 0 to 1.
    pub error_rate: f64,
    /// Draws which.
    pub seed: u64,
}

/// `tidegate serve-table`. Ends when it is dropped.
#[derive(Debug)]
pub struct LookupService {
    process: Process,
    address: String,
}

impl LookupService {
    /// Serves a table on a free port of the loopback interface.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn start(
        binaries: &Binaries,
        table: &Path,
        key: &str,
        options: LookupOptions,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_at("127.0.0.1", binaries, table, key, options, logs)
    }

    /// Serves a table on a free port of this address.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn start_at(
        host: &str,
        binaries: &Binaries,
        table: &Path,
        key: &str,
        options: LookupOptions,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(binaries.path("tidegate"));
        command.arg("serve-table").arg(table).args(["--key", key, "--bind", &format!("{host}:0")]);
        command.arg("--delay").arg(format!("{}ms", options.delay.as_millis()));
        command.arg("--error-rate").arg(options.error_rate.to_string());
        command.arg("--seed").arg(options.seed.to_string());
        let mut process = Process::spawn("serve-table", command, logs)?;
        let ready = process.ready(READY)?;
        let address = ready.get("http").and_then(|value| value.as_str());
        let address = address.with_context(|| format!("serve-table says no `http`: {ready}"))?.to_owned();
        Ok(Self { process, address })
    }

    /// Its address and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Answers nothing until [`resume`](Self::resume): calls wait, whatever the machine's speed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::Stop)
    }

    /// Goes on, with the requests that came meanwhile first.
    ///
    /// # Errors
    /// The kernel's.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::Continue)
    }

    /// Ends it, and says how many requests it has answered.
    ///
    /// # Errors
    /// It had to be killed, or does not say.
    pub fn stop(mut self) -> anyhow::Result<u64> {
        self.process.stop()?;
        let log = self.process.log();
        let answered = log.lines().find_map(|line| {
            line.split_once("answered ")?.1.split_once(" requests").and_then(|(n, _)| n.parse().ok())
        });
        answered.with_context(|| format!("serve-table does not say how much it has answered: {log}"))
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
