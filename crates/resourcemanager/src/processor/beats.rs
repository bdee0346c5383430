//! Heartbeats to task executors and job masters, and what follows from silence.

use std::sync::Arc;
use std::time::Duration;

use controller_events::Handle;
use entrypoint::Placement;
use entrypoint::sleep::boot_clock;
use heartbeat::{Effect, LastHeartbeat, Liveness, RpcOutcome};
use runtime_core::{Clock, Incarnation, InstanceId, JobId, ResourceId, Tick};
use wire::convert::{WireId as _, resource_id};
use wire::fencing::Fence;
use wire::liveness::BeatEnd;
use wire::{JobMasterGateway, RpcError, TaskExecutorGateway, v1};

use super::job_masters::host_of;
use super::task_executors::reported;
use super::{ResourceManagerProcessor, schedule};
use crate::event::RmEvent;

/// Between two calls of a peer whose stream has ended: far enough apart that a process that is being replaced is not taken
/// for one that refuses each.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Of many job masters, mostly of one process, a few tell as much as all.
const MOST_PROBES: usize = 8;

/// Which bound a heartbeat call has apart from the interval.
const RPC_TIMEOUT: Duration = Duration::from_secs(10);

impl ResourceManagerProcessor {
    pub(super) fn beat(&mut self, events: &Handle<RmEvent>) {
        let now = self.now();
        self.note_sleep(now);
        for effect in self.task_executor_beats.advance(now) {
            match effect {
                Effect::Request { id, incarnation } => {
                    let Ok(connection) = self.connection(&id, incarnation) else { continue };
                    let gateway = Arc::clone(&connection.gateway);
                    self.send_task_executor_beats(id, incarnation, gateway, 1, events);
                }
                Effect::Verdict(verdict) => {
                    self.give_up_task_executor(&verdict.id, verdict.incarnation, &verdict.to_string());
                }
                Effect::Suspect { ref id, .. } | Effect::Alive { ref id, .. } => {
                    tracing::info!(of = "task executor", "{effect}");
                    self.slots.set_suspect(id, matches!(effect, Effect::Suspect { .. }), now);
                }
                noted @ Effect::OwnStall(_) => tracing::warn!(of = "task executor", "{noted}"),
                noted @ Effect::CorrelatedLoss { .. } => {
                    tracing::warn!(of = "task executor", "{noted}");
                    self.probe_neutral(events);
                }
            }
        }
        for effect in self.job_master_beats.advance(now) {
            match effect {
                Effect::Request { id, incarnation } => {
                    let Ok(connection) = self.job_master(id, incarnation) else { continue };
                    let gateway = Arc::clone(&connection.gateway);
                    self.send_job_master_beats(id, incarnation, gateway, 1, events);
                }
                Effect::Verdict(verdict) => {
                    self.drop_job_master(verdict.id, verdict.incarnation, &verdict.to_string());
                }
                noted => tracing::info!(of = "job master", "{noted}"),
            }
        }
    }

    /// A machine that slept is nobody's silence, for the clock that judges stood still too; but whoever reads the log should know.
    fn note_sleep(&mut self, now: Tick) {
        if self.parts.placement == Placement::Threads
            && let Some(length) = self.suspends.turn(now, boot_clock())
        {
            tracing::warn!("this machine slept for {:.1} s", length.as_secs_f64());
        }
    }

    /// Asks the job masters while verdicts on task executors wait for the own network to be well: one of another machine that
    /// answers shows that it is.
    fn probe_neutral(&mut self, events: &Handle<RmEvent>) {
        let own = self.parts.address.get().map(|address| host_of(address.host_port()));
        let elsewhere =
            self.job_masters.iter().filter(|(_, master)| own.is_some_and(|own| own != master.host()));
        let probes: Vec<_> = elsewhere
            .map(|(job, master)| (*job, master.incarnation, Arc::clone(&master.gateway)))
            .take(MOST_PROBES)
            .collect();
        for (job, incarnation, gateway) in probes {
            self.probing.insert(job);
            self.send_job_master_beats(job, incarnation, gateway, 1, events);
        }
    }

    pub(super) fn arm_beats(&mut self, events: &Handle<RmEvent>) {
        let next = [self.task_executor_beats.next_wakeup(), self.job_master_beats.next_wakeup()];
        if let Some(at) = next.into_iter().flatten().min() {
            schedule(events, "beat", at, RmEvent::Beat);
        }
    }

    pub(super) fn send_task_executor_beats(
        &self,
        id: ResourceId,
        instance: InstanceId,
        gateway: Arc<dyn TaskExecutorGateway>,
        times: u32,
        events: &Handle<RmEvent>,
    ) {
        let request = v1::HeartbeatToTaskExecutorRequest {
            fence: self.fence(),
            resource_id: self.parts.resource_id.to_string(),
            instance_id: instance.to_wire(),
        };
        let call = move || {
            let (gateway, request) = (Arc::clone(&gateway), request.clone());
            async move { gateway.heartbeat_from_resource_manager(request).await }
        };
        let events = events.clone();
        let told = move |end| events.put(RmEvent::TaskExecutorBeatSent(id.clone(), instance, end)).is_ok();
        let deadline = self.parts.heartbeats.rpc_deadline(RPC_TIMEOUT);
        self.parts.runtime.spawn(send(call, times, Arc::clone(&self.parts.clock), deadline, told));
    }

