//! Which objects a job has, and how they are removed.
//!
//! | name | what |
//! |---|---|
//! | `<job>/chk-<n>/metadata` | makes checkpoint *n* complete |
//! | `<job>/chk-<n>/v<vertex>-<subtask>-<term>-<attempt>` | an attempt's state, where it is not small |

use runtime_core::{AttemptId, Epoch, JobId, VertexId};

use crate::store::{CheckpointStore, StoreError};

const METADATA: &str = "metadata";

/// An object of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectName {
    /// The metadata of a checkpoint.
    Metadata {
        /// Whose.
        job: JobId,
        /// Of which checkpoint.
        checkpoint: u64,
    },
    /// The state of an attempt.
    State {
        /// Whose.
        attempt: AttemptId,
        /// In which checkpoint.
        checkpoint: u64,
    },
}

impl ObjectName {
    /// What a name means; `None` where it is none of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let (Some(job), Some(folder), Some(last), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let (job, checkpoint) = (job.parse().ok()?, number(folder.strip_prefix("chk-")?)?);
        if last == METADATA {
            return Some(Self::Metadata { job, checkpoint });
        }
        let mut parts = last.strip_prefix('v')?.split('-').map(number::<u64>);
        let mut next = || parts.next().flatten();
        let (vertex, subtask, term, attempt) = (next()?, next()?, next()?, next()?);
        if parts.next().is_some() {
            return None;
        }
        let vertex = VertexId(vertex.try_into().ok()?);
        let (subtask, attempt) = (subtask.try_into().ok()?, attempt.try_into().ok()?);
        Some(Self::State {
            attempt: AttemptId { job, term: Epoch(term), vertex, subtask, attempt },
            checkpoint,
        })
    }
}

/// Only what `Display` prints: no sign, no leading zero, so that each object has one name.
fn number<N: std::str::FromStr + std::fmt::Display>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// The folder of a job.
#[must_use]
pub fn job_folder(job: JobId) -> String {
    job.to_string()
}

/// The folder of a checkpoint.
#[must_use]
pub fn checkpoint_folder(job: JobId, checkpoint: u64) -> String {
    format!("{job}/chk-{checkpoint}")
}

/// The name of a checkpoint's metadata.
#[must_use]
pub fn metadata_name(job: JobId, checkpoint: u64) -> String {
    format!("{job}/chk-{checkpoint}/{METADATA}")
}

/// The name of an attempt's state in a checkpoint.
#[must_use]
pub fn state_name(attempt: &AttemptId, checkpoint: u64) -> String {
    let AttemptId { job, term, vertex, subtask, attempt } = attempt;
    format!("{job}/chk-{checkpoint}/{vertex}-{subtask}-{term}-{attempt}")
}

/// A checkpoint of which there are objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredCheckpoint {
    /// Its number.
    pub id: u64,
    /// Whether its metadata is there.
    pub complete: bool,
}

/// The checkpoints of which there are objects, by number.
///
/// # Errors
///
/// [`StoreError::Failed`].
pub fn list_checkpoints(
    store: &dyn CheckpointStore,
    job: JobId,
) -> Result<Vec<StoredCheckpoint>, StoreError> {
    let mut found = std::collections::BTreeMap::new();
    for name in store.list(&job_folder(job))? {
        match ObjectName::parse(&name) {
            Some(ObjectName::Metadata { checkpoint, .. }) => {
                found.insert(checkpoint, true);
            }
            Some(ObjectName::State { checkpoint, .. }) => {
                found.entry(checkpoint).or_insert(false);
            }
            None => {}
        }
    }
    Ok(found.into_iter().map(|(id, complete)| StoredCheckpoint { id, complete }).collect())
}

/// Removes a checkpoint, complete or not: its metadata first, so that what is left when this is cut off is never taken for
/// a checkpoint. One that is gone is none.
///
/// # Errors
///
/// [`StoreError::Failed`]; to be repeated.
pub fn remove_checkpoint(store: &dyn CheckpointStore, job: JobId, checkpoint: u64) -> Result<(), StoreError> {
    store.remove(&metadata_name(job, checkpoint))?;
    store.remove_all(&checkpoint_folder(job, checkpoint))
}

