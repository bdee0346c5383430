//! The master of one job (Flink: `JobMaster`): its state on one event loop, its links to the others.
//!
//! What decides is [`Scheduler`](crate::scheduler::Scheduler). Here its effects are carried out: calls are spawned and
//! come back as events, files are prepared and committed on threads that may block.

mod beats;
mod checkpoints;
mod effects;
pub(crate) mod event;
mod metrics;
mod resource_manager;
pub(crate) mod savepoints;
mod task_executors;
pub(crate) mod view;

pub(crate) use task_executors::rejection;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use checkpoint::Stores;
use controller_events::{Cx, Fault, Handle, Processor, Reply, StopReason};
use entrypoint::Placement;
use heartbeat::{
    HeartbeatManager, HeartbeatManagerSender, HeartbeatMetrics, HeartbeatServices, LivenessSource,
};
use job::graph::JobGraph;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use runtime_core::metrics::Observe;
use runtime_core::time::TokioClock;
use runtime_core::{Clock, Epoch, EpochMillis, Incarnation, JobId, ResourceId};
use tokio::runtime;
use tokio::sync::mpsc::UnboundedSender;
use wire::convert::WireId as _;
use wire::fencing::Fence;
use wire::{Address, Transport, v1};

use crate::checkpoint::coordinator::{Done, Request};
use crate::job_store::{JobFolder, Left, Progress, ProgressRecorder, StoredSavepoint, StoredSubmission};
use crate::scheduler::{Now, Scheduler};
use event::{JmEvent, JmState};
use metrics::JobMetrics;
use resource_manager::ResourceManagerLink;
use task_executors::TaskExecutorConnection;
use view::JobView;

/// What all jobs of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) epoch: Epoch,
    pub(crate) incarnation: Incarnation,
    /// Where task executors reach this process.
    pub(crate) rpc_address: Address,
    pub(crate) resource_manager: Address,
    pub(crate) heartbeats: HeartbeatServices,
    /// The jobs of a process count their heartbeats together.
    pub(crate) beats_of_task_executors: Arc<HeartbeatMetrics>,
    pub(crate) beats_of_resource_manager: Arc<HeartbeatMetrics>,
    pub(crate) slot_request_timeout: Duration,
    pub(crate) slot_idle_timeout: Duration,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) metrics: entrypoint::MetricSources,
    /// Where checkpoints are kept.
    pub(crate) stores: Arc<dyn Stores>,
    pub(crate) clock: TokioClock,
    pub(crate) runtime: runtime::Handle,
    pub(crate) placement: Placement,
}

/// A job as it was submitted.
#[derive(Clone)]
pub(crate) struct Submission {
    pub(crate) job: JobId,
    /// The checked job file as JSON, as it travels to task executors.
    pub(crate) file: Bytes,
    pub(crate) graph: Arc<JobGraph>,
    pub(crate) seed: u64,
    pub(crate) submitted_at: EpochMillis,
    /// Where the job is remembered.
    pub(crate) folder: Arc<JobFolder>,
    /// What it begins with.
    pub(crate) savepoint: Option<StoredSavepoint>,
}

impl Submission {
    pub(crate) fn new(
        job: JobId,
        stored: &StoredSubmission,
        graph: Arc<JobGraph>,
        folder: Arc<JobFolder>,
    ) -> Self {
        let file = Bytes::from(stored.file.clone());
        let (seed, submitted_at) = (stored.seed, stored.submitted_at());
        Self { job, file, graph, seed, submitted_at, folder, savepoint: stored.savepoint.as_deref().cloned() }
    }
}

/// The state of a job's master.
pub(crate) struct JobMasterProcessor {
    shared: Shared,
    submission: Submission,
    resource_id: ResourceId,
    scheduler: Scheduler,
    task_executors: BTreeMap<ResourceId, TaskExecutorConnection>,
    beats: HeartbeatManagerSender<ResourceId, Incarnation>,
    resource_manager: ResourceManagerLink,
    resource_manager_beats: HeartbeatManager<(), Incarnation>,
    random: SmallRng,
    view: Arc<ArcSwap<JobView>>,
    /// Told that this loop turns.
    liveness: Arc<LivenessSource<Incarnation>>,
    dirty: bool,
    /// Shown at `/metrics` as long as the job is led here.
    _metrics: Arc<dyn Observe>,
    recorder: ProgressRecorder,
    /// Told once, when the job is over.
    ended: Option<UnboundedSender<JobId>>,
    /// Who waits for a checkpoint or a savepoint.
    requests: BTreeMap<u64, Reply<Result<Done, String>>>,
    last_request: u64,
}

