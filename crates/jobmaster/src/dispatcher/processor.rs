//! The dispatcher's state and how each event changes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use checkpoint::{Stores, layout};
use controller_events::StopReason;
use controller_events::{
    Cx, Event, EventLoop, EventState, Fault, Handle, LoopOptions, NotRun, Processor, Reply, Tag, When,
};
use entrypoint::Running;
use heartbeat::LivenessSource;
use job::graph::JobGraph;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use runtime_core::metrics::Observe;
use runtime_core::{Clock, JobId};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::recovery::given_up;
use super::{CancelOutcome, History, PastJob, SubmitError, Views};
use crate::checkpoint::coordinator::{Done, Wanted};
use crate::endpoint::{Master, Masters};
use crate::job_store::{
    JobFolder, JobStore, Left, Remembered, StoredSavepoint, StoredSubmission, Unrecoverable,
};
use crate::master::event::JmEvent;
use crate::master::view::JobView;
use crate::master::{JobMasterProcessor, Shared, Submission};
use crate::status::JobStatus;

/// Between two tries to store the result of a job.
const RESULT_PAUSE: Duration = Duration::from_secs(5);

/// What happens to a dispatcher.
pub(crate) enum DispatcherEvent {
    Submit {
        job: JobId,
        file: Bytes,
        graph: Arc<JobGraph>,
        savepoint: Option<StoredSavepoint>,
        reply: Reply<Result<(), SubmitError>>,
    },
    Request {
        job: JobId,
        wanted: Wanted,
        reply: Reply<Result<Done, String>>,
    },
    Cancel {
        job: JobId,
        reply: Reply<CancelOutcome>,
    },
    /// A job is over; its last snapshot has been published.
    JobEnded(JobId),
    /// The result of a job could not be stored, and is tried again.
    StoreResult(JobId),
    /// A job of before goes on.
    TakeUp(JobId, Arc<JobGraph>, Box<Remembered>),
    /// A job of before cannot go on.
    GiveUp(JobId, Box<PastJob>),
    /// All jobs of before have been dealt with.
    TakenUp,
}

/// What the loop is doing, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispatcherState {
    Idle,
    Submission,
    Cancellation,
    JobEnd,
    Recovery,
    Request,
}

impl EventState for DispatcherState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] =
        &[Self::Idle, Self::Submission, Self::Cancellation, Self::JobEnd, Self::Recovery, Self::Request];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Submission => "Submission",
            Self::Cancellation => "Cancellation",
            Self::JobEnd => "JobEnd",
            Self::Recovery => "Recovery",
            Self::Request => "Request",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Submission => Some("SubmissionRateAndTimeMs"),
            Self::Cancellation => Some("CancellationRateAndTimeMs"),
            Self::JobEnd => Some("JobEndRateAndTimeMs"),
            Self::Recovery => Some("RecoveryRateAndTimeMs"),
            Self::Request => Some("RequestRateAndTimeMs"),
        }
    }
}

impl Event for DispatcherEvent {
    type State = DispatcherState;

    fn state(&self) -> DispatcherState {
        match self {
            Self::Submit { .. } => DispatcherState::Submission,
            Self::Request { .. } => DispatcherState::Request,
            Self::Cancel { .. } => DispatcherState::Cancellation,
            Self::JobEnded(_) | Self::StoreResult(_) => DispatcherState::JobEnd,
            Self::TakeUp(..) | Self::GiveUp(..) | Self::TakenUp => DispatcherState::Recovery,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "Submit",
            Self::Request { .. } => "Request",
            Self::Cancel { .. } => "Cancel",
            Self::JobEnded(_) => "JobEnded",
            Self::StoreResult(_) => "StoreResult",
            Self::TakeUp(..) => "TakeUp",
            Self::GiveUp(..) => "GiveUp",
            Self::TakenUp => "TakenUp",
        }
    }

    // Whoever waits for an answer hears of it: its reply answers when it is dropped.
    fn not_run(self, _why: NotRun) {}
}

/// A job with its loop.
struct Led {
    file: Bytes,
    savepoint: Option<String>,
    folder: Arc<JobFolder>,
    events: Handle<JmEvent>,
    running: Option<Running<JobMasterProcessor>>,
    /// Shown at `/metrics` as long as the job is known here.
    _metrics: Arc<dyn Observe>,
}

/// What a dispatcher is made of.
pub(crate) struct Parts {
    pub(crate) shared: Shared,
    pub(crate) masters: Masters,
    pub(crate) views: Views,
    pub(crate) store: JobStore,
    pub(crate) history: Arc<History>,
    pub(crate) ended: UnboundedSender<JobId>,
    pub(crate) started: watch::Sender<bool>,
    pub(crate) metrics: entrypoint::MetricSources,
    pub(crate) seed: u64,
}

/// The dispatcher's state.
pub(crate) struct DispatcherProcessor {
    parts: Parts,
    jobs: BTreeMap<JobId, Led>,
    random: SmallRng,
}

