//! What was asked for and takes longer than a request: savepoints, checkpoints, disposals (Flink:
//! `CompletedOperationCache`).
//!
//! Whoever asks is given a number at once and polls by it. Who draws the number itself may ask again with it as often as
//! it likes: the same thing is not done twice. What is done is remembered for some minutes, by this process alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime_core::{JobId, Tick};

/// How long the outcome of an operation is known (Flink: `rest.async.store-duration`).
const REMEMBERED: Duration = Duration::from_secs(300);

/// The number of an operation: 32 hexadecimal digits, as a job's id.
pub(crate) type OperationId = JobId;

/// What an operation is about. A number belongs to one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A savepoint of a job, or its end with one.
    Savepoint(JobId),
    /// A checkpoint of a job.
    Checkpoint(JobId),
    /// The removal of a savepoint.
    Disposal,
}

/// How an operation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status<T> {
    InProgress,
    Completed(Result<T, String>),
}

#[derive(Debug)]
struct Operation<T> {
    subject: Subject,
    status: Status<T>,
    /// When it is forgotten, once it is complete.
    forgotten_at: Option<Tick>,
}

/// All operations of this process.
#[derive(Debug)]
pub(crate) struct Operations<T>(Mutex<BTreeMap<OperationId, Operation<T>>>);

impl<T> Default for Operations<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Operations<T> {
    /// Notes an operation. False: it is known, and not to be begun again. An error: the number is that of another.
    pub(crate) fn begin(&self, id: OperationId, subject: Subject, now: Tick) -> Result<bool, ()> {
        let mut all = self.lock();
        all.retain(|_, operation| operation.forgotten_at.is_none_or(|at| at > now));
        if let Some(known) = all.get(&id) {
            return if known.subject == subject { Ok(false) } else { Err(()) };
        }
        all.insert(id, Operation { subject, status: Status::InProgress, forgotten_at: None });
        Ok(true)
    }

    /// It is over.
    pub(crate) fn complete(&self, id: OperationId, result: Result<T, String>, now: Tick) {
        if let Some(operation) = self.lock().get_mut(&id) {
            operation.status = Status::Completed(result);
            operation.forgotten_at = Some(now + REMEMBERED);
        }
    }

    /// How it stands; `None`: nobody knows it, or it is about something else.
    pub(crate) fn status(&self, id: OperationId, subject: &Subject, now: Tick) -> Option<Status<T>> {
        let all = self.lock();
        let operation = all.get(&id).filter(|operation| operation.subject == *subject)?;
        let known = operation.forgotten_at.is_none_or(|at| at > now);
        known.then(|| operation.status.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<OperationId, Operation<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As handlers share them.
pub(crate) type Shared<T> = Arc<Operations<T>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1000)
    }

    #[test]
    fn a_number_is_done_once_and_known_for_five_minutes_after_it_is_done() {
        let operations = Operations::default();
        let (id, job) = (JobId::from_u128(7), JobId::from_u128(1));
        let subject = Subject::Savepoint(job);
        assert_eq!(operations.begin(id, subject.clone(), at(0)), Ok(true));
        assert_eq!(operations.begin(id, subject.clone(), at(1)), Ok(false));
        assert_eq!(operations.begin(id, Subject::Checkpoint(job), at(1)), Err(()));
        assert_eq!(operations.status(id, &subject, at(9999)), Some(Status::InProgress));
        operations.complete(id, Ok(3), at(10_000));
        assert_eq!(operations.status(id, &subject, at(10_299)), Some(Status::Completed(Ok(3))));
        assert_eq!(operations.status(id, &Subject::Disposal, at(10_001)), None);
        assert_eq!(operations.status(id, &subject, at(10_300)), None);
        assert_eq!(operations.begin(id, subject, at(10_300)), Ok(true), "forgotten is forgotten");
    }
}
