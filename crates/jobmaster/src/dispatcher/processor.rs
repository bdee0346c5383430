//! The dispatcher's state and how each event changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use controller_events::StopReason;
use controller_events::{
    Cx, Event, EventLoop, EventState, Fault, Handle, LoopOptions, NotRun, Processor, Reply,
};
use entrypoint::Running;
use heartbeat::LivenessSource;
use job::graph::JobGraph;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use runtime_core::metrics::Observe;
use runtime_core::{Clock, JobId};
use tokio::sync::mpsc::UnboundedSender;

use super::{CancelOutcome, History, SubmitError, Views};
use crate::checkpoint::VolatileLog;
use crate::endpoint::{Master, Masters};
use crate::master::event::JmEvent;
use crate::master::view::JobView;
use crate::master::{JobMasterProcessor, Shared, Submission};
use crate::scheduler::{Now, Scheduler};

/// What happens to a dispatcher.
pub(crate) enum DispatcherEvent {
    Submit {
        job: JobId,
        file: Bytes,
        graph: Arc<JobGraph>,
        reply: Reply<Result<(), SubmitError>>,
    },
    Cancel {
        job: JobId,
        reply: Reply<CancelOutcome>,
    },
    /// A job is over; its last snapshot has been published.
    JobEnded(JobId),
}

/// What the loop is doing, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispatcherState {
    Idle,
    Submission,
    Cancellation,
    JobEnd,
}

impl EventState for DispatcherState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[Self::Idle, Self::Submission, Self::Cancellation, Self::JobEnd];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Submission => "Submission",
            Self::Cancellation => "Cancellation",
            Self::JobEnd => "JobEnd",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Submission => Some("SubmissionRateAndTimeMs"),
            Self::Cancellation => Some("CancellationRateAndTimeMs"),
            Self::JobEnd => Some("JobEndRateAndTimeMs"),
        }
    }
}

impl Event for DispatcherEvent {
    type State = DispatcherState;

    fn state(&self) -> DispatcherState {
        match self {
            Self::Submit { .. } => DispatcherState::Submission,
            Self::Cancel { .. } => DispatcherState::Cancellation,
            Self::JobEnded(_) => DispatcherState::JobEnd,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "Submit",
            Self::Cancel { .. } => "Cancel",
            Self::JobEnded(_) => "JobEnded",
        }
    }

    // Whoever waits for an answer hears of it: its reply answers when it is dropped.
    fn not_run(self, _why: NotRun) {}
}

/// A job with its loop.
struct Led {
    file: Bytes,
    events: Handle<JmEvent>,
    running: Option<Running<JobMasterProcessor>>,
    /// Shown at `/metrics` as long as the job is known here.
    _metrics: Arc<dyn Observe>,
}

/// The dispatcher's state.
pub(crate) struct DispatcherProcessor {
    pub(crate) shared: Shared,
    jobs: BTreeMap<JobId, Led>,
    masters: Masters,
    views: Views,
    history: Arc<History>,
    ended: UnboundedSender<JobId>,
    metrics: entrypoint::MetricSources,
    random: SmallRng,
}

