//! One resource manager, one job master and some task executors.

mod builder;
mod role;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{Binaries, CommandLine, Process, Usage};
pub use builder::{Place, ProcessClusterBuilder, free_port};
pub use role::Role;

use crate::http;
use crate::patience::{Look, Patience};

/// Far longer than any server takes.
const READY: Duration = Duration::from_secs(20);

/// Processes that form a cluster. Dropped, all of them are ended.
#[derive(Debug)]
pub struct ProcessCluster {
    // First: their ends come before that of the folder.
    processes: BTreeMap<Role, Process>,
    ready: BTreeMap<Role, Value>,
    binaries: Binaries,
    settings: Vec<(String, String)>,
    addresses: BTreeMap<(Role, &'static str), String>,
    places: BTreeMap<Role, Place>,
    task_executors: usize,
    folder: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl ProcessCluster {
    /// Two task executors of two slots, unless said otherwise.
    #[must_use]
    pub fn builder() -> ProcessClusterBuilder {
        ProcessClusterBuilder::default()
    }

    /// Every role of this cluster.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        let task_executors = (0..self.task_executors).map(Role::TaskExecutor);
        [Role::ResourceManager, Role::JobMaster].into_iter().chain(task_executors).collect()
    }

    /// Starts every process that does not run, all at once, and waits until they are ready.
    ///
    /// # Errors
    /// One does not become ready.
    pub fn start_all(&mut self) -> anyhow::Result<()> {
        let roles: Vec<Role> =
            self.roles().into_iter().filter(|role| !self.processes.contains_key(role)).collect();
        for role in &roles {
            self.launch(*role)?;
        }
        roles.into_iter().try_for_each(|role| self.await_ready(role))
    }

    /// Starts a process and waits until it is ready: the first time on free ports, then on the same ones.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn start(&mut self, role: Role) -> anyhow::Result<()> {
        self.launch(role)?;
        self.await_ready(role)
    }

    /// Starts a process and does not wait.
    ///
    /// # Errors
    /// It cannot be started, or runs.
    pub fn launch(&mut self, role: Role) -> anyhow::Result<()> {
        if self.processes.contains_key(&role) {
            bail!("{role} runs already");
        }
        let place = self.places.get(&role).cloned().unwrap_or_default();
        let mut command = place.command(&self.binaries.path(role.program()));
        let mut set = |key: &str, value: &str| {
            command.arg("--set").arg(format!("{key}={value}"));
        };
        for (key, value) in &self.settings {
            set(key, value);
        }
        for (key, _) in role.addresses() {
            let any = format!("{}:0", place.host);
            set(key, self.addresses.get(&(role, *key)).unwrap_or(&any));
        }
        set("state.dir", &self.folder.join("state").to_string_lossy());
        if let Some(address) = self.addresses.get(&(Role::ResourceManager, "rpc.bind")) {
            set("resourcemanager.address", &format!("http://{address}"));
        }
        if let Role::TaskExecutor(n) = role {
            set("taskexecutor.resource-id", &format!("te-{n}"));
        }
        let process = Process::spawn(&role.to_string(), command, &self.logs())?;
        self.processes.insert(role, process);
        Ok(())
    }

