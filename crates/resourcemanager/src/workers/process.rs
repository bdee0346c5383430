//! Workers as child processes of the resource manager, on its machine.
//!
//! A worker outlives the resource manager: its tasks go on while that is away, as with any task executor. So a process is
//! known by its id and its beginning, both noted in `state.dir`; a resource manager that is started again watches those
//! that still run and ends those that nobody needs. Without a resource manager a worker ends by itself after
//! `taskexecutor.registration.timeout`.

mod command;
mod identity;
mod log_files;
mod records;
#[cfg(test)]
mod tests;

use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use entrypoint::StateDir;
use runtime_core::ResourceId;
use rustix::process::Signal;
use tokio::process::Child;
use tokio::runtime;
use tokio::sync::watch;
use wire::Address;

use super::{DriverEvent, DriverEvents, Ending, WorkerDriver};
pub use command::WorkerCommand;
use identity::Process;
use log_files::LogFiles;
use records::Records;

/// A worker that was told to stop has this long before it is killed: what a task executor promises, and a bit.
const STOP_GRACE: Duration = Duration::from_secs(6);

/// Between two looks at a process that is no child: nobody tells of its end.
const LOOK: Duration = Duration::from_millis(100);

/// The driver `process`.
pub struct ProcessDriver(Arc<Inner>);

struct Inner {
    command: WorkerCommand,
    records: Records,
    logs: LogFiles,
    runtime: runtime::Handle,
    begun: OnceLock<(Address, DriverEvents)>,
    lives: DashMap<ResourceId, Arc<Life>>,
}

/// A worker from the wish for it to its end.
struct Life {
    process: OnceLock<Process>,
    unwanted: watch::Sender<bool>,
    terminated: AtomicBool,
}

impl Life {
    fn new() -> Self {
        Self {
            process: OnceLock::new(),
            unwanted: watch::Sender::new(false),
            terminated: AtomicBool::new(false),
        }
    }

    /// Tells it to stop, once: a second signal would end it at once, in the middle of its good-byes.
    fn terminate(&self) {
        if let Some(process) = self.process.get()
            && !self.terminated.swap(true, Ordering::Relaxed)
        {
            process.signal(Signal::TERM);
        }
    }

    fn kill(&self) {
        if let Some(process) = self.process.get() {
            process.signal(Signal::KILL);
        }
    }

    fn is_unwanted(&self) -> bool {
        *self.unwanted.borrow()
    }

    async fn unwanted(&self) {
        // The sender is this life's own: the wait ends with the wish alone.
        let _ = self.unwanted.subscribe().wait_for(|unwanted| *unwanted).await;
    }
}

impl ProcessDriver {
    /// A driver that keeps its list and the workers' logs in `state`.
    #[must_use]
    pub fn new(command: WorkerCommand, state: Arc<StateDir>, runtime: runtime::Handle) -> Self {
        Self(Arc::new(Inner {
            command,
            logs: LogFiles::new(state.path().join("worker-logs")),
            records: Records::new(state),
            runtime,
            begun: OnceLock::new(),
            lives: DashMap::new(),
        }))
    }
}

impl WorkerDriver for ProcessDriver {
    fn begin(&self, resource_manager: &Address, events: DriverEvents) -> Vec<ResourceId> {
        let inner = &self.0;
        if inner.begun.set((resource_manager.clone(), events)).is_err() {
            return Vec::new();
        }
        let mut recovered = Vec::new();
        for (id, process) in inner.records.living() {
            tracing::info!(worker = %id, pid = process.pid, "a worker of before still runs");
            let life = Arc::new(Life::new());
            // Nobody else has it yet.
            let _ = life.process.set(process);
            inner.lives.insert(id.clone(), Arc::clone(&life));
            inner.runtime.spawn(Arc::clone(inner).watch(id.clone(), process, life));
            recovered.push(id);
        }
        recovered
    }

    fn start(&self, id: &ResourceId) {
        let life = Arc::new(Life::new());
        self.0.lives.insert(id.clone(), Arc::clone(&life));
        self.0.runtime.spawn(Arc::clone(&self.0).live(id.clone(), life));
    }

    /// The signal is sent here and not by a task: a resource manager that stops has no time for one.
    fn stop(&self, id: &ResourceId) {
        if let Some(life) = self.0.lives.get(id) {
            life.unwanted.send_replace(true);
            life.terminate();
        }
    }
}

