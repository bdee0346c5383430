//! What every process shows of itself: memory and open files, under the names that dashboards know.

use runtime_core::metrics::{Observe, Visit};

/// The process this runs in. Where the system has no `/proc`, it shows nothing.
#[derive(Debug)]
pub(super) struct ThisProcess;

impl Observe for ThisProcess {
    fn observe(&self, visit: &mut dyn Visit) {
        if let Some(bytes) = resident_bytes() {
            visit.gauge("process_resident_memory_bytes", "Resident memory.", &[], bytes);
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            // The listing itself holds one open.
            let open = files.count().saturating_sub(1);
            visit.gauge("process_open_fds", "Open file descriptors.", &[], open as f64);
        }
    }
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1024) as f64)
}