impl DispatcherProcessor {
    pub(crate) fn new(parts: Parts) -> Self {
        let random = SmallRng::seed_from_u64(parts.seed);
        Self { parts, jobs: BTreeMap::new(), random }
    }

    fn submit(
        &mut self,
        job: JobId,
        file: Bytes,
        graph: Arc<JobGraph>,
        savepoint: Option<StoredSavepoint>,
    ) -> Result<(), SubmitError> {
        let from = savepoint.as_ref().map(|savepoint| &savepoint.url);
        if !*self.parts.started.borrow() {
            return Err(SubmitError::Starting);
        }
        if let Some(known) = self.jobs.get(&job) {
            let same = known.file == file && known.savepoint.as_ref() == from;
            return if same { Ok(()) } else { Err(SubmitError::Duplicate(job)) };
        }
        if let Some(past) = self.parts.history.get(job) {
            let same = past.file.as_bytes() == file && past.savepoint.as_ref() == from;
            return if same { Ok(()) } else { Err(SubmitError::Duplicate(job)) };
        }
        let stored = StoredSubmission {
            file: String::from_utf8_lossy(&file).into_owned(),
            submitted_at: self.parts.shared.clock.wall().0,
            seed: self.random.random(),
            savepoint: savepoint.map(Box::new),
        };
        // From here on it would be taken up by the next life, so that the answer may be given.
        let folder = self.parts.store.accept(job, &stored);
        let folder = folder.map_err(|e| SubmitError::Store { job, cause: e.to_string() })?;
        tracing::info!(%job, name = %graph.name, slots = graph.slots(), "a job has been submitted");
        let folder = Arc::new(folder);
        let submission = Submission::new(job, &stored, graph, Arc::clone(&folder));
        self.lead(submission, None).map_err(|cause| {
            if let Err(error) = folder.remove() {
                tracing::warn!(%job, %error, "a job that could not be begun will be taken up at the next start");
            }
            SubmitError::Start { job, cause }
        })
    }

    /// Goes on with a job of an earlier life.
    fn take_up(&mut self, job: JobId, graph: Arc<JobGraph>, remembered: Remembered) {
        let Remembered { folder, submission: stored, left } = remembered;
        tracing::info!(%job, name = %graph.name, "a job of before is taken up");
        let folder = Arc::new(folder);
        let submission = Submission::new(job, &stored, graph, Arc::clone(&folder));
        if let Err(cause) = self.lead(submission, Some(left)) {
            let cause = format!("its master could not be started: {cause}");
            tracing::error!(%job, "a job of before is not taken up: {cause}");
            let unrecoverable = Unrecoverable { cause, folder: folder.path(), submission: Some(stored) };
            self.parts.history.show(job, given_up(job, unrecoverable));
        }
    }

    /// Gives a job a master on a loop of its own.
    fn lead(&mut self, submission: Submission, left: Option<Left>) -> Result<(), String> {
        let (job, file, folder) = (submission.job, submission.file.clone(), Arc::clone(&submission.folder));
        let savepoint = submission.savepoint.as_ref().map(|savepoint| savepoint.url.clone());
        let shared = &self.parts.shared;
        let liveness = Arc::new(LivenessSource::new(shared.incarnation));
        let ended = self.parts.ended.clone();
        let (processor, view) =
            JobMasterProcessor::new(shared.clone(), submission, left, Arc::clone(&liveness), ended)
                .map_err(|e| e.to_string())?;
        let mut options = LoopOptions::new(Arc::new(shared.clock.clone()));
        options.name = format!("job-{job}").into();
        options.low_watermark = Some(entrypoint::MOST_REQUESTS);
        let event_loop = EventLoop::new(processor, options);
        let events = event_loop.handle();
        let running =
            shared.placement.run(event_loop, &shared.runtime, &shared.clock).map_err(|e| e.to_string())?;
        let metrics: Arc<dyn Observe> = Arc::new(events.clone());
        self.parts.metrics.add_while_alive(Arc::downgrade(&metrics));
        self.parts.masters.insert(job, Master { events: events.clone(), liveness });
        self.parts.views.insert(job, view);
        if events.put(JmEvent::Begin).is_err() {
            return Err("its loop has ended".into());
        }
        let led = Led { file, savepoint, folder, events, running: Some(running), _metrics: metrics };
        self.jobs.insert(job, led);
        Ok(())
    }

    fn cancel(&self, job: JobId, reply: Reply<CancelOutcome>) {
        let Some(led) = self.jobs.get(&job) else {
            let ended = if self.parts.history.get(job).is_some() {
                CancelOutcome::Ended
            } else {
                CancelOutcome::Unknown
            };
            reply.send(ended);
            return;
        };
        let view = self.parts.views.get(&job).map(|view| view.load_full());
        let (asked, answer) = Reply::pair();
        let put = led.events.put(JmEvent::Cancel(asked));
        self.parts.shared.runtime.spawn(async move {
            let accepted = put.is_ok() && answer.await.unwrap_or(false);
            let canceled = view.is_some_and(|v| v.status == crate::status::JobStatus::Canceled);
            reply.send(if accepted || canceled { CancelOutcome::Accepted } else { CancelOutcome::Ended });
        });
    }

