//! What all parts of a task executor know and none changes.

use std::sync::Arc;
use std::time::Duration;

use entrypoint::Placement;
use heartbeat::{HeartbeatServices, LivenessSource};
use runtime_core::time::TokioClock;
use runtime_core::{Epoch, Incarnation, ResourceId};
use tokio::runtime;
use wire::convert::WireId;
use wire::{Address, Transport, v1};

use checkpoint::Stores;
use connectors::call::RustCalls;

use crate::exchange::Channels;
use crate::processor::Patience;

/// A task executor's name, addresses and means.
pub(crate) struct Shared {
    pub(crate) resource_id: ResourceId,
    pub(crate) incarnation: Incarnation,
    pub(crate) rpc_address: Address,
    pub(crate) data_address: Address,
    pub(crate) resource_manager: Address,
    pub(crate) hardware: Hardware,
    pub(crate) slots: u32,
    pub(crate) slot_timeout: Duration,
    pub(crate) registration_timeout: Duration,
    /// With tasks that were told to stop.
    pub(crate) patience: Patience,
    pub(crate) heartbeats: HeartbeatServices,
    /// Told that the loop turns.
    pub(crate) liveness: Arc<LivenessSource<Incarnation>>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: TokioClock,
    /// The I/O runtime: calls, heartbeats and the exchange.
    pub(crate) runtime: runtime::Handle,
    pub(crate) placement: Placement,
    pub(crate) channels: Arc<Channels>,
    pub(crate) calls: Arc<RustCalls>,
    /// Where checkpoints are kept.
    pub(crate) stores: Arc<dyn Stores>,
}

impl Shared {
    /// Said by this life, for a receiver of this term.
    pub(crate) fn fence(&self, epoch: Epoch) -> Option<v1::Fence> {
        Some(v1::Fence { epoch: epoch.0, incarnation: self.incarnation.to_wire() })
    }
}

/// What the machine has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hardware {
    pub(crate) cpu_cores: u32,
    /// 0 where the system does not say.
    pub(crate) memory_bytes: u64,
}

impl Hardware {
    /// As the system tells.
    pub(crate) fn probe() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self { cpu_cores: u32::try_from(cores).unwrap_or(u32::MAX), memory_bytes: total_memory(&memory) }
    }
}

/// `MemTotal` of `/proc/meminfo`, which is given in KiB.
fn total_memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_read_in_kib_and_unknown_without_its_line() {
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       2048 kB\n"), 2 << 20);
        assert_eq!(total_memory(""), 0);
    }
}
