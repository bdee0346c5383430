//! The object that makes a checkpoint complete.

use runtime_core::JobId;
use wire::v1;

use crate::envelope::{self, FormatError, ReadError};
use crate::layout;
use crate::store::{CheckpointStore, StoreError};

const KIND: envelope::Kind = *b"META";

/// The object of this metadata.
#[must_use]
pub fn encode(metadata: &v1::CheckpointMetadata) -> Vec<u8> {
    envelope::seal(KIND, metadata)
}

/// The metadata in an object, of whatever job: a savepoint is restored by another one.
///
/// # Errors
///
/// [`FormatError`]: the bytes are no such object, or not all of it, or changed.
pub fn decode(bytes: &[u8]) -> Result<v1::CheckpointMetadata, FormatError> {
    let metadata = envelope::open(KIND, "the metadata of a checkpoint", bytes)?;
    job_of(&metadata)?;
    Ok(metadata)
}

/// The metadata in an object of this job.
///
/// # Errors
///
/// [`FormatError`], and [`FormatError::OtherJob`] where another job has written it.
pub fn decode_of(job: JobId, bytes: &[u8]) -> Result<v1::CheckpointMetadata, FormatError> {
    let metadata = decode(bytes)?;
    let found = job_of(&metadata)?;
    if found == job { Ok(metadata) } else { Err(FormatError::OtherJob { expected: job, found }) }
}

fn job_of(metadata: &v1::CheckpointMetadata) -> Result<JobId, FormatError> {
    JobId::try_from(&*metadata.job_id).map_err(|cause| FormatError::Malformed { cause: cause.to_string() })
}

/// Writes the metadata of a checkpoint to its place; with this the checkpoint is complete. Answers the object's name.
///
/// # Errors
///
/// [`StoreError::Failed`]. With a remote store it may be there nevertheless.
pub fn write(
    store: &dyn CheckpointStore,
    job: JobId,
    metadata: &v1::CheckpointMetadata,
) -> Result<String, StoreError> {
    let name = layout::metadata_name(job, metadata.checkpoint);
    store.put(&name, &encode(metadata))?;
    Ok(name)
}

/// Reads the metadata of a checkpoint of this job by the name that was remembered for it.
///
/// # Errors
///
/// [`ReadError`].
pub fn read(
    store: &dyn CheckpointStore,
    job: JobId,
    name: &str,
) -> Result<v1::CheckpointMetadata, ReadError> {
    let bytes = store.get(name)?;
    decode_of(job, &bytes).map_err(|cause| ReadError::Format {
        url: store.url().to_owned(),
        name: name.to_owned(),
        cause,
    })
}
