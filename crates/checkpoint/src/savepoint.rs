//! Savepoints: a folder each, which has all that is in it and may be copied and moved.
//!
//! | name in the folder | what |
//! |---|---|
//! | `metadata` | makes the savepoint complete; written last |
//! | `v<vertex>-<subtask>-<term>-<attempt>` | an attempt's state, where it is not small |
//! | `output-<n>-<k>` | piece *k* of the *n*-th output that was staged and not visible, where it is not small |
//!
//! The folder is a store of its own: names in the metadata are those within it, so that they hold wherever it lies. It
//! belongs to whoever has asked for it. Nothing here removes one but [`dispose`] and, before it is complete, [`discard`].

use runtime_core::{AttemptId, JobId};
use wire::v1;

use crate::envelope::{FormatError, ReadError};
use crate::metadata;
use crate::operators;
use crate::state::read_state;
use crate::store::{CheckpointStore, StoreError, Stores};

/// The name of a savepoint's metadata within its folder.
pub const METADATA: &str = "metadata";

const PREFIX: &str = "savepoint-";

/// A folder of savepoints as a URL: a path as it stands becomes one.
#[must_use]
pub fn url_of(place: &str) -> String {
    let place = place.trim_end_matches('/');
    if place.contains("://") { place.to_owned() } else { format!("file://{place}") }
}

/// The URL of a new savepoint of a job below `dir`; `random` tells it from the others.
#[must_use]
pub fn new_url(dir: &str, job: JobId, random: u64) -> String {
    let job = job.to_string();
    let short = job.get(..6).unwrap_or(&job);
    format!("{}/{PREFIX}{short}-{:012x}", url_of(dir), random & 0xffff_ffff_ffff)
}

/// The name of an attempt's state within a savepoint's folder.
#[must_use]
pub fn state_name(attempt: &AttemptId) -> String {
    let AttemptId { term, vertex, subtask, attempt, .. } = attempt;
    format!("{vertex}-{subtask}-{term}-{attempt}")
}

/// The name of a piece of output within a savepoint's folder.
#[must_use]
pub fn output_name(output: usize, piece: usize) -> String {
    format!("output-{output}-{piece}")
}

/// Why there is no savepoint that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SavepointError {
    /// Nothing is there.
    #[error("there is no savepoint at {url}: it has no `metadata`; {hint}")]
    Missing {
        /// Where it was looked for.
        url: String,
        /// What else is known.
        hint: &'static str,
    },
    /// What is there is a job's own.
    #[error(
        "{url} is a checkpoint of job {job}, which goes with its job, and no savepoint; take one with `tidegate savepoint`"
    )]
    Checkpoint {
        /// Where it is.
        url: String,
        /// Whose.
        job: String,
    },
    /// A part cannot be used.
    #[error("the savepoint {url} cannot be used: {cause}; {WAY_OUT}")]
    Damaged {
        /// Where it is.
        url: String,
        /// What is wrong.
        cause: String,
    },
    /// The store cannot be reached, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const WAY_OUT: &str = "copy the whole folder again from where it is whole, or start from another savepoint; nothing was started or changed";
const NOTHING: &str = "name the folder that `tidegate savepoint` or `tidegate stop` has printed";
const HALF: &str =
    "other parts of one are there, so it was not copied whole, or was given up; copy the whole folder again";

/// Reads the metadata of a savepoint.
///
/// # Errors
///
/// [`SavepointError`].
pub fn read(stores: &dyn Stores, url: &str) -> Result<v1::CheckpointMetadata, SavepointError> {
    let store = stores.open(url)?;
    let bytes = match store.get(METADATA) {
        Err(StoreError::NotFound { .. }) => {
            let rest = siblings(stores, url).unwrap_or_default();
            let hint = if rest.is_empty() { NOTHING } else { HALF };
            return Err(SavepointError::Missing { url: url.to_owned(), hint });
        }
        read => read?,
    };
    let damaged = |cause: &FormatError| SavepointError::Damaged {
        url: url.to_owned(),
        cause: format!("`{METADATA}`: {cause}"),
    };
    let metadata = metadata::decode(&bytes).map_err(|cause| damaged(&cause))?;
    if !metadata.savepoint {
        let job = JobId::try_from(&*metadata.job_id).map(|job| job.to_string()).unwrap_or_default();
        return Err(SavepointError::Checkpoint { url: url.to_owned(), job });
    }
    Ok(metadata)
}

