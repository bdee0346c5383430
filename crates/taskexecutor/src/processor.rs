//! The task executor's state and how each event changes it.
//!
//! It runs on one event loop, so nothing here is locked. What waits (a call to a peer, a link) runs on the I/O runtime
//! and comes back as an event; tasks run on threads of their own and tell what becomes of them the same way.
//!
//! A task executor decides nothing about jobs. It holds slots for them, runs what it is sent, and says what it has: to
//! the resource manager its slots, to each job master the slots and tasks of that job and no other's.

mod beats;
mod cancellation;
mod checkpoints;
mod job;
mod job_masters;
mod offers;
mod resource_manager;
mod slots;
mod stop;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use controller_events::{Cx, Fault, FaultAction, Handle, Processor, StopReason, When};
use heartbeat::{HeartbeatManager, Suspends};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use runtime_core::metrics::Observe;
use runtime_core::{AllocationId, AttemptId, Clock, Incarnation, InstanceId, JobId, Tick};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wire::v1;

use crate::event::{Life, TeEvent};
use crate::prepare::Plans;
use crate::shared::Shared;
use crate::slots::SlotTable;
use crate::task_metrics::TaskMetrics;
pub(crate) use cancellation::Patience;
use job::Job;
use resource_manager::ResourceManagerLink;
use stop::Stopping;

/// What a task executor cannot go on after.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// The resource manager wants no part of it (FLINK-21606).
    #[error("the resource manager at {address} has rejected this task executor: {reason}")]
    Rejected {
        /// The resource manager.
        address: String,
        /// Its words.
        reason: String,
    },
    /// No resource manager was found for too long.
    #[error(
        "no registration at the resource manager at {address} within {waited:?}: is resourcemanager.address right? \
         (taskexecutor.registration.timeout)"
    )]
    NotRegistered {
        /// Where it was looked for.
        address: String,
        /// For how long.
        waited: std::time::Duration,
    },
    /// A task that was told to stop does not (FLINK-4715).
    #[error(
        "task {task} ({attempt}) has not stopped within {waited:?} after it was told to: something holds its thread, such as a \
         call that blocks; this process ends, so that all that it runs goes on elsewhere (task.cancellation.timeout)"
    )]
    TaskStuck {
        /// The task.
        task: String,
        /// Which run of it.
        attempt: AttemptId,
        /// How long it was waited for.
        waited: std::time::Duration,
    },
    /// The loop has ended by a fault; the log says which.
    #[error("the task executor's event loop has died; the log says of what")]
    LoopDied,
}

/// What whoever started the task executor is told.
pub(crate) struct Notices {
    /// It is registered for the first time.
    pub(crate) registered: Option<oneshot::Sender<()>>,
    /// It cannot go on.
    pub(crate) fatal: Option<oneshot::Sender<Fatal>>,
}

/// A task executor in its life.
pub(crate) struct TaskExecutorProcessor {
    shared: Arc<Shared>,
    plans: Arc<Plans>,
    task_metrics: Arc<TaskMetrics>,
    notices: Notices,
    slots: SlotTable,
    /// When the job took its slot: a heartbeat that was sent before does not know of it yet.
    activated: BTreeMap<AllocationId, Tick>,
    resource_manager: ResourceManagerLink,
    jobs: BTreeMap<JobId, Job>,
    resource_manager_beats: HeartbeatManager<(), InstanceId>,
    job_master_beats: HeartbeatManager<JobId, Incarnation>,
    suspends: Suspends,
    random: SmallRng,
    lives: Life,
    /// Links that say good-bye; the next link to the same peer waits for them.
    leaving: BTreeMap<JobId, JoinHandle<()>>,
    stopping: Stopping,
}

