//! What a cluster shall be like.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use super::{ProcessCluster, Role};
use crate::processes::Binaries;

/// What the cluster shall be like.
#[derive(Debug, Clone)]
pub struct ProcessClusterBuilder {
    binaries: Option<Binaries>,
    folder: Option<PathBuf>,
    task_executors: usize,
    settings: Vec<(String, String)>,
    addresses: BTreeMap<(Role, &'static str), String>,
    places: BTreeMap<Role, Place>,
}

/// Where a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The address that it binds.
    pub host: String,
    /// What stands before its command line.
    pub prefix: Vec<String>,
}

impl Place {
    pub(super) fn command(&self, program: &Path) -> Command {
        match self.prefix.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self { host: "127.0.0.1".into(), prefix: Vec::new() }
    }
}

impl ProcessClusterBuilder {
    /// The programs of this folder instead of those of the test at hand.
    #[must_use]
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// State and logs go there and stay, instead of to a temporary folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// How many task executors; 2 unless said.
    #[must_use]
    pub const fn task_executors(mut self, n: usize) -> Self {
        self.task_executors = n;
        self
    }

    /// Slots of each task executor; 2 unless said.
    #[must_use]
    pub fn slots(self, n: u32) -> Self {
        self.set("taskexecutor.slots", n)
    }

    /// Interval and timeout of every heartbeat; the programs' defaults unless said.
    #[must_use]
    pub fn heartbeat(self, interval: Duration, timeout: Duration) -> Self {
        self.set("heartbeat.interval", format!("{}ms", interval.as_millis()))
            .set("heartbeat.timeout", format!("{}ms", timeout.as_millis()))
    }

    /// A key of the configuration, for every process.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// The ports of a cluster that people start by hand, instead of free ones.
    #[must_use]
    pub fn default_ports(mut self) -> Self {
        for (role, key, port) in [
            (Role::ResourceManager, "rpc.bind", 6120),
            (Role::JobMaster, "rpc.bind", 6123),
            (Role::JobMaster, "rest.bind", 8081),
        ] {
            self.addresses.insert((role, key), format!("127.0.0.1:{port}"));
        }
        self
    }

    /// Where a process runs, instead of beside its starter on the loopback interface.
    #[must_use]
    pub fn place(mut self, role: Role, place: Place) -> Self {
        self.places.insert(role, place);
        self
    }

    /// Prepares the cluster; its processes are started by the caller.
    ///
    /// # Errors
    /// There are no programs, or no folder can be made.
    pub fn prepare(self) -> anyhow::Result<ProcessCluster> {
        let binaries = self.binaries.map_or_else(Binaries::of_this_test, Ok)?;
        let temporary = match &self.folder {
            None => Some(tempfile::Builder::new().prefix("tidegate-cluster-").tempdir()?),
            Some(_) => None,
        };
        let folder = self.folder.or_else(|| temporary.as_ref().map(|folder| folder.path().to_owned()));
        let folder = folder.context("the cluster has no folder")?;
        std::fs::create_dir_all(folder.join("logs"))
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let mut addresses = self.addresses;
        // Known from the start: the others look for it, whether it runs or not.
        let resource_manager = match addresses.get(&(Role::ResourceManager, "rpc.bind")) {
            Some(address) => address.clone(),
            None => {
                let host = self.places.get(&Role::ResourceManager).map_or("127.0.0.1", |place| &place.host);
                format!("{host}:{}", free_port()?)
            }
        };
        addresses.insert((Role::ResourceManager, "rpc.bind"), resource_manager);
        Ok(ProcessCluster {
            processes: BTreeMap::new(),
            ready: BTreeMap::new(),
            binaries,
            settings: self.settings,
            addresses,
            places: self.places,
            task_executors: self.task_executors,
            folder,
            _temporary: temporary,
        })
    }

    /// Starts everything and waits until all are ready.
    ///
    /// # Errors
    /// A process does not become ready; the error shows its log.
    pub fn start(self) -> anyhow::Result<ProcessCluster> {
        let mut cluster = self.prepare()?;
        cluster.start_all()?;
        Ok(cluster)
    }
}

impl Default for ProcessClusterBuilder {
    fn default() -> Self {
        Self {
            binaries: None,
            folder: None,
            task_executors: 2,
            settings: vec![("taskexecutor.slots".into(), "2".into())],
            addresses: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }
}

/// A port that nobody uses just now.
///
/// # Errors
/// The kernel's.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