/// Reads every part of a savepoint, and says of which steps it holds records.
///
/// # Errors
///
/// [`SavepointError`]: a part is missing or not what was written.
pub fn verify(
    stores: &dyn Stores,
    url: &str,
    metadata: &v1::CheckpointMetadata,
) -> Result<std::collections::BTreeSet<String>, SavepointError> {
    let store = stores.open(url)?;
    let damaged = |cause: String| SavepointError::Damaged { url: url.to_owned(), cause };
    let read = |handle: &v1::StateHandle| match read_state(&*store, handle) {
        Ok(bytes) => Ok(bytes),
        Err(ReadError::Store(StoreError::NotFound { name, .. })) => {
            Err(damaged(format!("`{name}` is missing")))
        }
        Err(ReadError::Store(error)) => Err(SavepointError::Store(error)),
        Err(ReadError::Format { name, cause, .. }) => Err(damaged(format!("`{name}`: {cause}"))),
    };
    let mut steps = std::collections::BTreeSet::new();
    let subtasks = metadata.vertices.iter().flat_map(|vertex| &vertex.subtasks);
    for handle in subtasks.filter_map(|subtask| subtask.snapshot.as_ref()?.state.as_ref()) {
        let states = operators::decode(&read(handle)?).map_err(|cause| damaged(cause.to_string()))?;
        steps.extend(states.operators.into_iter().map(|state| state.name));
    }
    for piece in metadata.outputs.iter().flat_map(|output| &output.pieces) {
        read(piece)?;
    }
    Ok(steps)
}

/// Writes the metadata of a savepoint; with this it is complete.
///
/// # Errors
///
/// [`StoreError::Failed`]. With a remote store it may be there nevertheless.
pub fn write(store: &dyn CheckpointStore, metadata: &v1::CheckpointMetadata) -> Result<(), StoreError> {
    store.put(METADATA, &metadata::encode(metadata))
}

/// Removes a savepoint, its metadata first; nothing but what is one.
///
/// # Errors
///
/// [`SavepointError`]; to be repeated where the store has failed.
pub fn dispose(stores: &dyn Stores, url: &str) -> Result<(), SavepointError> {
    // One that is damaged may go as well.
    match read(stores, url) {
        Ok(_) | Err(SavepointError::Damaged { .. }) => {}
        Err(error) => return Err(error),
    }
    discard(stores, url).map_err(SavepointError::Store)
}

/// Removes what was written of a savepoint that was given up.
///
/// # Errors
///
/// [`StoreError::Failed`]; to be repeated.
pub fn discard(stores: &dyn Stores, url: &str) -> Result<(), StoreError> {
    let Some((dir, folder)) = url.trim_end_matches('/').rsplit_once('/') else { return Ok(()) };
    let store = stores.open(dir)?;
    store.remove(&format!("{folder}/{METADATA}"))?;
    store.remove_all(folder)
}

fn siblings(stores: &dyn Stores, url: &str) -> Result<Vec<String>, StoreError> {
    let Some((dir, folder)) = url.trim_end_matches('/').rsplit_once('/') else { return Ok(Vec::new()) };
    stores.open(dir)?.list(folder)
}

#[cfg(test)]
mod tests {
    use runtime_core::{Epoch, VertexId};

    use super::*;
    use crate::{INLINE_LIMIT, UrlStores, write_state};

    fn stores() -> UrlStores {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        UrlStores::new(runtime.handle().clone())
    }