    pub(super) fn send_job_master_beats(
        &self,
        job: JobId,
        incarnation: Incarnation,
        gateway: Arc<dyn JobMasterGateway>,
        times: u32,
        events: &Handle<RmEvent>,
    ) {
        let request = v1::HeartbeatFromResourceManagerRequest {
            fence: self.fence(),
            job_id: job.to_wire(),
            resource_id: self.parts.resource_id.to_string(),
        };
        let call = move || {
            let (gateway, request) = (Arc::clone(&gateway), request.clone());
            async move { gateway.heartbeat_from_resource_manager(request).await }
        };
        let events = events.clone();
        let told = move |end| events.put(RmEvent::JobMasterBeatSent(job, incarnation, end)).is_ok();
        let deadline = self.parts.heartbeats.rpc_deadline(RPC_TIMEOUT);
        self.parts.runtime.spawn(send(call, times, Arc::clone(&self.parts.clock), deadline, told));
    }

    /// The end of a heartbeat call. Its answer comes from beside the task executor's loop: a sign of life that tells how
    /// the loop is. If another life has answered, the one that is registered is gone.
    pub(super) fn task_executor_beat_sent(&mut self, id: &ResourceId, instance: InstanceId, end: BeatEnd) {
        let now = self.now();
        let Ok(connection) = self.connection(id, instance) else { return };
        if end.is_of_another_life(connection.incarnation) {
            let cause = format!("task executor {id} is no longer reachable: another life of it has answered");
            self.drop_task_executor(id, instance, &cause);
            return;
        }
        if let Some(frame) = end.liveness {
            if !frame.stall.is_zero() {
                tracing::info!(task_executor = %id, "it says that it stood still for {:.1} s", frame.stall.as_secs_f64());
            }
            self.task_executor_beats.receive_frame(id, &frame.with_incarnation(instance), now);
        }
        if let Some(verdict) = self.task_executor_beats.rpc_outcome(id, &instance, end.end, now) {
            self.give_up_task_executor(id, instance, &verdict.to_string());
        }
    }

    pub(super) fn job_master_beat_sent(&mut self, job: JobId, incarnation: Incarnation, end: BeatEnd) {
        let now = self.now();
        if self.probing.remove(&job) {
            self.task_executor_beats.probed(end.outcome() == RpcOutcome::Delivered, now);
        }
        if end.is_of_another_life(incarnation) {
            let cause =
                format!("the job master of {job} is no longer reachable: another life of it has answered");
            self.drop_job_master(job, incarnation, &cause);
            return;
        }
        if let Some(frame) = end.liveness {
            self.job_master_beats.receive_frame(&job, &frame, now);
        }
        if let Some(verdict) = self.job_master_beats.rpc_outcome(&job, &incarnation, end.end, now) {
            self.drop_job_master(job, incarnation, &verdict.to_string());
        }
    }

    pub(super) fn task_executor_beat(
        &mut self,
        request: &v1::HeartbeatFromTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        let instance = InstanceId::from_wire(&request.instance_id, "instance_id")?;
        let report = reported(request.report.as_ref())?;
        let (now, wall) = (self.now(), self.parts.clock.wall());
        self.connection(&id, instance)?;
        self.task_executor_beats.receive_heartbeat(&id, &instance, now, wall);
        self.slots.report(&id, instance, &report, now);
        Ok(self.ack())
    }

    pub(super) fn job_master_beat(
        &mut self,
        request: &v1::HeartbeatFromJobMasterRequest,
    ) -> Result<v1::Ack, RpcError> {
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let (now, wall) = (self.now(), self.parts.clock.wall());
        self.job_master(job, incarnation)?;
        self.job_master_beats.receive_heartbeat(&job, &incarnation, now, wall);
        Ok(self.ack())
    }
}

/// Calls `times` times, one after the other, and tells what became of each call, until nobody listens.
async fn send<F: Future<Output = Result<v1::Ack, RpcError>>>(
    call: impl Fn() -> F,
    times: u32,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    told: impl Fn(BeatEnd) -> bool,
) {
    for time in 0..times {
        if time > 0 {
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        let end = BeatEnd::of(&clock, deadline, call()).await;
        let outcome = end.outcome();
        // A call that takes too long proves nothing, and neither would another.
        if !told(end) || outcome != RpcOutcome::Unreachable {
            return;
        }
    }
}

/// The wall clock of the last heartbeat in milliseconds; 0 before the first.
pub(super) fn shown(last: LastHeartbeat) -> i64 {
    match last {
        LastHeartbeat::At(wall) => wall.0,
        _ => 0,
    }
}

pub(super) fn age_ms(liveness: Option<&Liveness>) -> u64 {
    liveness.map_or(0, |l| u64::try_from(l.silent_for.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn main_loop_age_ms(liveness: Option<&Liveness>) -> u64 {
    let age = liveness.and_then(|l| l.main_loop_age).unwrap_or_default();
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}