impl JobMasterProcessor {
    /// A job that begins, or goes on with what an earlier life has left; and how it is shown.
    pub(crate) fn new(
        shared: Shared,
        submission: Submission,
        left: Option<Left>,
        liveness: Arc<LivenessSource<Incarnation>>,
        ended: UnboundedSender<JobId>,
    ) -> Result<(Self, Arc<ArcSwap<JobView>>), runtime_core::ParseIdError> {
        let mut random = SmallRng::seed_from_u64(submission.seed);
        let now = Now { tick: shared.clock.now(), wall: shared.clock.wall(), jitter: 0.0 };
        let (job, epoch) = (submission.job, shared.epoch);
        let (graph, timeout) = (Arc::clone(&submission.graph), shared.slot_request_timeout);
        let known = left.as_ref().map(|left| left.progress.clone()).unwrap_or_default();
        let scheduler = match left {
            None => Scheduler::new(job, epoch, graph, timeout, Now { wall: submission.submitted_at, ..now }),
            Some(left) => Scheduler::recover(job, epoch, graph, timeout, left.into(), now),
        };
        let view = Arc::new(ArcSwap::from_pointee(JobView::of(&submission, &scheduler, now.wall)));
        let metrics: Arc<dyn Observe> = Arc::new(JobMetrics(Arc::clone(&view)));
        shared.metrics.add_while_alive(Arc::downgrade(&metrics));
        let processor = Self {
            resource_id: format!("jobmaster-{job}").parse()?,
            scheduler,
            task_executors: BTreeMap::new(),
            beats: shared
                .heartbeats
                .counted_by(&shared.beats_of_task_executors)
                .create_heartbeat_manager_sender(),
            resource_manager: ResourceManagerLink::new(random.random()),
            resource_manager_beats: shared
                .heartbeats
                .counted_by(&shared.beats_of_resource_manager)
                .create_heartbeat_manager(),
            random,
            view: Arc::clone(&view),
            liveness,
            dirty: true,
            _metrics: metrics,
            recorder: ProgressRecorder::new(Arc::clone(&submission.folder), known),
            ended: Some(ended),
            requests: BTreeMap::new(),
            last_request: 0,
            submission,
            shared,
        };
        Ok((processor, view))
    }

    fn now(&mut self) -> Now {
        let jitter = self.random.random_range(-1.0..=1.0);
        Now { tick: self.shared.clock.now(), wall: self.shared.clock.wall(), jitter }
    }

    /// Said by this job master, for a receiver of this term (task executors: for themselves, with ours).
    fn fence(&self, epoch: Epoch) -> Option<v1::Fence> {
        Some(Fence { epoch, incarnation: self.shared.incarnation }.to_wire())
    }

    fn job_bytes(&self) -> Bytes {
        self.submission.job.to_wire()
    }

    /// The job that first read the records.
    fn origin_bytes(&self) -> Bytes {
        let origin = self.submission.savepoint.as_ref().and_then(|from| from.origin.parse::<JobId>().ok());
        origin.unwrap_or(self.submission.job).to_wire()
    }

    fn ack(&self) -> v1::Ack {
        v1::Ack { epoch: self.shared.epoch.0, liveness: None }
    }

    fn publish(&mut self) {
        let view = JobView::of(&self.submission, &self.scheduler, self.shared.clock.wall());
        self.record(&view);
        self.view.store(Arc::new(view));
        self.dirty = false;
    }

    /// Stores what has changed of the job's progress. One that is over has its result stored instead.
    fn record(&mut self, view: &JobView) {
        if view.status.is_terminal() {
            return;
        }
        let Some(folder) = self.recorder.note(Progress::of(view), self.shared.clock.now()) else { return };
        let job = self.submission.job;
        self.shared.placement.block(&self.shared.runtime, move || {
            if let Err(error) = folder.write_progress() {
                tracing::warn!(%job, %error, "the job's counts could not be stored; the next change tries again");
            }
        });
    }

    /// Tells everybody that the job is over here, and the dispatcher last.
    fn end(&mut self) {
        let cause = format!("the job is {}", self.scheduler.status().as_str());
        self.resource_manager.say_goodbye(true, &cause);
        for (_, mut connection) in std::mem::take(&mut self.task_executors) {
            connection.disconnect(&cause);
        }
        self.beats.stop();
        self.resource_manager_beats.stop();
        self.publish();
        if let Some(ended) = self.ended.take()
            && ended.send(self.submission.job).is_err()
        {
            tracing::debug!(job = %self.submission.job, "the job has ended after its dispatcher");
        }
    }
}

impl Processor for JobMasterProcessor {
    type Event = JmEvent;