    /// A savepoint with a state that is an object, and output of two pieces.
    fn made(dir: &std::path::Path) -> (String, v1::CheckpointMetadata) {
        let url = new_url(dir.to_str().unwrap(), JobId::from_u128(0xab << 120), 7);
        let store = stores().open(&url).unwrap();
        let attempt = AttemptId {
            job: JobId::from_u128(1),
            term: Epoch(3),
            vertex: VertexId(1),
            subtask: 2,
            attempt: 4,
        };
        let held = v1::OperatorState { name: "plane".into(), held: vec![7; INLINE_LIMIT].into() };
        let state = operators::encode(&v1::OperatorStates { operators: vec![held] });
        let state = write_state(&*store, &state_name(&attempt), &state).unwrap();
        let piece = |k| write_state(&*store, &output_name(0, k), &vec![8; INLINE_LIMIT + 1]).unwrap();
        let snapshot = Some(v1::TaskSnapshot { state: Some(state), ..v1::TaskSnapshot::default() });
        let metadata = v1::CheckpointMetadata {
            checkpoint: 9,
            job_id: JobId::from_u128(1).to_bytes().to_vec().into(),
            savepoint: true,
            vertices: vec![v1::VertexSnapshot {
                subtasks: vec![v1::SubtaskSnapshot { snapshot, ..v1::SubtaskSnapshot::default() }],
                ..v1::VertexSnapshot::default()
            }],
            outputs: vec![v1::SavedOutput { pieces: vec![piece(0), piece(1)], ..v1::SavedOutput::default() }],
            ..v1::CheckpointMetadata::default()
        };
        write(&*store, &metadata).unwrap();
        (url, metadata)
    }

    #[test]
    fn a_savepoint_is_found_whole_wherever_its_folder_was_moved() {
        let dir = tempfile::tempdir().unwrap();
        let (url, metadata) = made(dir.path());
        assert!(url.starts_with("file:///") && url.ends_with("/savepoint-ab0000-000000000007"), "{url}");
        let moved = dir.path().join("elsewhere");
        std::fs::rename(url.strip_prefix("file://").unwrap(), &moved).unwrap();
        let moved = url_of(moved.to_str().unwrap());
        assert_eq!(read(&stores(), &moved).unwrap(), metadata);
        let steps = verify(&stores(), &moved, &metadata).unwrap();
        assert_eq!(steps.into_iter().collect::<Vec<_>>(), ["plane"]);
        assert!(matches!(read(&stores(), &url), Err(SavepointError::Missing { hint: NOTHING, .. })));
    }

    #[test]
    fn each_part_that_is_missing_cut_or_changed_is_named_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let (url, metadata) = made(dir.path());
        let folder = std::path::Path::new(url.strip_prefix("file://").unwrap());
        for part in ["v1-2-3-4", "output-0-0", "output-0-1"] {
            let path = folder.join(part);
            let whole = std::fs::read(&path).unwrap();
            let mut changed = whole.clone();
            changed[99] ^= 1;
            for (content, word) in [(&whole[..50], "50 bytes of"), (&changed[..], "checksum")] {
                std::fs::write(&path, content).unwrap();
                let text = verify(&stores(), &url, &metadata).unwrap_err().to_string();
                assert!(text.contains(part) && text.contains(word) && text.contains(WAY_OUT), "{text}");
            }
            std::fs::remove_file(&path).unwrap();
            let text = verify(&stores(), &url, &metadata).unwrap_err().to_string();
            assert!(text.contains(&format!("`{part}` is missing")), "{text}");
            std::fs::write(&path, whole).unwrap();
        }
        std::fs::remove_file(folder.join(METADATA)).unwrap();
        let text = read(&stores(), &url).unwrap_err().to_string();
        assert!(text.contains("not copied whole"), "{text}");
    }

    #[test]
    fn only_a_savepoint_is_disposed_of_and_with_all_its_parts() {
        let dir = tempfile::tempdir().unwrap();
        let (url, metadata) = made(dir.path());
        let folder = std::path::Path::new(url.strip_prefix("file://").unwrap());
        let store = stores().open(&url).unwrap();
        write(&*store, &v1::CheckpointMetadata { savepoint: false, ..metadata.clone() }).unwrap();
        assert!(matches!(dispose(&stores(), &url), Err(SavepointError::Checkpoint { .. })));
        write(&*store, &metadata).unwrap();
        dispose(&stores(), &url).unwrap();
        assert!(!folder.exists());
        assert!(matches!(dispose(&stores(), &url), Err(SavepointError::Missing { .. })));
    }
}
