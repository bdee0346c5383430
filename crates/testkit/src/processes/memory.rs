//! What a process uses, as Linux tells it.

use std::time::Duration;

use anyhow::Context as _;

/// Clock ticks per second in `/proc`: 100 on every Linux, whatever the kernel's own.
const TICKS_PER_SECOND: u64 = 100;

/// What a process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident now, in bytes.
    pub resident: u64,
    /// Most that was ever resident, in bytes.
    pub peak: u64,
    /// Processor time of all its threads, in steps of 10 ms.
    pub cpu: Duration,
}

impl Usage {
    /// That of a process that lives.
    ///
    /// # Errors
    /// It does not, or this is no Linux.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let read = |what: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{what}"))
                .with_context(|| format!("cannot see what process {pid} uses"))
        };
        parse(&read("status")?, &read("stat")?).with_context(|| format!("process {pid} has ended"))
    }
}

/// `None` for a process that has ended and is not waited for yet: it has no memory.
fn parse(status: &str, stat: &str) -> Option<Usage> {
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    // The name in brackets may hold anything; fields 14 and 15 are the twelfth and thirteenth behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|n| fields.get(*n)?.parse::<u64>().ok()).sum();
    let cpu = Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
    Some(Usage { resident: kib("VmRSS")? * 1_024, peak: kib("VmHWM")? * 1_024, cpu })
}

/// How many files, sockets included, a process has open.
///
/// # Errors
/// It does not live, or this is no Linux.
pub fn open_files(pid: u32) -> anyhow::Result<usize> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    Ok(entries.with_context(|| format!("cannot see what process {pid} has open"))?.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_behind_any_name() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 4 0";
        let usage = parse(status, stat).unwrap();
        let expected = Usage { resident: 1_048_576, peak: 2_097_152, cpu: Duration::from_millis(1_750) };
        assert_eq!(usage, expected);
        assert_eq!(parse("Name:\tx\n", stat), None);
    }

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 100_000 && usage.peak >= usage.resident, "{usage:?}");
    }
}
