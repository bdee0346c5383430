//! Accepts jobs and keeps an eye on them (Flink: `Dispatcher`).
//!
//! One loop decides which job is which: an id is reserved before anything else happens, so that of two submissions of
//! one id a single job results. A job is on disk before its submission is answered; each has a master on a loop of its
//! own; of what has ended the result is kept. A dispatcher that starts takes up the jobs that were not over, and does
//! nothing else before.

mod history;
mod processor;
mod recovery;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use controller_events::{Handle, Lane, PutOptions, PutRefusal, Reply};
use dashmap::DashMap;
use job::graph::JobGraph;
use runtime_core::JobId;

use crate::checkpoint::coordinator::{Done, Wanted};
use crate::job_store::StoredSavepoint;
pub use crate::master::view::JobView;
pub(crate) use history::History;
pub use history::PastJob;
pub(crate) use processor::{DispatcherEvent, DispatcherProcessor, Parts};
pub(crate) use recovery::take_up;

/// Snapshots of all jobs of this process.
pub(crate) type Views = Arc<DashMap<JobId, Arc<ArcSwap<JobView>>>>;

/// Why a job was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Another job has the id.
    #[error("job {0} exists already, with another job file")]
    Duplicate(JobId),
    /// The process has not yet taken up the jobs of before.
    #[error("the job master is starting: it takes up the jobs of before")]
    Starting,
    /// The process is stopping.
    #[error("the job master is stopping")]
    Stopping,
    /// It could not be remembered, and so it was not begun.
    #[error("job {job} was not taken, because it could not be stored: {cause}")]
    Store {
        /// The job.
        job: JobId,
        /// Why.
        cause: String,
    },
    /// Too many requests wait.
    #[error("the job master is overloaded: {0}")]
    Overloaded(PutRefusal),
    /// The job's master could not be started.
    #[error("the master of job {job} could not be started: {cause}")]
    Start {
        /// The job.
        job: JobId,
        /// Why.
        cause: String,
    },
}

/// What came of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It will be, or has been, cancelled.
    Accepted,
    /// It has ended otherwise.
    Ended,
    /// There is no such job.
    Unknown,
}

/// Submits, cancels and looks at jobs. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    pub(crate) events: Handle<DispatcherEvent>,
    pub(crate) views: Views,
    pub(crate) history: Arc<History>,
    pub(crate) started: Started,
}

/// Whether the jobs of before have been taken up.
#[derive(Debug, Clone)]
pub(crate) struct Started(pub(crate) tokio::sync::watch::Receiver<bool>);

impl Started {
    pub(crate) fn is_over(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until they have, or never will be.
    pub(crate) async fn over(&self) {
        // The sender goes with the dispatcher: there is nothing more to wait for.
        drop(self.0.clone().wait_for(|over| *over).await);
    }
}

impl Dispatcher {
    /// Takes a job. The same file under the same id again is a success without a change.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing runs then.
    pub async fn submit(&self, job: JobId, file: Bytes, graph: Arc<JobGraph>) -> Result<(), SubmitError> {
        self.submit_from(job, file, graph, None).await
    }

    /// Takes a job that begins with a savepoint, which fits it. The same file with the same savepoint under the same id
    /// again is a success without a change.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing runs then.
    pub async fn submit_from(
        &self,
        job: JobId,
        file: Bytes,
        graph: Arc<JobGraph>,
        savepoint: Option<StoredSavepoint>,
    ) -> Result<(), SubmitError> {
        let (reply, answer) = Reply::pair();
        let event = DispatcherEvent::Submit { job, file, graph, savepoint, reply };
        let options = PutOptions { lane: Lane::Low, ..PutOptions::default() };
        self.events.put_with(event, options).map_err(|refused| match refused.reason() {
            full @ PutRefusal::Overloaded { .. } => SubmitError::Overloaded(full),
            _ => SubmitError::Stopping,
        })?;
        answer.await.unwrap_or(Err(SubmitError::Stopping))
    }

    /// Asks for a checkpoint or a savepoint of a job, and waits until it is complete.
    ///
    /// # Errors
    /// Why there is none, in one sentence.
    pub async fn request(&self, job: JobId, wanted: Wanted) -> Result<Done, String> {
        let (reply, answer) = Reply::pair();
        let gone =
            || format!("the master of job {job} has ended before it was complete; look whether the job runs");
        if self.events.put(DispatcherEvent::Request { job, wanted, reply }).is_err() {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Asks for a job's end.
    pub async fn cancel(&self, job: JobId) -> CancelOutcome {
        let (reply, answer) = Reply::pair();
        if self.events.put(DispatcherEvent::Cancel { job, reply }).is_err() {
            return CancelOutcome::Unknown;
        }
        answer.await.unwrap_or(CancelOutcome::Unknown)
    }

    /// A job that this process leads, or has led since its start.
    #[must_use]
    pub fn view(&self, job: JobId) -> Option<Arc<JobView>> {
        self.views.get(&job).map(|view| view.load_full())
    }

    /// All jobs that this process leads, or has led since its start, newest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<JobView>> {
        let mut views: Vec<Arc<JobView>> = self.views.iter().map(|view| view.load_full()).collect();
        views.sort_by_key(|view| (std::cmp::Reverse(view.started_at()), view.id));
        views
    }

    /// Jobs that had ended before this process started.
    #[must_use]
    pub fn past(&self) -> Vec<PastJob> {
        self.history.all()
    }

    /// One of them.
    #[must_use]
    pub fn past_job(&self, job: JobId) -> Option<PastJob> {
        self.history.get(job)
    }
}
