//! One process: its ready line, its log, its end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, kill_process};
use serde_json::Value;

use super::Usage;
use crate::patience::{Look, Patience};

/// A server that is told to stop has this long before it is killed: what it promises, and a bit.
const STOP: Duration = Duration::from_secs(6);

/// How much of a log an error shows.
const SHOWN_LINES: usize = 30;

/// What a process can be told by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`: stop in order.
    Terminate,
    /// `SIGINT`: what Ctrl-C sends.
    Interrupt,
    /// `SIGKILL`: no last words.
    Kill,
    /// `SIGSTOP`: stand still.
    Stop,
    /// `SIGCONT`: go on.
    Continue,
}

impl From<Signal> for rustix::process::Signal {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Terminate => Self::TERM,
            Signal::Interrupt => Self::INT,
            Signal::Kill => Self::KILL,
            Signal::Stop => Self::STOP,
            Signal::Continue => Self::CONT,
        }
    }
}

/// A process of ours. Dropped, it is told to stop, killed if it does not, and waited for.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    /// Told to stop already: a second signal would end it at once.
    stopping: bool,
    stdout: Receiver<String>,
    log: PathBuf,
}

impl Process {
    /// Starts a program. What it writes to stderr goes to `NAME.log` in `logs`, behind what an earlier one of that name
    /// wrote. Of the surrounding environment it sees nothing that would configure it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(name: &str, mut command: Command, logs: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
        let log = logs.join(format!("{name}.log"));
        let stderr = File::options().create(true).append(true).open(&log);
        let stderr = stderr.with_context(|| format!("cannot write {}", log.display()))?;
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("TIDEGATE_") {
                command.env_remove(variable);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let (lines, stdout) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if lines.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { name: name.to_owned(), child, status: None, stopping: false, stdout, log })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line on stdout as JSON; a server says one, when it is ready.
    ///
    /// # Errors
    /// It ended or said nothing within the time; the error shows its log.
    pub fn ready(&mut self, within: Duration) -> anyhow::Result<Value> {
        match self.stdout.recv_timeout(within) {
            Ok(line) => serde_json::from_str(&line)
                .with_context(|| format!("{}: the ready line is no JSON: {line}", self.name)),
            Err(RecvTimeoutError::Timeout) => bail!(self.complaint(&format!("not ready within {within:?}"))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.wait(STOP)?;
                bail!(self.complaint(&format!("ended with {status} before it was ready")))
            }
        }
    }

    /// Everything it has said on stdout since it was last asked, up to its end.
    #[must_use]
    pub fn rest_of_stdout(&self) -> String {
        self.stdout.iter().fold(String::new(), |text, line| text + &line + "\n")
    }

    /// Everything it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Whether it has not ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_alive(&mut self) -> anyhow::Result<bool> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status.is_none())
    }

    /// Sends a signal. Nothing happens to one that has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        // While it is not waited for, its id is nobody else's.
        if self.is_alive()? {
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let pid = pid.with_context(|| format!("{} is no process id", self.child.id()))?;
            kill_process(pid, signal.into()).with_context(|| format!("{signal:?} to {}", self.name))?;
        }
        Ok(())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end within the time; the error shows its log.
    pub fn wait(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        self.watch(within).map(|(status, _)| status)
    }

    /// Waits for its end, and says what it used, as seen last: up to 2 ms before.
    ///
    /// # Errors
    /// As [`Process::wait`].
    pub fn watch(&mut self, within: Duration) -> anyhow::Result<(ExitStatus, Usage)> {
        let mut usage = Usage::default();
        let outcome = Patience::of(within).until("its end", || {
            if let Ok(seen) = self.usage() {
                usage = seen;
            }
            self.is_alive()?;
            Ok(Look::of(self.status, || "it runs".into()))
        });
        match outcome {
            Ok(status) => Ok((status, usage)),
            Err(error) => bail!(self.complaint(&error.to_string())),
        }
    }

    /// What it uses.
    ///
    /// # Errors
    /// It has ended.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Tells it to stop and does not wait. Once: a second signal would end it at once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin_stop(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.stopping, true) {
            self.signal(Signal::Terminate)?;
            self.signal(Signal::Continue)?;
        }
        Ok(())
    }

    /// Tells it to stop and waits; kills it if it does not. Says how long it took.
    ///
    /// # Errors
    /// It had to be killed.
    pub fn stop(&mut self) -> anyhow::Result<(ExitStatus, Duration)> {
        let begun = Patience::endless();
        self.begin_stop()?;
        match self.wait(STOP) {
            Ok(status) => Ok((status, begun.elapsed())),
            Err(error) => {
                self.kill()?;
                Err(error.context("killed, because it did not stop"))
            }
        }
    }

    /// `kill -9`, and waits.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::Kill)?;
        self.wait(STOP).map(drop)
    }

    fn complaint(&self, what: &str) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        format!("{}: {what}; it logged:\n{}", self.name, shown.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killed if it did not stop; there is nobody to tell.
        drop(self.stop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, logs: &Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::spawn("script", command, logs).unwrap()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_ready_line_is_read_and_the_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("echo '{\"ready\":true}'; echo more; exit 3", folder.path());
        assert_eq!(process.ready(LONG).unwrap()["ready"], true);
        assert_eq!(process.wait(LONG).unwrap().code(), Some(3));
        assert_eq!(process.rest_of_stdout(), "more\n");
        process.signal(Signal::Terminate).unwrap();
    }

    #[test]
    fn an_end_before_readiness_is_told_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            shell("echo 'port taken' >&2; exit 1", folder.path()).ready(LONG).unwrap_err().to_string();
        assert!(error.contains("exit status: 1") && error.contains("port taken"), "{error}");
    }

    #[test]
    fn a_process_is_told_to_stop_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(
            "trap 'trap \"exit 9\" TERM; sleep 0.1; exit 4' TERM; echo 1; while :; do sleep 0.01; done",
            folder.path(),
        );
        process.ready(LONG).unwrap();
        process.begin_stop().unwrap();
        assert_eq!(process.stop().unwrap().0.code(), Some(4));
    }

    #[test]
    fn a_process_that_stands_still_is_ended_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("echo 1; exec sleep 1000", folder.path());
        process.ready(LONG).unwrap();
        process.signal(Signal::Stop).unwrap();
        let (status, _) = process.stop().unwrap();
        assert!(!status.success() && !process.is_alive().unwrap());
    }
}