impl Inner {
    fn tell(&self, event: DriverEvent) {
        if let Some((_, events)) = self.begun.get() {
            events(event);
        }
    }

    /// A worker of this resource manager, from its start to its end.
    async fn live(self: Arc<Self>, id: ResourceId, life: Arc<Life>) {
        let (driver, name, same) = (Arc::clone(&self), id.clone(), Arc::clone(&life));
        // Files are synced and a process is made: neither on a thread that carries heartbeats.
        let begun = self.runtime.spawn_blocking(move || driver.spawn(&name, &same)).await;
        let mut child = match begun.unwrap_or_else(|panicked| Err(panicked.to_string())) {
            Ok(child) => child,
            Err(cause) => {
                self.forget(&id).await;
                self.tell(DriverEvent::NotStarted(id, cause));
                return;
            }
        };
        self.tell(DriverEvent::Started(id.clone()));
        let status = tokio::select! {
            biased;
            status = child.wait() => status,
            () = life.unwanted() => {
                life.terminate();
                match tokio::time::timeout(STOP_GRACE, child.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        tracing::warn!(worker = %id, "it has not stopped within {STOP_GRACE:?} and is killed");
                        life.kill();
                        child.wait().await
                    }
                }
            }
        };
        let status =
            status.map_or_else(|error| format!("an unknown status ({error})"), |status| status.to_string());
        self.ended(id, status).await;
    }

    fn spawn(&self, id: &ResourceId, life: &Life) -> Result<Child, String> {
        let Some((resource_manager, _)) = self.begun.get() else {
            return Err("the driver has not begun".into());
        };
        self.records.starting(id).map_err(|error| error.to_string())?;
        if life.is_unwanted() {
            return Err("it is no longer needed".into());
        }
        let log = self.logs.open(id).and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|error| {
            format!("its log {} cannot be written: {error}", self.logs.path(id).display())
        })?;
        let mut command = self.command.for_worker(id, resource_manager);
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = tokio::process::Command::from(command).spawn().map_err(|error| self.cannot(&error))?;
        if let Some(process) = child.id().and_then(Process::of) {
            // Set once, here.
            let _ = life.process.set(process);
            if let Err(error) = self.records.runs(id, process) {
                tracing::warn!(worker = %id, %error, "a worker is in the list without its process");
            }
        }
        Ok(child)
    }

    fn cannot(&self, error: &io::Error) -> String {
        let way_out = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => "is worker.command right?",
            _ => "if this machine is full, lower worker.max or make room",
        };
        format!("{} cannot be started: {error}; {way_out}", self.command.program().display())
    }

    /// A worker of an earlier life of this resource manager, until its end.
    async fn watch(self: Arc<Self>, id: ResourceId, process: Process, life: Arc<Life>) {
        let gone = async {
            while process.is_alive() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::pin!(gone);
        tokio::select! {
            biased;
            () = &mut gone => {}
            () = life.unwanted() => {
                life.terminate();
                if tokio::time::timeout(STOP_GRACE, &mut gone).await.is_err() {
                    life.kill();
                    gone.await;
                }
            }
        }
        self.ended(id, "a status that is not known, as an earlier resource manager has started it".into())
            .await;
    }

    async fn ended(self: Arc<Self>, id: ResourceId, status: String) {
        let (driver, name) = (Arc::clone(&self), id.clone());
        let last_words = self.runtime.spawn_blocking(move || driver.logs.last_words(&name)).await;
        let log = self.logs.path(&id).display().to_string();
        self.forget(&id).await;
        let ending = Ending { status, last_words: last_words.unwrap_or_default(), log };
        self.tell(DriverEvent::Ended(id, ending));
    }

    async fn forget(self: &Arc<Self>, id: &ResourceId) {
        self.lives.remove(id);
        let (driver, id) = (Arc::clone(self), id.clone());
        let forgotten = self.runtime.spawn_blocking(move || {
            driver.records.forget(&id);
            driver.logs.prune(&driver.lives.iter().map(|life| life.key().clone()).collect());
        });
        // It cannot be cancelled; when the runtime ends, the next life forgets.
        let _ = forgotten.await;
    }
}
