//! The command `docker`, and the engine behind it.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// An engine that answers.
#[derive(Clone, Copy)]
pub(crate) struct Engine(());

impl Engine {
    /// Asks for it.
    ///
    /// # Errors
    /// There is no `docker`, or nothing answers it; and what would help.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let asked = Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]).output();
        match asked {
            Ok(output) if output.status.success() => Ok(Self(())),
            Ok(output) => bail!(
                "the Docker engine does not answer: {}; start it, name another in DOCKER_HOST, or join the group that may \
                 ask it (often `docker`)",
                on_one_line(&output.stderr)
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "there is no `docker` here; install Docker Engine, or lay out the image's files alone with `cargo xtask image \
                 --files FOLDER`"
            ),
            Err(error) => Err(error).context("cannot start docker"),
        }
    }

    /// Runs `docker` with these arguments; what it prints, without the last line end.
    ///
    /// # Errors
    /// It fails: what was asked and what it says.
    pub(crate) fn run(self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("docker")
            .args(args)
            // Says nothing of builders that are coming.
            .env("DOCKER_CLI_HINTS", "false")
            .stdin(Stdio::null())
            .output()
            .context("cannot start docker")?;
        if !output.status.success() {
            let said = on_one_line(&[output.stderr, output.stdout].concat());
            bail!("`docker {}` ended with {}: {said}", args.join(" "), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// What a container has written, both streams, each line behind its time.
    ///
    /// # Errors
    /// There is no such container.
    pub(crate) fn logs(self, container: &str, since: &str) -> anyhow::Result<String> {
        let args = ["logs", "--timestamps", "--since", since, container];
        let output = Command::new("docker").args(args).output().context("cannot start docker")?;
        if !output.status.success() {
            bail!("`docker {}`: {}", args.join(" "), on_one_line(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

/// A message of several lines on one.
fn on_one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
