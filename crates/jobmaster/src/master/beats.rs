//! Heartbeats to the job's task executors, and what follows from silence.

use std::sync::Arc;
use std::time::Duration;

use controller_events::{Handle, When};
use heartbeat::{Effect, RpcOutcome};
use runtime_core::{AttemptId, Clock as _, Incarnation, ResourceId, Tick};
use wire::convert::{WireId as _, resource_id};
use wire::fencing::Fence;
use wire::liveness::BeatEnd;
use wire::{RpcError, v1};

use super::JobMasterProcessor;
use super::event::JmEvent;
use crate::scheduler::Now;

/// Between two calls of a task executor whose stream has ended: far enough apart that a process that is being replaced is
/// not taken for one that refuses each.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Which bound a heartbeat call has apart from the interval.
pub(super) const RPC_TIMEOUT: Duration = Duration::from_secs(10);

impl JobMasterProcessor {
    pub(super) fn beat(&mut self, events: &Handle<JmEvent>, now: Now) {
        for effect in self.beats.advance(now.tick) {
            match effect {
                Effect::Request { id, incarnation } => self.send_beats(&id, incarnation, 1, events),
                Effect::Verdict(verdict) => self.drop_task_executor(&verdict.id, &verdict.to_string(), now),
                Effect::Suspect { ref id, .. } | Effect::Alive { ref id, .. } => {
                    tracing::info!(job = %self.submission.job, of = "task executor", "{effect}");
                    self.scheduler.suspect(id, matches!(effect, Effect::Suspect { .. }), now);
                }
                noted @ (Effect::OwnStall(_) | Effect::CorrelatedLoss { .. }) => {
                    tracing::warn!(job = %self.submission.job, of = "task executor", "{noted}");
                }
            }
        }
        for verdict in self.resource_manager_beats.advance(now.tick).into_iter().filter_map(Effect::verdict) {
            self.drop_resource_manager(&verdict.explain("of this cluster"), events);
        }
    }

    pub(super) fn arm_beats(&self, events: &Handle<JmEvent>) {
        let next = [self.beats.next_wakeup(), self.resource_manager_beats.next_wakeup()];
        if let Some(at) = next.into_iter().flatten().min() {
            drop(events.schedule(Some("beat".into()), When::Earliest(at), JmEvent::Beat));
        }
    }

    /// Asks a task executor `times` times, one after the other, until it answers. Each request carries the slots that
    /// the job has there, so that both can set their views right.
    pub(super) fn send_beats(
        &self,
        id: &ResourceId,
        incarnation: Incarnation,
        times: u32,
        events: &Handle<JmEvent>,
    ) {
        let Some(connection) = self.task_executors.get(id) else { return };
        let gateway = Arc::clone(&connection.gateway);
        let offers = self
            .scheduler
            .pool()
            .on(id)
            .map(|slot| v1::SlotOffer { allocation_id: slot.allocation.to_wire(), index: slot.index });
        let request = v1::HeartbeatFromJobMasterToTaskExecutorRequest {
            fence: self.fence(self.shared.epoch),
            job_id: self.job_bytes(),
            resource_id: self.resource_id.to_string(),
            allocated: offers.collect(),
            asked_at: self.shared.clock.now().as_nanos(),
        };
        let (id, events, clock) = (id.clone(), events.clone(), self.shared.clock.clone());
        let deadline = self.shared.heartbeats.rpc_deadline(RPC_TIMEOUT);
        self.shared.runtime.spawn(async move {
            for time in 0..times {
                if time > 0 {
                    tokio::time::sleep(PROBE_PAUSE).await;
                }
                let call = gateway.heartbeat_from_job_master(request.clone());
                let end = BeatEnd::of(&clock, deadline, call).await;
                let outcome = end.outcome();
                let told = events.put(JmEvent::TaskExecutorBeatSent(id.clone(), incarnation, end));
                // A call that takes too long proves nothing, and neither would another.
                if told.is_err() || outcome != RpcOutcome::Unreachable {
                    return;
                }
            }
        });
    }

    /// The end of a heartbeat call. Its answer comes from beside the task executor's loop: a sign of life that tells how
    /// the loop is. If another life has answered, the one that is registered is gone.
    pub(super) fn task_executor_beat_sent(
        &mut self,
        id: &ResourceId,
        incarnation: Incarnation,
        end: BeatEnd,
        now: Now,
    ) {
        if self.connection(id, incarnation).is_err() {
            return;
        }
        if end.is_of_another_life(incarnation) {
            let cause = format!("task executor {id} is no longer reachable: another life of it has answered");
            self.drop_task_executor(id, &cause, now);
            return;
        }
        if let Some(frame) = end.liveness {
            self.beats.receive_frame(id, &frame, now.tick);
        }
        if let Some(verdict) = self.beats.rpc_outcome(id, &incarnation, end.end, now.tick) {
            self.drop_task_executor(id, &verdict.to_string(), now);
        }
    }

    /// A task executor's answer: it lives, and these are the tasks that it runs for the job.
    pub(super) fn task_executor_beat(
        &mut self,
        request: &v1::HeartbeatToJobMasterRequest,
        now: Now,
    ) -> Result<v1::Ack, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        self.connection(&id, incarnation)?;
        self.beats.receive_heartbeat(&id, &incarnation, now.tick, now.wall);
        let deployed: Result<Vec<_>, _> = request.deployed.iter().map(AttemptId::try_from).collect();
        self.scheduler.reconcile(&id, &deployed?, Tick::from_nanos(request.asked_at), now);
        Ok(self.ack())
    }
}
