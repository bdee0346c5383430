//! The resource manager's state and how each event changes it.
//!
//! It runs on one event loop, so nothing here is locked. What waits (a call to a peer) is spawned and comes back as an
//! event. Whoever is told something that it may lose is told again: slots by the next report, requirements by the next
//! registration.

mod beats;
mod job_masters;
mod task_executors;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use controller_events::{Cx, Fault, Handle, Processor, StopReason, When};
use entrypoint::Placement;
use heartbeat::{HeartbeatManagerSender, HeartbeatServices, Suspends};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use runtime_core::{AllocationId, Clock, Epoch, Incarnation, InstanceId, JobId, ResourceId, Tick};
use tokio::runtime;
use wire::convert::WireId as _;
use wire::fencing::Fence;
use wire::registration::{self, Registered};
use wire::{Address, RpcError, Transport, v1};

use crate::event::RmEvent;
use crate::slot_manager::{Effect, SlotManager};
use job_masters::JobMasterConnection;
use task_executors::TaskExecutorConnection;
pub(crate) use workers::Workers;

/// What a resource manager is made of.
pub(crate) struct Parts {
    pub(crate) resource_id: ResourceId,
    pub(crate) epoch: Epoch,
    pub(crate) incarnation: Incarnation,
    pub(crate) heartbeats: HeartbeatServices,
    /// Whether the machine's sleep can be seen: not where a simulation holds the clock.
    pub(crate) placement: Placement,
    pub(crate) start_up_grace: Duration,
    pub(crate) job_timeout: Duration,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runtime: runtime::Handle,
    /// Where the others reach this process: known once it serves.
    pub(crate) address: Arc<OnceLock<Address>>,
    pub(crate) seed: u64,
    pub(crate) view: Arc<ArcSwap<v1::ClusterDescription>>,
    /// Slots that the task executors may have in all.
    pub(crate) max_slots: Option<u32>,
    /// Where workers are started on demand: their driver, and how many.
    pub(crate) workers: Option<Workers>,
}

/// A resource manager in its term.
pub(crate) struct ResourceManagerProcessor {
    parts: Parts,
    slots: SlotManager,
    task_executors: BTreeMap<ResourceId, TaskExecutorConnection>,
    job_masters: BTreeMap<JobId, JobMasterConnection>,
    task_executor_beats: HeartbeatManagerSender<ResourceId, InstanceId>,
    job_master_beats: HeartbeatManagerSender<JobId, Incarnation>,
    random: SmallRng,
    /// Jobs whose masters were asked to see whether the own network is well.
    probing: BTreeSet<JobId>,
    suspends: Suspends,
    /// Jobs that have just lost their job master, to be looked at again after the job timeout.
    abandoned: Vec<JobId>,
}

impl ResourceManagerProcessor {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut random = SmallRng::seed_from_u64(parts.seed);
        let new = Self {
            slots: SlotManager::new(SmallRng::seed_from_u64(random.random())),
            task_executors: BTreeMap::new(),
            job_masters: BTreeMap::new(),
            task_executor_beats: parts.heartbeats.create_heartbeat_manager_sender("task executor"),
            // Many job masters end with one process; there is nothing to wait for.
            job_master_beats: parts.heartbeats.without_hold().create_heartbeat_manager_sender("job master"),
            random,
            probing: BTreeSet::new(),
            suspends: Suspends::default(),
            abandoned: Vec::new(),
            parts,
        };
        new.describe();
        new
    }

    /// What `/metrics` shows of it beside its loop.
    pub(crate) fn metrics(&self) -> Vec<Arc<dyn runtime_core::metrics::Observe>> {
        let mut metrics: Vec<Arc<dyn runtime_core::metrics::Observe>> =
            vec![self.task_executor_beats.metrics(), self.job_master_beats.metrics()];
        metrics.extend(self.parts.workers.iter().map(Workers::metrics));
        metrics
    }

    fn now(&self) -> Tick {
        self.parts.clock.now()
    }

    fn fence(&self) -> Option<v1::Fence> {
        Some(Fence { epoch: self.parts.epoch, incarnation: self.parts.incarnation }.to_wire())
    }

    fn ack(&self) -> v1::Ack {
        v1::Ack { epoch: self.parts.epoch.0, liveness: None }
    }

    fn registered(&self, instance: Option<InstanceId>) -> v1::RegistrationReply {
        let registered = Registered {
            epoch: self.parts.epoch,
            resource_id: self.parts.resource_id.clone(),
            incarnation: self.parts.incarnation,
            instance_id: instance,
            resumed: false,
        };
        registration::Reply::Success(registered).into()
    }

    /// Carries out what the slot manager wants and arms the timer for what it wants later.
    fn settle_slots(&mut self, events: &Handle<RmEvent>) {
        for effect in self.slots.take_effects() {
            match effect {
                Effect::RequestSlot { task_executor, instance, index, allocation, job, job_master } => {
                    let request = v1::RequestSlotRequest {
                        fence: self.fence(),
                        instance_id: instance.to_wire(),
                        index: i32::try_from(index).unwrap_or(-1),
                        job_id: job.to_wire(),
                        allocation_id: allocation.to_wire(),
                        job_master_address: job_master.address,
                        job_master_epoch: job_master.epoch.0,
                    };
                    self.request_slot(&task_executor, allocation, request, events.clone());
                }
                Effect::FreeInactiveSlots { task_executor, job } => self.free_inactive(&task_executor, job),
                Effect::NotEnoughResources { job, required, acquired } => {
                    tracing::warn!(%job, required, acquired, "the job cannot get the slots that it needs");
                    self.tell_not_enough(job, required, acquired);
                }
            }
        }
        if let Some(at) = self.slots.next_overdue(self.parts.start_up_grace) {
            schedule(events, "overdue", at, RmEvent::Overdue);
        }
    }

    fn request_slot(
        &self,
        task_executor: &ResourceId,
        allocation: AllocationId,
        request: v1::RequestSlotRequest,
        events: Handle<RmEvent>,
    ) {
        let Some(connection) = self.task_executors.get(task_executor) else { return };
        let gateway = Arc::clone(&connection.gateway);
        self.parts.runtime.spawn(async move {
            let result = gateway.request_slot(request).await.map(|_| ());
            // A loop that has ended needs no answer.
            drop(events.put(RmEvent::SlotAnswered(allocation, result)));
        });
    }

    fn slot_answered(&mut self, allocation: AllocationId, result: Result<(), RpcError>) {
        if let Err(error) = &result {
            tracing::info!(%allocation, %error, "a task executor did not give a slot");
        }
        self.slots.slot_requested(allocation, result.is_ok(), self.now());
    }
}