/// Removes all that a job has in the store, the newest checkpoint last.
///
/// # Errors
///
/// [`StoreError::Failed`]; to be repeated.
pub fn remove_job(store: &dyn CheckpointStore, job: JobId) -> Result<(), StoreError> {
    for checkpoint in list_checkpoints(store, job)? {
        remove_checkpoint(store, job, checkpoint.id)?;
    }
    store.remove_all(&job_folder(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    const JOB: JobId = JobId::from_u128(0xab);

    fn attempt() -> AttemptId {
        AttemptId { job: JOB, term: Epoch(77), vertex: VertexId(1), subtask: 2, attempt: 3 }
    }

    #[test]
    fn names_are_read_back() {
        let metadata = metadata_name(JOB, 7);
        assert_eq!(metadata, "000000000000000000000000000000ab/chk-7/metadata");
        assert_eq!(ObjectName::parse(&metadata), Some(ObjectName::Metadata { job: JOB, checkpoint: 7 }));
        let state = state_name(&attempt(), 7);
        assert_eq!(state, "000000000000000000000000000000ab/chk-7/v1-2-77-3");
        assert_eq!(ObjectName::parse(&state), Some(ObjectName::State { attempt: attempt(), checkpoint: 7 }));
    }

    #[test]
    fn what_is_no_name_of_ours_means_nothing() {
        let job = job_folder(JOB);
        for rest in [
            "chk-7",
            "chk-07/metadata",
            "chk-+7/metadata",
            "chk-/metadata",
            "7/metadata",
            "chk-7/metadata/x",
            "chk-7/v1-2-77",
            "chk-7/v1-2-77-3-4",
            "chk-7/1-2-77-3",
            "chk-7/v1-02-77-3",
            "chk-7/v1-2-77-4294967296",
        ] {
            assert_eq!(ObjectName::parse(&format!("{job}/{rest}")), None, "{rest}");
        }
        assert_eq!(ObjectName::parse("AB/chk-7/metadata"), None);
    }

    #[test]
    fn checkpoints_are_listed_by_number_and_told_complete_or_not() {
        let store = MemoryStore::new("memory://s");
        for name in [
            metadata_name(JOB, 10),
            metadata_name(JOB, 9),
            state_name(&attempt(), 9),
            state_name(&attempt(), 11),
        ] {
            store.put(&name, b"x").unwrap();
        }
        store.put(&metadata_name(JobId::from_u128(1), 3), b"x").unwrap();
        store.put(&format!("{}/README", job_folder(JOB)), b"x").unwrap();
        let found: Vec<_> =
            list_checkpoints(&store, JOB).unwrap().iter().map(|found| (found.id, found.complete)).collect();
        assert_eq!(found, [(9, true), (10, true), (11, false)]);
    }

    #[test]
    fn a_removal_that_is_cut_off_leaves_no_checkpoint_and_can_be_repeated() {
        let store = MemoryStore::new("memory://s");
        store.put(&metadata_name(JOB, 9), b"x").unwrap();
        store.put(&state_name(&attempt(), 9), b"x").unwrap();
        // The second removal is that of the state.
        store.fail_remove(2);
        remove_checkpoint(&store, JOB, 9).unwrap_err();
        assert_eq!(list_checkpoints(&store, JOB).unwrap(), [StoredCheckpoint { id: 9, complete: false }]);
        remove_checkpoint(&store, JOB, 9).unwrap();
        assert_eq!(list_checkpoints(&store, JOB).unwrap(), []);
        remove_checkpoint(&store, JOB, 9).unwrap();
    }

    #[test]
    fn a_job_goes_with_all_its_objects_and_no_other() {
        let store = MemoryStore::new("memory://s");
        let other = metadata_name(JobId::from_u128(1), 3);
        for name in [&metadata_name(JOB, 9), &state_name(&attempt(), 10), &other] {
            store.put(name, b"x").unwrap();
        }
        store.put(&format!("{}/README", job_folder(JOB)), b"x").unwrap();
        remove_job(&store, JOB).unwrap();
        assert_eq!(store.names(), [other]);
    }
}
