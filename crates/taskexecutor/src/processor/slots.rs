//! Slots: asked for by the resource manager, given back by job masters, timed out.

use controller_events::Handle;
use runtime_core::{AllocationId, Epoch, JobId};
use wire::convert::WireId;
use wire::fencing::Fence;
use wire::{Address, RpcError, v1};

use super::TaskExecutorProcessor;
use super::job::Leader;
use crate::event::TeEvent;
use crate::slots::{Freed, SlotState};

impl TaskExecutorProcessor {
    /// Promises a slot to a job. Only the resource manager that this task executor is registered at may ask, and only
    /// by the registration that stands: another one counts the slots differently.
    pub(super) fn request_slot(
        &mut self,
        request: &v1::RequestSlotRequest,
        events: &Handle<TeEvent>,
    ) -> Result<v1::RequestSlotReply, RpcError> {
        self.check_running()?;
        let fence = Fence::of(request.fence.as_ref())?;
        let Some(registration) = self.resource_manager.registration() else {
            return Err(RpcError::fencing("this task executor is not registered at a resource manager"));
        };
        let right = fence.epoch == registration.epoch && fence.incarnation == registration.incarnation;
        if !right || request.instance_id != registration.instance.to_wire() {
            return Err(RpcError::fencing(format!(
                "the request is not from the resource manager, or not for the registration, that stands: term {}, \
                 registration {}",
                registration.epoch, registration.instance
            )));
        }
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        let allocation = AllocationId::from_wire(&request.allocation_id, "allocation_id")?;
        let address: Address = request
            .job_master_address
            .parse()
            .map_err(|e| RpcError::application(format!("field `job_master_address`: {e}")))?;
        // A negative index leaves the choice to the table.
        let wanted = u32::try_from(request.index).ok();
        let now = self.now();
        let index = self
            .slots
            .allocate(job, allocation, wanted, now)
            .map_err(|error| RpcError::application(error.to_string()))?;
        tracing::debug!(%job, %allocation, index, "a slot is promised");
        let leader = Leader { address, epoch: Epoch(request.job_master_epoch) };
        self.follow(job, leader, events);
        self.offer_slots(job, events);
        Ok(v1::RequestSlotReply { epoch: 0, index })
    }

    /// A job master gives a slot back. Said again, it changes nothing.
    pub(super) fn free_slot(&mut self, request: &v1::FreeSlotRequest) -> Result<v1::Ack, RpcError> {
        let fence = Fence::of(request.fence.as_ref())?;
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        let allocation = AllocationId::from_wire(&request.allocation_id, "allocation_id")?;
        if let Some(known) = self.jobs.get(&job).filter(|known| known.leader.epoch > fence.epoch) {
            return Err(RpcError::fencing(format!("job {job} is led in term {} by now", known.leader.epoch)));
        }
        if self.owner_of(allocation) == Some(job) {
            self.release(allocation, &format!("its slot was given back: {}", request.cause));
        }
        Ok(Self::ack())
    }

    /// Frees a slot, at once or when its tasks have stopped.
    pub(super) fn release(&mut self, allocation: AllocationId, cause: &str) {
        let now = self.now();
        let (freed, stopping) = self.slots.free(allocation);
        for attempt in stopping {
            if let Some(job) = self.jobs.get_mut(&attempt.job) {
                job.fail_task(&attempt, cause, now);
            }
        }
        if let Some(freed) = freed {
            self.freed(freed);
        }
    }

    /// A slot is nobody's again: the resource manager hears of it.
    pub(super) fn freed(&mut self, freed: Freed) {
        tracing::debug!(job = %freed.job, allocation = %freed.allocation, index = freed.index, "a slot is free");
        self.activated.remove(&freed.allocation);
        self.resource_manager.slot_available(&self.shared.resource_id, freed);
    }

    pub(super) fn expire_slots(&mut self) {
        let now = self.now();
        for freed in self.slots.expire(now) {
            tracing::info!(
                job = %freed.job, allocation = %freed.allocation, timeout = ?self.shared.slot_timeout,
                "nobody has taken a promised slot in time"
            );
            self.freed(freed);
        }
    }

    pub(super) fn owner_of(&self, allocation: AllocationId) -> Option<JobId> {
        self.slots.views().filter_map(|slot| slot.owner).find(|(id, _)| *id == allocation).map(|(_, job)| job)
    }

    /// All slots of the job that are not on their way out.
    pub(super) fn allocations_of(&self, job: JobId) -> Vec<AllocationId> {
        let held = self.slots.views().filter(|slot| slot.state != SlotState::Releasing);
        held.filter_map(|slot| slot.owner).filter(|(_, owner)| *owner == job).map(|(id, _)| id).collect()
    }
}