impl TaskExecutorProcessor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        plans: Arc<Plans>,
        task_metrics: Arc<TaskMetrics>,
        notices: Notices,
        seed: u64,
    ) -> Self {
        let gateway = shared.transport.connect_resource_manager(&shared.resource_manager);
        Self {
            slots: SlotTable::new(shared.slots, shared.slot_timeout),
            activated: BTreeMap::new(),
            resource_manager: ResourceManagerLink::new(gateway),
            jobs: BTreeMap::new(),
            resource_manager_beats: shared.heartbeats.create_heartbeat_manager("resource manager"),
            job_master_beats: shared.heartbeats.create_heartbeat_manager("job master"),
            suspends: Suspends::default(),
            random: SmallRng::seed_from_u64(seed),
            lives: 0,
            leaving: BTreeMap::new(),
            stopping: Stopping::default(),
            shared,
            plans,
            task_metrics,
            notices,
        }
    }

    /// What `/metrics` shows of it beside its loop.
    pub(crate) fn metrics(&self) -> Vec<Arc<dyn Observe>> {
        vec![
            self.resource_manager_beats.metrics(),
            self.job_master_beats.metrics(),
            Arc::clone(&self.task_metrics) as Arc<dyn Observe>,
        ]
    }

    fn now(&self) -> Tick {
        self.shared.clock.now()
    }

    fn next_life(&mut self) -> (Life, u64) {
        self.lives += 1;
        (self.lives, self.random.random())
    }

    /// A task executor is not led: its answers name no term.
    const fn ack() -> v1::Ack {
        v1::Ack { epoch: 0, liveness: None }
    }

    fn fatal(&mut self, fatal: Fatal) {
        tracing::debug!("{fatal}");
        if let Some(notice) = self.notices.fatal.take() {
            // Whoever embeds a task executor need not listen.
            let _ = notice.send(fatal);
        }
    }

    fn handle(&mut self, event: TeEvent, events: &Handle<TeEvent>) {
        match event {
            TeEvent::Begin => self.connect_resource_manager(events),
            TeEvent::RequestSlot(request, reply) => reply.send(self.request_slot(&request, events)),
            TeEvent::FreeSlot(request, reply) => reply.send(self.free_slot(&request)),
            TeEvent::Submit(prepared, reply) => reply.send(self.submit_task(*prepared, events)),
            TeEvent::CancelTask(request, reply) => reply.send(self.cancel_task(&request)),
            TeEvent::TriggerCheckpoint(request, reply) => reply.send(self.trigger_checkpoint(&request)),
            TeEvent::ResourceManagerRegistered(life, registered, reply) => {
                self.resource_manager_registered(life, &registered, reply);
            }
            TeEvent::ResourceManagerConnected(life, outbound) => {
                self.resource_manager_connected(life, outbound)
            }
            TeEvent::ResourceManagerSays(life, message) => self.resource_manager_says(life, message, events),
            TeEvent::ResourceManagerLost(life, why) => self.resource_manager_lost(life, &why),
            TeEvent::ResourceManagerRejected(life, reason) => self.resource_manager_rejected(life, reason),
            TeEvent::ResourceManagerBeat(request, reply) => {
                reply.send(self.resource_manager_beat(&request, events));
            }
            TeEvent::ResourceManagerBeatAnswered(instance, end) => {
                self.resource_manager_beat_answered(instance, end, events);
            }
            TeEvent::RegistrationClock => self.registration_clock(),
            TeEvent::JobMasterConnected(job, life, registered, outbound) => {
                self.job_master_connected(job, life, &registered, outbound, events);
            }
            TeEvent::JobMasterSays(job, life, message) => self.job_master_says(job, life, message, events),
            TeEvent::JobMasterLost(job, life, why) => self.job_master_stream_ended(job, life, &why),
            TeEvent::JobMasterRejected(job, life, reason) => self.job_master_rejected(job, life, &reason),
            TeEvent::JobMasterAsked(job, life, error) => self.job_master_asked(job, life, error),
            TeEvent::JobMasterBeat(request, reply) => reply.send(self.job_master_beat(&request, events)),
            TeEvent::JobMasterBeatAnswered(job, incarnation, end, sent) => {
                self.job_master_beat_answered(job, incarnation, end, sent, events);
            }
            TeEvent::Fence => self.fence(events),
            TeEvent::Offered(job, life, number, offered, result) => {
                self.offered(job, life, number, &offered, result, events);
            }
            TeEvent::OfferAgain(job) => self.offer_slots(job, events),
            TeEvent::Task(event) => self.task_event(event),
            TeEvent::Checkpoint(answer) => self.checkpoint_answer(answer),
            TeEvent::Beat => self.beat(events),
            TeEvent::SlotTimeout => self.expire_slots(),
            TeEvent::Cancellation => self.look_at_cancelled_tasks(),
            TeEvent::Figures => self.send_figures(),
            TeEvent::Stop(cause, reply) => self.stop(&cause, reply),
        }
    }

    /// Arms the timers for what is due next.
    fn arm(&self, events: &Handle<TeEvent>) {
        let beats = [self.resource_manager_beats.next_wakeup(), self.job_master_beats.next_wakeup()];
        schedule(events, "beat", beats.into_iter().flatten().min(), || TeEvent::Beat);
        let leases = self.jobs.values().filter_map(Job::lease_ends).min();
        schedule(events, "fence", leases, || TeEvent::Fence);
        schedule(events, "slot-timeout", self.slots.next_deadline(), || TeEvent::SlotTimeout);
        schedule(events, "cancellation", self.cancellation_due(), || TeEvent::Cancellation);
        schedule(events, "registration-clock", self.resource_manager.clock(), || TeEvent::RegistrationClock);
        let running = self.jobs.values().any(Job::has_running_tasks);
        let figures = running.then(|| self.now() + tasks::FIGURES_INTERVAL);
        schedule(events, "figures", figures, || TeEvent::Figures);
    }
}

/// Puts a timer that is due at `at`, or sooner where one of that name is due sooner.
fn schedule(events: &Handle<TeEvent>, name: &'static str, at: Option<Tick>, event: impl FnOnce() -> TeEvent) {
    if let Some(at) = at
        && events.schedule(Some(name.into()), When::Earliest(at), event()).is_err()
    {
        tracing::debug!(name, "no timer: the loop has ended");
    }
}

impl Processor for TaskExecutorProcessor {
    type Event = TeEvent;

    fn process(&mut self, event: TeEvent, cx: &mut Cx<'_, TeEvent>) -> Result<(), Fault> {
        self.handle(event, cx.handle());
        self.drop_finished_jobs();
        self.arm(cx.handle());
        self.answer_stop();
        Ok(())
    }

    fn after_each(&mut self) {
        self.shared.liveness.turned(self.now());
        let free = self.slots.views().filter(|slot| slot.owner.is_none()).count();
        self.task_metrics.free_slots.set(i64::try_from(free).unwrap_or(i64::MAX));
        self.task_metrics.slots.set(self.slots.count().into());
    }

    /// Half a change of the slot table would be told to everybody as the truth: the process starts again instead, and
    /// its jobs are failed over.
    fn on_fault(&mut self, _fault: &Fault) -> FaultAction {
        FaultAction::Stop
    }

    fn on_stop(&mut self, why: StopReason) {
        self.say_goodbye("the task executor is stopping");
        self.cancel_all_tasks();
        if why == StopReason::Died {
            self.fatal(Fatal::LoopDied);
        }
    }
}