/// Puts a timer that is due at `at`, or sooner where one of that name is due sooner.
fn schedule(events: &Handle<RmEvent>, name: &'static str, at: Tick, event: RmEvent) {
    if events.schedule(Some(name.into()), When::Earliest(at), event).is_err() {
        tracing::debug!(name, "no timer: the loop has ended");
    }
}

impl Processor for ResourceManagerProcessor {
    type Event = RmEvent;

    fn process(&mut self, event: RmEvent, cx: &mut Cx<'_, RmEvent>) -> Result<(), Fault> {
        match event {
            RmEvent::RegisterTaskExecutor(request, reply) => reply.send(self.register_task_executor(request)),
            RmEvent::SlotReport(request, reply) => reply.send(self.slot_report(&request)),
            RmEvent::TaskExecutorStream(hello, reply) => reply.send(self.task_executor_stream(&hello)),
            RmEvent::TaskExecutorSays(id, instance, message) => {
                self.task_executor_says(&id, instance, message)
            }
            RmEvent::TaskExecutorStreamEnded(id, instance, why) => {
                self.probe_task_executor(&id, instance, &why, cx.handle());
            }
            RmEvent::RegisterJobMaster(request, reply) => reply.send(self.register_job_master(request)),
            RmEvent::JobMasterStream(hello, reply) => reply.send(self.job_master_stream(&hello)),
            RmEvent::JobMasterSays(job, incarnation, message) => {
                self.job_master_says(job, incarnation, message)
            }
            RmEvent::JobMasterStreamEnded(job, incarnation, why) => {
                self.probe_job_master(job, incarnation, &why, cx.handle());
            }
            RmEvent::Describe(reply) => reply.send(Ok(self.describe())),
            RmEvent::TaskExecutorBeat(request, reply) => reply.send(self.task_executor_beat(&request)),
            RmEvent::JobMasterBeat(request, reply) => reply.send(self.job_master_beat(&request)),
            RmEvent::TaskExecutorBeatSent(id, instance, end) => {
                self.task_executor_beat_sent(&id, instance, end);
            }
            RmEvent::JobMasterBeatSent(job, incarnation, end) => {
                self.job_master_beat_sent(job, incarnation, end);
            }
            RmEvent::SlotAnswered(allocation, result) => self.slot_answered(allocation, result),
            RmEvent::Beat => self.beat(cx.handle()),
            RmEvent::Overdue => self.slots.tell_overdue(self.now(), self.parts.start_up_grace),
            RmEvent::JobTimeout(job) => self.job_timed_out(job),
            RmEvent::WorkersRecovered(ids) => self.workers_recovered(ids),
            RmEvent::Worker(event) => self.worker_event(event),
            RmEvent::WorkersDue => {}
        }
        // Before the slots: what is stopped is promised to nobody.
        self.settle_workers(cx.handle());
        self.settle_slots(cx.handle());
        self.arm_beats(cx.handle());
        self.arm_job_timeouts(cx.handle());
        Ok(())
    }

    fn on_stop(&mut self, _why: StopReason) {
        self.stop_workers_without_a_job();
        let cause = "the resource manager is stopping";
        self.task_executors.values_mut().for_each(|connection| connection.disconnect(cause));
        self.job_masters.values_mut().for_each(|connection| connection.disconnect(cause));
    }
}
