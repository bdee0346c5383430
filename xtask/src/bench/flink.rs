//! Apache Flink's programs, which lie outside the project: a folder with `flink/env.sh`, which finds or makes a Python
//! environment with Flink's jars, and programs beside it that print JSON lines.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::programs;
use crate::workspace::root;

pub(super) struct Flink {
    folder: PathBuf,
    target: PathBuf,
}

impl Flink {
    /// Installs and compiles, the first time for a minute or more.
    ///
    /// # Errors
    /// There are no such programs, no Java, no Python, or no network.
    pub(super) fn prepare(folder: &Path) -> anyhow::Result<Self> {
        let folder = root().join(folder);
        let environment = folder.join("flink/env.sh");
        ensure!(
            environment.is_file(),
            "{} is not there: --flink needs the folder of Flink's programs",
            environment.display()
        );
        let flink = Self { folder, target: programs::target()?.join("flink") };
        std::fs::create_dir_all(&flink.target)
            .with_context(|| format!("cannot create {}", flink.target.display()))?;
        eprintln!("bench: Flink's jars and programs in {}", flink.target.display());
        let status = flink.shell("build").status().context("cannot start bash")?;
        ensure!(status.success(), "Flink's programs were not built: {status}");
        Ok(flink)
    }

    /// A shell that knows Flink and does this, with further arguments as its own.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        // `env.sh` leaves the shell where it cannot install.
        command.args(["-c", &format!("cd \"$0\" && . flink/env.sh && {script}")]).arg(&self.folder);
        for (name, folder) in [("FLINK_VENV", "venv"), ("BENCH_OUT", "classes")] {
            if std::env::var_os(name).is_none() {
                command.env(name, self.target.join(folder));
            }
        }
        command
    }

    /// The JSON lines of a program, in a virtual machine with these options instead of the folder's own.
    ///
    /// # Errors
    /// It failed or printed none.
    pub(super) fn java(
        &self,
        class: &str,
        args: &[String],
        options: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let mut command = self.shell("flink_java \"$@\"");
        if let Some(options) = options {
            command.env("JVM", options);
        }
        let output =
            command.arg(class).args(args).stdin(Stdio::null()).output().context("cannot start bash")?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && !lines.is_empty(),
            "Flink's {class} {} failed ({}): {}",
            args.join(" "),
            output.status,
            said.trim()
        );
        Ok(lines)
    }
}
