//! Heartbeats: asked by the resource manager and by job masters, answered by a call back.

use std::sync::Arc;
use std::time::Duration;

use controller_events::Handle;
use heartbeat::{Effect, RpcOutcome};
use runtime_core::{AllocationId, Clock, Incarnation, InstanceId, JobId, Tick};
use wire::convert::WireId;
use wire::fencing::Fence;
use wire::liveness::BeatEnd;
use wire::v1::task_executor_to_job_master::Message;
use wire::{RpcError, v1};

use super::TaskExecutorProcessor;
use super::job::Established;
use crate::event::TeEvent;

/// Which bound a heartbeat call has apart from the interval.
const RPC_TIMEOUT: Duration = Duration::from_secs(10);
/// A slot that was taken this recently may be missing from a heartbeat that was sent just before.
const SETTLED: Duration = Duration::from_secs(1);

impl TaskExecutorProcessor {
    /// The resource manager asks for a sign of life, and gets it with the state of the slots. Who is not known is not
    /// answered, as in Flink.
    pub(super) fn resource_manager_beat(
        &mut self,
        request: &v1::HeartbeatToTaskExecutorRequest,
        events: &Handle<TeEvent>,
    ) -> Result<v1::Ack, RpcError> {
        let fence = Fence::of(request.fence.as_ref())?;
        let known = self.resource_manager.registration().filter(|known| {
            fence.incarnation == known.incarnation && request.instance_id == known.instance.to_wire()
        });
        let Some(known) = known else { return Ok(Self::ack()) };
        let (now, wall) = (self.now(), self.shared.clock.wall());
        self.resource_manager_beats.receive_heartbeat(&(), &known.instance, now, wall);
        let answer = v1::HeartbeatFromTaskExecutorRequest {
            fence: self.shared.fence(known.epoch),
            resource_id: self.shared.resource_id.to_string(),
            instance_id: known.instance.to_wire(),
            report: Some(self.slot_report()),
        };
        let gateway = Arc::clone(&self.resource_manager.gateway);
        let call = async move { gateway.heartbeat_from_task_executor(answer).await };
        self.answer(call, events, move |end| TeEvent::ResourceManagerBeatAnswered(known.instance, end));
        Ok(Self::ack())
    }

    pub(super) fn resource_manager_beat_answered(
        &mut self,
        instance: InstanceId,
        end: BeatEnd,
        events: &Handle<TeEvent>,
    ) {
        let now = self.now();
        if let Some(verdict) = self.resource_manager_beats.rpc_outcome(&(), &instance, end.end, now) {
            self.drop_resource_manager(&verdict.explain("of this cluster"), events);
        }
    }

    /// A job master asks for a sign of life and says which slots it has here; the answer says which tasks it has. Both
    /// set their views right.
    pub(super) fn job_master_beat(
        &mut self,
        request: &v1::HeartbeatFromJobMasterToTaskExecutorRequest,
        events: &Handle<TeEvent>,
    ) -> Result<v1::Ack, RpcError> {
        let fence = Fence::of(request.fence.as_ref())?;
        let job_id = JobId::from_wire(&request.job_id, "job_id")?;
        let held =
            request.allocated.iter().map(|slot| AllocationId::from_wire(&slot.allocation_id, "allocated"));
        let held: Vec<AllocationId> = held.collect::<Result<_, _>>()?;
        let Some(job) = self.jobs.get(&job_id) else {
            return Err(RpcError::unknown_target(format!("nothing of job {job_id} is here")));
        };
        let sender = Established { epoch: fence.epoch, incarnation: fence.incarnation };
        if job.established != Some(sender) {
            return Ok(Self::ack());
        }
        let (now, wall) = (self.now(), self.shared.clock.wall());
        self.job_master_beats.receive_heartbeat(&job_id, &sender.incarnation, now, wall);
        self.reconcile(job_id, &held, now);
        let Some(job) = self.jobs.get(&job_id) else { return Ok(Self::ack()) };
        let answer = v1::HeartbeatToJobMasterRequest {
            fence: self.shared.fence(sender.epoch),
            job_id: job_id.to_wire(),
            resource_id: self.shared.resource_id.to_string(),
            deployed: job.tasks.keys().map(Into::into).collect(),
            asked_at: request.asked_at,
        };
        let gateway = Arc::clone(&job.gateway);
        let call = async move { gateway.heartbeat_from_task_executor(answer).await };
        self.answer(call, events, move |end| {
            TeEvent::JobMasterBeatAnswered(job_id, sender.incarnation, end, now)
        });
        Ok(Self::ack())
    }