    /// Passes a request on to the job's master, which answers it.
    fn request(&self, job: JobId, wanted: Wanted, reply: Reply<Result<Done, String>>) {
        let view = self.parts.views.get(&job).map(|view| view.load_full());
        let ended = match (&view, self.parts.history.get(job)) {
            (Some(view), _) if view.status.is_terminal() => Some(view.status.as_str().to_owned()),
            (None, Some(past)) => Some(past.result.state),
            _ => None,
        };
        if let Some(state) = ended {
            reply.send(Err(format!("job {job} has ended: it is {state}")));
        } else if let Some(led) = self.jobs.get(&job) {
            // One that was not taken answers by being dropped.
            drop(led.events.put(JmEvent::Request(wanted, reply)));
        } else {
            reply.send(Err(format!("there is no job {job}")));
        }
    }

    /// Lets the job's loop go and stores its result.
    fn job_ended(&mut self, job: JobId, cx: &Cx<'_, DispatcherEvent>) {
        let Some(led) = self.jobs.get_mut(&job) else { return };
        self.parts.masters.remove(&job);
        led.events.close();
        led.running.take();
        if let Some(view) = self.parts.views.get(&job) {
            let view = view.load();
            tracing::info!(%job, state = view.status.as_str(), failure = ?view.failure, "a job has ended");
        }
        self.store_result(job, cx);
    }

    /// The result first, then the job is forgotten: a crash in between leaves a job that is known to be over. As long as
    /// the result cannot be stored the job is remembered, so that the next life comes to the same end again.
    fn store_result(&self, job: JobId, cx: &Cx<'_, DispatcherEvent>) {
        let (Some(led), Some(view)) = (self.jobs.get(&job), self.parts.views.get(&job)) else { return };
        if let Err(error) = self.parts.history.add(&view.load(), &led.file, led.savepoint.clone()) {
            tracing::error!(%job, %error, again_in = ?RESULT_PAUSE, "the job's result could not be stored");
            let at = self.parts.shared.clock.now() + RESULT_PAUSE;
            let tag = Tag::keyed("store-result", job.as_u128());
            drop(cx.handle().schedule(Some(tag), When::At(at), DispatcherEvent::StoreResult(job)));
            return;
        }
        let (folder, stores, view) =
            (Arc::clone(&led.folder), Arc::clone(&self.parts.shared.stores), view.load_full());
        let shared = &self.parts.shared;
        shared.placement.block(&shared.runtime, move || {
            remove_checkpoints(&view, &*stores);
            if let Err(error) = folder.remove() {
                tracing::warn!(%job, %error, "what is left of a job that is over is removed at the next start");
            }
        });
    }
}

/// A job that has come to its end as somebody wished needs no checkpoint any more (Flink:
/// `execution.checkpointing.externalized-checkpoint-retention`). Those of a failed one are left to whoever wants to know
/// how far it had got.
fn remove_checkpoints(view: &JobView, stores: &dyn Stores) {
    let Some(options) = &view.checkpoint_options else { return };
    if !matches!(view.status, JobStatus::Finished | JobStatus::Canceled) {
        return;
    }
    let removed = stores.open(&options.dir).and_then(|store| layout::remove_job(&*store, view.id));
    if let Err(error) = removed {
        tracing::warn!(job = %view.id, %error, "the checkpoints of a job that is over could not be removed");
    }
}

impl Processor for DispatcherProcessor {
    type Event = DispatcherEvent;

    fn process(&mut self, event: DispatcherEvent, cx: &mut Cx<'_, DispatcherEvent>) -> Result<(), Fault> {
        match event {
            DispatcherEvent::Submit { job, file, graph, savepoint, reply } => {
                reply.send(self.submit(job, file, graph, savepoint));
            }
            DispatcherEvent::Request { job, wanted, reply } => self.request(job, wanted, reply),
            DispatcherEvent::Cancel { job, reply } => self.cancel(job, reply),
            DispatcherEvent::JobEnded(job) => self.job_ended(job, cx),
            DispatcherEvent::StoreResult(job) => self.store_result(job, cx),
            DispatcherEvent::TakeUp(job, graph, remembered) => self.take_up(job, graph, *remembered),
            DispatcherEvent::GiveUp(job, past) => self.parts.history.show(job, *past),
            DispatcherEvent::TakenUp => drop(self.parts.started.send_replace(true)),
        }
        Ok(())
    }

    fn on_stop(&mut self, _why: StopReason) {
        for led in self.jobs.values() {
            led.events.close();
        }
    }
}
