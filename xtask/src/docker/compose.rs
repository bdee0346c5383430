//! One project of `docker-compose.yml`, under a name of its own, and removed with its volumes when it is dropped.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use testkit::patience::{Look, Patience};

use super::engine::Engine;
use crate::workspace::root;

/// The services that run all the time, as the file names them.
pub(crate) const SERVICES: [&str; 6] =
    ["resourcemanager", "jobmaster", "taskexecutor-1", "taskexecutor-2", "taskexecutor-3", "lookup"];

/// Beyond a start on a machine that does something else as well.
const HEALTHY: Duration = Duration::from_secs(90);

/// A demo cluster.
pub(crate) struct Compose {
    pub(crate) engine: Engine,
    tool: Vec<&'static str>,
    pub(crate) project: String,
    pub(crate) image: String,
}

impl Compose {
    /// Finds out which of the two tools is here. Nothing is started yet.
    ///
    /// # Errors
    /// Neither is.
    pub(crate) fn find(engine: Engine, image: &str) -> anyhow::Result<Self> {
        let works = |tool: &[&str]| {
            let mut command = command_of(tool);
            let probe = command.arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            probe.is_ok_and(|status| status.success())
        };
        let tools = [vec!["docker", "compose"], vec!["docker-compose"]];
        let Some(tool) = tools.into_iter().find(|tool| works(tool)) else {
            bail!(
                "there is neither `docker compose` nor `docker-compose`; install the Compose plugin of Docker"
            );
        };
        // Nobody else's, and not that of a person who has the cluster running.
        let project = format!("tidegate-demo-{}", std::process::id());
        Ok(Self { engine, tool, project, image: image.to_owned() })
    }

    fn command(&self) -> Command {
        let mut command = command_of(&self.tool);
        command.args(["--project-name", &self.project]).current_dir(root());
        // Any free port: the usual one may belong to a cluster that runs here.
        command.env("TIDEGATE_IMAGE", &self.image).env("TIDEGATE_REST_PORT", "0");
        command
    }

    /// What removes the cluster, for a person to type.
    pub(crate) fn removal(&self) -> String {
        format!("{} --project-name {} down --volumes", self.tool.join(" "), self.project)
    }

    /// Starts all services and waits until each is healthy.
    ///
    /// # Errors
    /// One is not in time.
    pub(crate) fn up(&self) -> anyhow::Result<()> {
        quietly(self.command().args(["up", "--detach"]))?;
        self.all_healthy()
    }

    /// Waits until all services are healthy.
    ///
    /// # Errors
    /// One is not in time, and which.
    pub(crate) fn all_healthy(&self) -> anyhow::Result<()> {
        let patience = Patience::of(HEALTHY);
        SERVICES.iter().try_for_each(|service| {
            patience.until(&format!("{service} is healthy"), || {
                let health = self.inspect(service, "{{.State.Status}} {{.State.Health.Status}}")?;
                Ok(Look::of((health == "running healthy").then_some(()), || health))
            })
        })
    }

    /// The container of a service.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn container(&self, service: &str) -> anyhow::Result<String> {
        let labels = [
            format!("label=com.docker.compose.project={}", self.project),
            format!("label=com.docker.compose.service={service}"),
            "label=com.docker.compose.oneoff=False".to_owned(),
        ];
        let mut args = vec!["ps", "--all", "--quiet", "--no-trunc"];
        args.extend(labels.iter().flat_map(|label| ["--filter", label.as_str()]));
        let found = self.engine.run(&args)?;
        found.lines().next().map(str::to_owned).with_context(|| format!("{service} has no container"))
    }

    /// What the engine knows of a service's container.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn inspect(&self, service: &str, format: &str) -> anyhow::Result<String> {
        self.engine.run(&["inspect", "--format", format, &self.container(service)?])
    }

    /// The one network.
    pub(crate) fn network(&self) -> String {
        format!("{}_default", self.project)
    }

    /// Where REST is from this machine; it may be elsewhere after the job master was started again.
    ///
    /// # Errors
    /// It is nowhere just now.
    pub(crate) fn rest(&self) -> anyhow::Result<String> {
        let published = self.engine.run(&["port", &self.container("jobmaster")?, "8081"])?;
        published.lines().next().map(str::to_owned).context("REST is not published")
    }

    /// Starts a command of the service `tidegate`; its stdout is read by the caller.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn tidegate(&self, args: &[&str]) -> anyhow::Result<Child> {
        let mut command = self.command();
        command.args(["run", "--rm", "-T", "tidegate"]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().context("cannot start the command line in a container")
    }

    /// Copies what is in a folder of a service's container.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn copy_out(&self, service: &str, folder: &str, to: &PathBuf) -> anyhow::Result<()> {
        std::fs::create_dir_all(to)?;
        let from = format!("{}:{folder}/.", self.container(service)?);
        self.engine.run(&["cp", &from, &to.to_string_lossy()]).map(drop)
    }

    /// Removes containers, network and volumes.
    ///
    /// # Errors
    /// The tool's; what removes it by hand stands there.
    pub(crate) fn down(&self) -> anyhow::Result<()> {
        // The command line, should it still run, is a container that the file does not list as running.
        let ours = format!("label=com.docker.compose.project={}", self.project);
        for container in self.engine.run(&["ps", "--all", "--quiet", "--filter", &ours])?.lines() {
            // One that is being removed already is no harm.
            let _ = self.engine.run(&["rm", "--force", container]);
        }
        let mut down = self.command();
        quietly(down.args(["down", "--volumes", "--remove-orphans"])).with_context(|| self.removal())
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        if let Err(error) = self.down() {
            eprintln!("the demo cluster is not removed: {error:#}");
        }
    }
}

fn command_of(tool: &[&str]) -> Command {
    let (program, args) = tool.split_first().unwrap_or((&"docker", &[]));
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs a tool that tells much on its way; it is heard only when it fails.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().context("cannot start docker-compose")?;
    if !output.status.success() {
        bail!("docker-compose ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
