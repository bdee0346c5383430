//! The list of workers that survives the resource manager: a file for each, in its folder below `state.dir`.
//!
//! A worker is noted before it is started and again when its process is known, so a resource manager that dies between the
//! two still finds it, by its arguments.

use std::sync::Arc;

use entrypoint::{StateDir, StateDirError};
use runtime_core::ResourceId;

use super::command::identifying_argument;
use super::identity::{Process, boot};

const FOLDER: &str = "workers";
const STARTING: &str = "starting\n";

#[derive(Clone)]
pub(super) struct Records {
    state: Arc<StateDir>,
}

impl Records {
    pub(super) const fn new(state: Arc<StateDir>) -> Self {
        Self { state }
    }

    /// Notes that a worker is about to be started.
    pub(super) fn starting(&self, id: &ResourceId) -> Result<(), StateDirError> {
        self.state.write(&name(id), STARTING.as_bytes())
    }

    /// Notes its process.
    pub(super) fn runs(&self, id: &ResourceId, process: Process) -> Result<(), StateDirError> {
        let text = format!("pid {} started {} boot {}\n", process.pid, process.started, boot());
        self.state.write(&name(id), text.as_bytes())
    }

    /// Forgets a worker. A file that stays names a process that has ended, which the next look finds out.
    pub(super) fn forget(&self, id: &ResourceId) {
        if let Err(error) = self.state.remove(&name(id)) {
            tracing::warn!(worker = %id, %error, "a worker that has ended stays in the list");
        }
    }

    /// The workers that still run. The others are forgotten.
    pub(super) fn living(&self) -> Vec<(ResourceId, Process)> {
        let names = self.state.names(FOLDER).unwrap_or_else(|error| {
            tracing::warn!(%error, "workers of before cannot be found; they end by themselves");
            Vec::new()
        });
        let mut living = Vec::new();
        for id in names.iter().filter_map(|name| name.parse::<ResourceId>().ok()) {
            match self.find(&id) {
                Some(process) => living.push((id, process)),
                None => self.forget(&id),
            }
        }
        living
    }

    fn find(&self, id: &ResourceId) -> Option<Process> {
        let text = self.state.read(&name(id)).ok().flatten().unwrap_or_default();
        match parse(&String::from_utf8_lossy(&text)) {
            Some((process, booted)) => Some(process).filter(|p| booted == boot() && p.is_alive()),
            None => Process::with_argument(&identifying_argument(id)),
        }
    }
}

fn name(id: &ResourceId) -> String {
    format!("{FOLDER}/{id}")
}

fn parse(text: &str) -> Option<(Process, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["pid", pid, "started", started, "boot", boot] = words[..] else { return None };
    let process = Process { pid: pid.parse().ok()?, started: started.parse().ok()? };
    Some((process, boot.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entrypoint::Role;

    #[test]
    fn only_those_that_live_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDir::open(folder.path(), Role::ResourceManager).unwrap());
        let records = Records::new(Arc::clone(&state));
        let id = |n: u32| format!("worker-1-{n}").parse::<ResourceId>().unwrap();
        let this = Process::of(std::process::id()).unwrap();
        records.runs(&id(1), this).unwrap();
        // The same process id, used again.
        records.runs(&id(2), Process { started: this.started + 1, ..this }).unwrap();
        // Of before the machine's last start.
        let of_before = format!("pid {} started {} boot another\n", this.pid, this.started);
        state.write("workers/worker-1-3", of_before.as_bytes()).unwrap();
        // Never started; damaged.
        records.starting(&id(4)).unwrap();
        state.write("workers/worker-1-5", b"pid x").unwrap();
        assert_eq!(records.living(), [(id(1), this)]);
        assert_eq!(state.names("workers").unwrap(), ["worker-1-1"], "the others are forgotten");
    }
}
