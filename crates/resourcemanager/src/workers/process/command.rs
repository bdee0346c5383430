//! What a worker is started as.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use entrypoint::config::{Auto, keys};
use entrypoint::{Config, ConfigError, Role};
use runtime_core::ResourceId;
use wire::Address;

/// The program of a worker, when none is named.
const PROGRAM: &str = "taskexecutor";

/// Keys of a task executor that a worker does not take over: they are the resource manager's own, or the worker's.
const OWN: &[&str] = &[
    "rpc.bind",
    "rpc.advertise",
    "data.bind",
    "data.advertise",
    "metrics.bind",
    "resourcemanager.address",
    "taskexecutor.resource-id",
    "taskexecutor.slots",
];

/// A worker's program and its arguments but for its name and whom it registers at.
///
/// A worker is configured like its resource manager: what that was given for the keys of a task executor, by file,
/// variable or flag, is passed on. It listens on free ports of the same addresses.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    program: PathBuf,
    args: Vec<String>,
}

impl WorkerCommand {
    /// The command that a resource manager's configuration asks for.
    ///
    /// # Errors
    /// There is no such program; the error names `worker.command`.
    pub fn of(config: &Config) -> Result<Self, ConfigError> {
        let mut args = Vec::new();
        let mut set = |key: &str, value: &str| args.extend(["--set".to_owned(), format!("{key}={value}")]);
        for (key, value) in config.given_for(Role::TaskExecutor) {
            if !OWN.contains(&key) {
                set(key, value);
            }
        }
        set("taskexecutor.slots", &config.get(&keys::TASKEXECUTOR_SLOTS).to_string());
        let reached_at = config.get(&keys::RPC_BIND).ip();
        for bind in ["rpc.bind", "data.bind"] {
            set(bind, &std::net::SocketAddr::from((reached_at, 0)).to_string());
        }
        if let Auto(Some(advertise)) = config.get(&keys::RPC_ADVERTISE) {
            for key in ["rpc.advertise", "data.advertise"] {
                set(key, advertise.host());
            }
        }
        args.extend(config.get(&keys::WORKER_ARGS).0);
        Ok(Self { program: program(config)?, args })
    }

    /// A command of one's own, for programs that embed a resource manager.
    #[must_use]
    pub const fn new(program: PathBuf, args: Vec<String>) -> Self {
        Self { program, args }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The command of one worker, in a process group of its own: Ctrl-C in the resource manager's terminal is none of its
    /// business, and a script and what it runs are signalled together.
    pub(super) fn for_worker(&self, id: &ResourceId, resource_manager: &Address) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command.arg("--set").arg(format!("resourcemanager.address={resource_manager}"));
        command.arg("--set").arg(identifying_argument(id));
        // All of them are passed on as arguments, or are not for a worker.
        let ours = |name: &OsString| name.to_string_lossy().starts_with(entrypoint::config::PREFIX);
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.process_group(0);
        command
    }
}

/// The argument that no other process has.
pub(super) fn identifying_argument(id: &ResourceId) -> String {
    format!("taskexecutor.resource-id={id}")
}

fn program(config: &Config) -> Result<PathBuf, ConfigError> {
    let named = match config.get(&keys::WORKER_COMMAND) {
        Auto(Some(named)) => named,
        Auto(None) => std::env::current_exe().unwrap_or_default().with_file_name(PROGRAM),
    };
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let candidates: Vec<PathBuf> = if named.components().count() > 1 {
        vec![named.clone()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(&named)).collect()
    };
    candidates.into_iter().find(|candidate| is_program(candidate)).ok_or_else(|| {
        let expected = "an executable file: a path, or a name that PATH has; auto is `taskexecutor` beside \
                        `resourcemanager`"
            .to_owned();
        config.refusal(&keys::WORKER_COMMAND, &named.display().to_string(), expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use entrypoint::config::Layers;

    fn config(set: &[&str]) -> Config {
        let set = set.iter().map(|&one| one.to_owned()).collect();
        Config::load(Role::ResourceManager, &Layers { set, ..Layers::default() }).unwrap()
    }

    fn args(set: &[&str]) -> Vec<String> {
        let mut all = vec!["worker.command=sh"];
        all.extend(set);
        let command = WorkerCommand::of(&config(&all)).unwrap();
        let command = command.for_worker(&"w-1".parse().unwrap(), &"http://127.0.0.1:6120".parse().unwrap());
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned())
            .filter(|arg| arg != "--set")
            .collect()
    }

    #[test]
    fn a_worker_is_configured_like_its_resource_manager_but_for_what_is_its_own() {
        let args = args(&[
            "heartbeat.interval=2s",
            "rpc.bind=10.0.0.1:6120",
            "metrics.bind=127.0.0.1:9250",
            "state.dir=elsewhere",
            "taskexecutor.slots=3",
            "worker.args=--config x.yaml",
        ]);
        let expected = [
            "heartbeat.interval=2s",
            "taskexecutor.slots=3",
            "rpc.bind=10.0.0.1:0",
            "data.bind=10.0.0.1:0",
            "--config",
            "x.yaml",
            "resourcemanager.address=http://127.0.0.1:6120",
            "taskexecutor.resource-id=w-1",
        ];
        assert_eq!(args, expected);
    }

    #[test]
    fn behind_a_wildcard_a_worker_says_the_host_of_its_resource_manager() {
        let args = args(&["rpc.bind=0.0.0.0:6120", "rpc.advertise=host:7"]);
        for wanted in ["rpc.bind=0.0.0.0:0", "rpc.advertise=host", "data.advertise=host"] {
            assert!(args.iter().any(|arg| arg == wanted), "{wanted} is missing in {args:?}");
        }
    }

    #[test]
    fn a_command_that_does_not_exist_is_refused_by_key_value_and_source() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        for path in [folder.path().join("nowhere"), plain, PathBuf::from("no-such-program-in-path")] {
            let set = format!("worker.command={}", path.display());
            let error = WorkerCommand::of(&config(&[&set])).unwrap_err().to_string();
            for part in ["worker.command", &path.display().to_string(), "flag --set", "executable"] {
                assert!(error.contains(part), "{part} is missing in {error}");
            }
        }
    }
}