    /// Waits until a launched process is ready.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn await_ready(&mut self, role: Role) -> anyhow::Result<()> {
        let ready = self.process(role)?.ready(READY)?;
        for (key, field) in role.addresses() {
            let address = ready.get(*field).and_then(Value::as_str);
            let address = address.with_context(|| format!("{role} does not say its `{field}`: {ready}"))?;
            self.addresses.insert((role, key), address.to_owned());
        }
        self.ready.insert(role, ready);
        Ok(())
    }

    /// A process that was started.
    ///
    /// # Errors
    /// It was not, or has been ended since.
    pub fn process(&mut self, role: Role) -> anyhow::Result<&mut Process> {
        self.processes.get_mut(&role).with_context(|| format!("{role} does not run"))
    }

    /// Whether a process was started and neither killed nor stopped since.
    #[must_use]
    pub fn is_started(&self, role: Role) -> bool {
        self.processes.contains_key(&role)
    }

    /// Whether a process was ready since it was last started.
    #[must_use]
    pub fn is_ready(&self, role: Role) -> bool {
        self.ready.contains_key(&role)
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&mut self, role: Role) -> anyhow::Result<()> {
        self.process(role)?.kill()?;
        self.processes.remove(&role);
        self.ready.remove(&role);
        Ok(())
    }

    /// SIGTERM. Says how it ended and how long that took.
    ///
    /// # Errors
    /// It does not run, or had to be killed.
    pub fn stop(&mut self, role: Role) -> anyhow::Result<(ExitStatus, Duration)> {
        let ended = self.process(role)?.stop()?;
        self.processes.remove(&role);
        self.ready.remove(&role);
        Ok(ended)
    }

    /// Ends all, task executors first, and says how each ended.
    ///
    /// # Errors
    /// One had to be killed.
    pub fn stop_all(&mut self) -> anyhow::Result<Vec<(Role, ExitStatus)>> {
        for process in self.processes.values_mut() {
            process.begin_stop()?;
        }
        let roles: Vec<Role> = self.processes.keys().rev().copied().collect();
        roles.into_iter().map(|role| Ok((role, self.stop(role)?.0))).collect()
    }

    /// What each process uses.
    ///
    /// # Errors
    /// One has ended.
    pub fn usage(&self) -> anyhow::Result<Vec<(Role, Usage)>> {
        self.processes.iter().map(|(role, process)| Ok((*role, process.usage()?))).collect()
    }

    /// Where a role is reached: `rpc`, `rest` or `data`.
    ///
    /// # Errors
    /// It has no such address, or was never ready.
    pub fn address(&self, role: Role, which: &str) -> anyhow::Result<&str> {
        let key = role.addresses().iter().find(|(_, field)| *field == which).map(|(key, _)| *key);
        let address = key.and_then(|key| self.addresses.get(&(role, key)));
        address.map(String::as_str).with_context(|| format!("{role} has no `{which}` address yet"))
    }

    /// What a running role said when it was ready.
    #[must_use]
    pub fn ready_line(&self, role: Role) -> Option<&Value> {
        self.ready.get(&role)
    }

    /// The folder with state and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder with the logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// The programs.
    #[must_use]
    pub const fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// `tidegate` for this cluster.
    ///
    /// # Errors
    /// There was no job master yet.
    pub fn command_line(&self) -> anyhow::Result<CommandLine> {
        let rest = self.address(Role::JobMaster, "rest")?;
        Ok(CommandLine::new(&self.binaries, &self.logs()).of_cluster(rest))
    }

    /// What REST answers at a path below `/v1`.
    ///
    /// # Errors
    /// The job master cannot be reached, or answers with another status than 200.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        let response = http::get(self.address(Role::JobMaster, "rest")?, &format!("/v1{path}"))?;
        anyhow::ensure!(response.status == 200, "GET {path}: {} {}", response.status, response.body);
        response.json()
    }

    /// Waits until what REST answers at a path is as wanted, and returns it. Refused connections are waited out.
    ///
    /// # Errors
    /// Not within the time; the error shows the last answer.
    pub fn await_answer(
        &self,
        path: &str,
        within: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        Patience::of(within).until(&format!("a certain answer at {path}"), || {
            Ok(match self.get(path) {
                Ok(value) if wanted(&value) => Look::Found(value),
                Ok(value) => Look::NotYet(value.to_string()),
                Err(error) => Look::NotYet(format!("{error:#}")),
            })
        })
    }

    /// Waits until so many slots are free.
    ///
    /// # Errors
    /// Not within the time.
    pub fn await_free_slots(&self, n: u64, within: Duration) -> anyhow::Result<Value> {
        self.await_answer("/taskmanagers", within, |answer| {
            let all = answer.get("taskmanagers").and_then(Value::as_array);
            let free = all.map(|all| all.iter().filter_map(|t| t.get("freeSlots")?.as_u64()).sum::<u64>());
            free == Some(n)
        })
    }
}

impl Drop for ProcessCluster {
    fn drop(&mut self) {
        // All at once, or each would wait for its turn; those that do not stop are killed by their own end.
        drop(self.stop_all());
    }
}
