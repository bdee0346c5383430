//! The bounds of a pool.

use std::time::Duration;

/// The bounds of a pool of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Slots of each worker; at least 1.
    pub slots: u32,
    /// Workers that may run at a time, stopping ones included.
    pub max: u32,
    /// Slots that there may be in all, those of others included (Flink: `slotmanager.number-of-slots.max`).
    pub max_slots: Option<u32>,
    /// Workers kept in reserve while jobs need any (Flink: `slotmanager.redundant-taskmanager-num`).
    pub redundant: u32,
    /// After which a worker without a job is stopped (Flink: `resourcemanager.taskmanager-timeout`).
    pub idle_timeout: Duration,
    /// From the allocation of a worker to its registration (Flink: `resourcemanager.taskmanager-registration.timeout`).
    pub registration_timeout: Duration,
    /// How long recovered workers are waited for before others are started (Flink:
    /// `resourcemanager.previous-worker.recovery.timeout`).
    pub recovery_timeout: Duration,
    /// Failed starts of a minute that make no pause.
    pub max_start_failure_rate: u32,
    /// The pause.
    pub start_retry_interval: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            slots: 1,
            max: 64,
            max_slots: None,
            redundant: 0,
            idle_timeout: Duration::from_secs(30),
            registration_timeout: Duration::from_secs(300),
            recovery_timeout: Duration::from_secs(30),
            max_start_failure_rate: 10,
            start_retry_interval: Duration::from_secs(3),
        }
    }
}
