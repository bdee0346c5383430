//! What is done to the services of a demo cluster.

use std::fmt;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use testkit::patience::{Look, Patience};

use super::compose::{Compose, SERVICES};
use crate::step::succeed;

/// Between `docker kill` and `docker start`.
const KILLED: Duration = Duration::from_secs(2);
/// Longer than the heartbeat timeout in docker-compose.yml: all peers have given up whom they cannot hear.
const CUT_OFF: Duration = Duration::from_secs(7);
/// The engine starts a crashed process at once.
const RESTARTED: Duration = Duration::from_secs(60);

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    /// `docker kill`, and `docker start` two seconds later: no restart policy acts on it.
    Kill,
    /// SIGKILL to the process from the host: the restart policy starts it.
    Crash,
    /// `docker network disconnect`, and `connect` once all have noticed.
    CutOff,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "docker kill, start",
            Self::Crash => "kill -9 on the host",
            Self::CutOff => "disconnect, connect",
        })
    }
}

/// All that is done, in this order: each service in each way.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Deed)> {
    [Deed::Kill, Deed::Crash, Deed::CutOff]
        .into_iter()
        .flat_map(|deed| SERVICES.iter().map(move |service| (*service, deed)))
}

/// Whether this user may end the processes of containers: the engine runs on this machine, and its processes belong to
/// another user.
pub(super) fn may_crash(compose: &Compose) -> anyhow::Result<bool> {
    let pid = compose.inspect("lookup", "{{.State.Pid}}")?;
    let ours = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "tidegate");
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    Ok(ours && root)
}

impl Deed {
    /// Does it; when this returns, what was taken away is given back.
    ///
    /// # Errors
    /// The engine's, or a crashed process is not started again.
    pub(super) fn perform(self, compose: &Compose, service: &str) -> anyhow::Result<()> {
        let container = compose.container(service)?;
        let engine = compose.engine;
        match self {
            Self::Kill => {
                engine.run(&["kill", &container])?;
                Patience::of(KILLED).pass();
                engine.run(&["start", &container])?;
            }
            Self::Crash => {
                let looked = "{{.State.Pid}} {{.RestartCount}}";
                let before = compose.inspect(service, looked)?;
                let (pid, restarts) = before.split_once(' ').context("docker inspect")?;
                let program = fs::read_to_string(format!("/proc/{pid}/comm"))?;
                ensure!(
                    ["resourcemanager", "jobmaster", "taskexecutor", "tidegate"].contains(&program.trim()),
                    "process {pid} is `{}`, none of ours",
                    program.trim()
                );
                succeed(Command::new("kill").args(["-9", pid]))?;
                Patience::of(RESTARTED).until(&format!("{service} is started again"), || {
                    let now = compose.inspect(service, "{{.RestartCount}} {{.State.Status}}")?;
                    let again =
                        now.split_once(' ').is_some_and(|(n, state)| n != restarts && state == "running");
                    Ok(Look::of(again.then_some(()), || now))
                })?;
            }
            Self::CutOff => {
                let network = compose.network();
                engine.run(&["network", "disconnect", &network, &container])?;
                Patience::of(CUT_OFF).pass();
                // The name that its peers know it by is given with the connection.
                engine.run(&["network", "connect", "--alias", service, &network, &container])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_suffers_each_deed_once() {
        let all: Vec<_> = all().collect();
        assert_eq!(all.len(), SERVICES.len() * 3);
        for service in SERVICES {
            for deed in [Deed::Kill, Deed::Crash, Deed::CutOff] {
                assert_eq!(all.iter().filter(|done| **done == (service, deed)).count(), 1);
            }
        }
    }

    #[test]
    fn the_services_are_those_of_the_file() {
        let file = fs::read_to_string(crate::workspace::root().join("docker-compose.yml")).unwrap();
        for service in SERVICES {
            assert!(file.contains(&format!("\n  {service}:\n")), "{service}");
        }
    }
}