    fn process(&mut self, event: JmEvent, cx: &mut Cx<'_, JmEvent>) -> Result<(), Fault> {
        let events: Handle<JmEvent> = cx.handle().clone();
        let now = self.now();
        self.liveness.turned(now.tick);
        // Figures come often and are shown once a second; everything else is shown at once.
        let figures_only = matches!(
            &event,
            JmEvent::TaskExecutorSays(_, _, said)
                if matches!(said.message, Some(v1::task_executor_to_job_master::Message::Figures(_)))
        );
        let heartbeat = controller_events::Event::state(&event) == JmState::Heartbeat;
        match event {
            JmEvent::Begin => self.connect_resource_manager(&events),
            JmEvent::RegisterTaskExecutor(request, reply) => {
                reply.send(self.register_task_executor(&request, now))
            }
            JmEvent::OfferSlots(request, reply) => reply.send(self.offer_slots(&request, now)),
            JmEvent::NextSplit(request, reply) => reply.send(self.next_split(&request)),
            JmEvent::TaskExecutorStream(hello, reply) => reply.send(self.task_executor_stream(&hello)),
            JmEvent::TaskExecutorSays(id, incarnation, message) => {
                self.task_executor_says(&id, incarnation, *message, now);
            }
            JmEvent::TaskExecutorStreamEnded(id, incarnation, why) => {
                self.probe_task_executor(&id, incarnation, &why, &events);
            }
            JmEvent::TaskExecutorBeat(request, reply) => reply.send(self.task_executor_beat(&request, now)),
            JmEvent::TaskExecutorBeatSent(id, incarnation, end) => {
                self.task_executor_beat_sent(&id, incarnation, end, now);
            }
            JmEvent::ResourceManagerRegistered(registered, reply) => {
                reply.send(self.resource_manager_registered(&registered, now));
            }
            JmEvent::ResourceManagerSays(message) => self.resource_manager_says(message, now, &events),
            JmEvent::ResourceManagerLost(why) => self.resource_manager_lost(&why),
            JmEvent::ResourceManagerBeat(request, reply) => {
                reply.send(self.resource_manager_beat(&request, now, &events));
            }
            JmEvent::ResourceManagerBeatAnswered(incarnation, end) => {
                self.resource_manager_beat_answered(incarnation, end, now, &events);
            }
            JmEvent::Prepared(result) => {
                self.scheduler.prepared_from(result.map(|prepared| *prepared), now);
            }
            JmEvent::Submitted(attempt, result) => self.scheduler.submitted(&attempt, result, now),
            JmEvent::CancelGaveUp(attempt) => self.scheduler.cancel_gave_up(&attempt, now),
            JmEvent::Swept(result) => self.scheduler.swept(result, now),
            JmEvent::Committed(result) => self.scheduler.committed(result, now),
            JmEvent::CheckpointsReserved(up_to, result) => {
                self.scheduler.checkpoints_reserved(up_to, result, now);
            }
            JmEvent::TriggerFailed(id, checkpoint, cause, unknown_task) => {
                self.scheduler.trigger_failed(&id, checkpoint, &cause, unknown_task, now);
            }
            JmEvent::CheckpointWritten(checkpoint, result) => {
                self.scheduler.checkpoint_written(checkpoint, result, now);
            }
            JmEvent::CheckpointCommitted(checkpoint, result) => {
                self.scheduler.checkpoint_committed(checkpoint, result, now);
            }
            JmEvent::CheckpointRead(result) => {
                self.scheduler.checkpoint_read(result.map(|read| *read), now);
            }
            JmEvent::Wake(timer) => self.scheduler.wake(timer, now),
            JmEvent::Cancel(reply) => reply.send(self.scheduler.cancel(now)),
            JmEvent::Request(wanted, reply) => {
                self.last_request += 1;
                let number = self.last_request;
                self.requests.insert(number, reply);
                self.scheduler.request_checkpoint(Request { number, wanted }, now);
            }
            JmEvent::Beat => self.beat(&events, now),
            JmEvent::IdleSlots => self.free_idle_slots(now),
            JmEvent::Publish => {}
        }
        self.carry_out_effects(&events);
        self.arm_beats(&events);
        self.dirty = true;
        if figures_only || heartbeat {
            self.publish_later(&events, now);
        } else {
            self.publish();
        }
        Ok(())
    }

    fn on_stop(&mut self, why: StopReason) {
        let cause = match why {
            StopReason::Died => "the job master died of a fault",
            StopReason::Closed | StopReason::Drained => "the job master is stopping",
        };
        let over = self.scheduler.status().is_terminal();
        self.resource_manager.say_goodbye(over, cause);
        if !over {
            // Suspended, in Flink's terms: everything that the next life needs is kept.
            let view = JobView::of(&self.submission, &self.scheduler, self.shared.clock.wall());
            self.recorder.suspend(Progress::of(&view));
            tracing::info!(job = %self.submission.job, cause, "the job is suspended until a job master takes it up");
        }
        for connection in self.task_executors.values_mut() {
            connection.disconnect(cause);
        }
    }
}