    fn reconcile(&mut self, job_id: JobId, held: &[AllocationId], now: Tick) {
        let differences = self.slots.reconcile(job_id, held);
        for allocation in differences.free_here {
            let settled = self.activated.get(&allocation).is_none_or(|since| now.since(*since) >= SETTLED);
            if settled {
                tracing::info!(job = %job_id, %allocation, "the job master does not know of a slot; it is freed");
                self.release(allocation, "the job master does not know of its slot");
            }
        }
        let Some(job) = self.jobs.get_mut(&job_id).filter(|job| job.is_connected()) else { return };
        for allocation in differences.fail_there {
            let cause = format!("task executor {} has no such slot", self.shared.resource_id);
            job.say(Message::FailSlot(v1::FailSlot { allocation_id: allocation.to_wire(), cause }));
        }
    }

    pub(super) fn job_master_beat_answered(
        &mut self,
        job_id: JobId,
        incarnation: Incarnation,
        end: BeatEnd,
        sent: Tick,
        events: &Handle<TeEvent>,
    ) {
        let now = self.now();
        if end.outcome() == RpcOutcome::Delivered
            && let Some(job) = self.jobs.get_mut(&job_id)
            && job.established.is_some_and(|known| known.incarnation == incarnation)
            && let Some(fence) = &mut job.fence
        {
            // Its loop has taken the answer, so its timeout runs from there or later.
            fence.renew(sent);
        }
        if let Some(verdict) = self.job_master_beats.rpc_outcome(&job_id, &incarnation, end.end, now) {
            self.drop_job_master(job_id, &verdict.to_string(), events);
        }
    }

    /// Those who have been silent for too long are lost.
    pub(super) fn beat(&mut self, events: &Handle<TeEvent>) {
        self.note_sleep(events);
        let now = self.now();
        for effect in self.resource_manager_beats.advance(now) {
            match effect {
                Effect::Verdict(verdict) => {
                    self.drop_resource_manager(&verdict.explain("of this cluster"), events);
                }
                // The other manager's loop is the same, and it says so below unless it has nobody to watch.
                Effect::OwnStall(length) if self.jobs.is_empty() => self.own_stall(length),
                other => tracing::debug!(of = "resource manager", "{other:?}"),
            }
        }
        for effect in self.job_master_beats.advance(now) {
            match effect {
                Effect::Verdict(verdict) => self.drop_job_master(verdict.id, &verdict.to_string(), events),
                Effect::OwnStall(length) => self.own_stall(length),
                other => tracing::info!(of = "job master", "{other}"),
            }
        }
    }

    fn own_stall(&self, length: Duration) {
        let seconds = length.as_secs_f64();
        tracing::warn!("this process stood still for {seconds:.1} s, which counts as nobody's silence");
        self.shared.liveness.stood_still(length);
    }

    fn answer(
        &self,
        call: impl Future<Output = Result<v1::Ack, RpcError>> + Send + 'static,
        events: &Handle<TeEvent>,
        told: impl FnOnce(BeatEnd) -> TeEvent + Send + 'static,
    ) {
        let deadline = self.shared.heartbeats.rpc_deadline(RPC_TIMEOUT);
        let (events, clock) = (events.clone(), self.shared.clock.clone());
        self.shared.runtime.spawn(async move {
            let end = BeatEnd::of(&clock, deadline, call).await;
            if events.put(told(end)).is_err() {
                tracing::debug!("a heartbeat was answered after the loop had ended");
            }
        });
    }
}
