//! Calling a task executor back before it is registered: one that cannot be reached is of no use, and its operator learns
//! of a wrong address at once instead of by lost heartbeats (C-003).
//!
//! The call is made beside the loop, which is not to wait for a peer. Of several attempts of one task executor the last to
//! come counts, in whatever order their calls end (FLINK-12260).

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use runtime_core::{Clock, Incarnation, ResourceId};
use wire::liveness::BeatEnd;
use wire::registration::{self, Registered};
use wire::{Address, Transport, v1};

/// Far longer than a call takes, and shorter than the longest attempts of whoever registers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Calls back, and knows the newest attempt of each task executor.
pub(crate) struct Callback {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    fence: Option<v1::Fence>,
    attempts: DashMap<ResourceId, u64>,
}

impl Callback {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        fence: Option<v1::Fence>,
    ) -> Self {
        Self { transport, clock, fence, attempts: DashMap::new() }
    }

    /// Whether the task executor is there under the address that it gave, and this attempt is its newest.
    ///
    /// # Errors
    /// Why it is not registered now.
    pub(crate) async fn reach(
        &self,
        id: &ResourceId,
        incarnation: Incarnation,
        address: &Address,
    ) -> Result<(), String> {
        let attempt = {
            let mut last = self.attempts.entry(id.clone()).or_insert(0);
            *last += 1;
            *last
        };
        let request = v1::HeartbeatToTaskExecutorRequest {
            fence: self.fence.clone(),
            resource_id: id.to_string(),
            // No registration has it: the task executor answers and does nothing else.
            instance_id: bytes::Bytes::new(),
        };
        let gateway = self.transport.connect_task_executor(address);
        let call = gateway.heartbeat_from_resource_manager(request);
        let end = BeatEnd::of(&*self.clock, PATIENCE, call).await;
        let outdated = self.attempts.get(id).is_none_or(|last| *last != attempt);
        if outdated {
            return Err("this attempt is outdated: a later one has come".into());
        }
        self.attempts.remove(id);
        if let Some(error) = &end.end.error {
            return Err(format!("the resource manager cannot reach it at {address}: {error}"));
        }
        if end.is_of_another_life(incarnation) {
            return Err(format!("at {address} another process answers"));
        }
        Ok(())
    }
}

/// "Not now": whoever hears it tries again after a pause.
pub(crate) fn failure(reason: String) -> v1::RegistrationReply {
    registration::Reply::<Registered>::Failure(reason).into()
}
