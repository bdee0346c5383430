//! Which process: its id and when it began, since ids are used again.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};

/// A process that leads a group of its own. As told by `/proc`, so on Linux alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Since the machine's start, in the kernel's ticks.
    pub(super) started: u64,
}

impl Process {
    /// The process that has this id now. One that has ended and is not waited for yet is none.
    pub(super) fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, started: stat.started })
    }

    /// The process that was started with this argument; of several, as of a script and what it runs, the head of the group.
    pub(super) fn with_argument(argument: &str) -> Option<Self> {
        let pids = fs::read_dir("/proc").ok()?.flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let has = |pid: &u32| {
            let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
        };
        let found = pids.filter(has).filter_map(|pid| Some((pid, stat(pid)?)));
        let first = found.min_by_key(|(pid, stat)| (stat.group != *pid, *pid));
        first.map(|(pid, stat)| Self { pid, started: stat.started })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal to it and to what it has started in its group. Nothing happens where it has ended.
    pub(super) fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).filter(|_| self.is_alive());
        if let Some(pid) = pid
            && let Err(error) = kill_process_group(pid, signal)
        {
            tracing::debug!(pid = self.pid, %error, "a signal was not sent");
        }
    }
}

/// A name of this run of the machine: after another start, ids and beginnings mean other processes.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

struct Stat {
    group: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?)
}

fn parse(stat: &str) -> Option<Stat> {
    // The name in brackets may hold anything. Behind it are the state, field 3, the group, 5, and the beginning, 22.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some(Stat { group: fields.get(2)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_id_and_its_beginning() {
        let this = Process::of(std::process::id()).unwrap();
        assert!(this.is_alive());
        assert!(!Process { started: this.started + 1, ..this }.is_alive(), "another process of that id");
        assert!(Process::with_argument("no process has this argument").is_none());
    }

    #[test]
    fn what_stands_in_brackets_does_not_confuse_and_the_dead_are_none() {
        let line = |state| format!("7 (a) b) S) {state} 1 9 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 4 0 4711 0");
        let stat = parse(&line("S")).unwrap();
        assert_eq!((stat.group, stat.started), (9, 4711));
        assert!(parse(&line("Z")).is_none());
    }
}