impl DispatcherProcessor {
    pub(crate) fn new(
        shared: Shared,
        masters: Masters,
        views: Views,
        history: Arc<History>,
        ended: UnboundedSender<JobId>,
        metrics: entrypoint::MetricSources,
        seed: u64,
    ) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { shared, jobs: BTreeMap::new(), masters, views, history, ended, metrics, random }
    }

    fn submit(&mut self, job: JobId, file: Bytes, graph: Arc<JobGraph>) -> Result<(), SubmitError> {
        if let Some(known) = self.jobs.get(&job) {
            return if known.file == file { Ok(()) } else { Err(SubmitError::Duplicate(job)) };
        }
        if let Some(past) = self.history.get(job) {
            return if past.file.as_bytes() == file { Ok(()) } else { Err(SubmitError::Duplicate(job)) };
        }
        tracing::info!(%job, name = %graph.name, slots = graph.slots(), "a job has been submitted");
        let submission = Submission {
            job,
            file: file.clone(),
            graph,
            seed: self.random.random(),
            log: Arc::new(VolatileLog),
        };
        let start = |cause: String| SubmitError::Start { job, cause };
        let now = Now { tick: self.shared.clock.now(), wall: self.shared.clock.wall(), jitter: 0.0 };
        let first = Scheduler::new(
            job,
            self.shared.epoch,
            Arc::clone(&submission.graph),
            self.shared.slot_request_timeout,
            now,
        );
        let view = Arc::new(ArcSwap::from_pointee(JobView::of(&submission, &first, now.wall)));
        let liveness = Arc::new(LivenessSource::new(self.shared.incarnation));
        let processor = JobMasterProcessor::new(
            self.shared.clone(),
            submission,
            Arc::clone(&view),
            Arc::clone(&liveness),
            self.ended.clone(),
        )
        .map_err(|e| start(e.to_string()))?;
        let mut options = LoopOptions::new(Arc::new(self.shared.clock.clone()));
        options.name = format!("job-{job}").into();
        options.low_watermark = Some(entrypoint::MOST_REQUESTS);
        let event_loop = EventLoop::new(processor, options);
        let events = event_loop.handle();
        let running = self
            .shared
            .placement
            .run(event_loop, &self.shared.runtime, &self.shared.clock)
            .map_err(|e| start(e.to_string()))?;
        let metrics: Arc<dyn Observe> = Arc::new(events.clone());
        self.metrics.add_while_alive(Arc::downgrade(&metrics));
        self.masters.insert(job, Master { events: events.clone(), liveness });
        self.views.insert(job, view);
        if events.put(JmEvent::Begin).is_err() {
            return Err(start("its loop has ended".into()));
        }
        self.jobs.insert(job, Led { file, events, running: Some(running), _metrics: metrics });
        Ok(())
    }

    fn cancel(&self, job: JobId, reply: Reply<CancelOutcome>) {
        let Some(led) = self.jobs.get(&job) else {
            let ended =
                if self.history.get(job).is_some() { CancelOutcome::Ended } else { CancelOutcome::Unknown };
            reply.send(ended);
            return;
        };
        let view = self.views.get(&job).map(|view| view.load_full());
        let (asked, answer) = Reply::pair();
        let put = led.events.put(JmEvent::Cancel(asked));
        self.shared.runtime.spawn(async move {
            let accepted = put.is_ok() && answer.await.unwrap_or(false);
            let canceled = view.is_some_and(|v| v.status == crate::status::JobStatus::Canceled);
            reply.send(if accepted || canceled { CancelOutcome::Accepted } else { CancelOutcome::Ended });
        });
    }

    /// Stores the job's result and lets its loop go.
    fn job_ended(&mut self, job: JobId) {
        let Some(led) = self.jobs.get_mut(&job) else { return };
        if let Some(view) = self.views.get(&job) {
            let view = view.load_full();
            tracing::info!(%job, state = view.status.as_str(), failure = ?view.failure, "a job has ended");
            if let Err(error) = self.history.add(&view, &led.file) {
                tracing::error!(%job, %error, "the job's result could not be stored; it will be unknown after a restart");
            }
        }
        self.masters.remove(&job);
        led.events.close();
        led.running.take();
    }
}

impl Processor for DispatcherProcessor {
    type Event = DispatcherEvent;

    fn process(&mut self, event: DispatcherEvent, _cx: &mut Cx<'_, DispatcherEvent>) -> Result<(), Fault> {
        match event {
            DispatcherEvent::Submit { job, file, graph, reply } => reply.send(self.submit(job, file, graph)),
            DispatcherEvent::Cancel { job, reply } => self.cancel(job, reply),
            DispatcherEvent::JobEnded(job) => self.job_ended(job),
        }
        Ok(())
    }

    fn on_stop(&mut self, _why: StopReason) {
        for led in self.jobs.values() {
            led.events.close();
        }
    }
}
