//! What the machine says: its clock, and what this process has used of it.

use std::sync::OnceLock;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since this was first asked.
// Here nothing is simulated: real time is what is measured.
#[allow(clippy::disallowed_methods)]
pub(crate) fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of CPU that the threads of this process have used.
pub(crate) fn cpu() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(used.tv_sec * 1_000_000_000 + used.tv_nsec).unwrap_or(0)
}

/// The most MiB of memory that this process has had.
pub(crate) fn peak_rss() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
