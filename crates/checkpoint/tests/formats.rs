//! Every object is read back as it was written, and no change of it goes unseen.

// Everything here is a test; the lints know only functions that are marked as one.
#![allow(clippy::indexing_slicing)]

use checkpoint::{FormatError, metadata, operators};
use proptest::prelude::*;
use runtime_core::JobId;
use wire::v1;

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..max)
}

prop_compose! {
    fn states()(held in prop::collection::vec(("[a-z]{0,8}", bytes(200)), 0..4)) -> v1::OperatorStates {
        let operators = held.into_iter().map(|(name, held)| v1::OperatorState { name, held: held.into() });
        v1::OperatorStates { operators: operators.collect() }
    }
}

prop_compose! {
    fn subtask()(
        (subtask, finished) in any::<(u32, bool)>(),
        state in prop::option::of(bytes(60)),
        staged in prop::collection::vec(("[a-z/.]{1,20}", any::<u64>(), any::<Option<u64>>()), 0..3),
        reading in any::<Option<(u32, u64, u64)>>(),
    ) -> v1::SubtaskSnapshot {
        let state = state.map(|bytes| v1::StateHandle {
            length: bytes.len() as u64,
            checksum: 7,
            place: Some(v1::state_handle::Place::Inline(bytes.into())),
        });
        let staged = staged.into_iter().map(|(path, length, offset)| {
            v1::StagedFile { staged_path: path.clone(), final_path: path, length, offset }
        });
        let reading = reading.map(|(split, offset, line)| v1::SplitPosition {
            split,
            position: Some(v1::ReadPosition { offset, line }),
        });
        let source = Some(v1::SourceProgress { finished: vec![subtask], reading });
        let snapshot = v1::TaskSnapshot { state, staged: staged.collect(), source, ..Default::default() };
        v1::SubtaskSnapshot { subtask, finished, snapshot: Some(snapshot) }
    }
}

prop_compose! {
    fn whole()(
        (checkpoint, job, begun_at, savepoint) in any::<(u64, u128, i64, bool)>(),
        job_file in bytes(100),
        subtasks in prop::collection::vec(subtask(), 0..4),
    ) -> v1::CheckpointMetadata {
        let job = JobId::from_u128(job).to_bytes().to_vec();
        v1::CheckpointMetadata {
            checkpoint,
            job_id: job.clone().into(),
            origin_job_id: job.into(),
            begun_at,
            savepoint,
            job_file: job_file.into(),
            vertices: vec![v1::VertexSnapshot { vertex: 1, parallelism: 2, subtasks, ..Default::default() }],
            ..Default::default()
        }
    }
}

/// Every truncation, and every change of one byte, is an error.
fn changes_are_seen<T: std::fmt::Debug>(
    object: &[u8],
    flip: u8,
    decode: impl Fn(&[u8]) -> Result<T, FormatError>,
) -> Result<(), TestCaseError> {
    for end in 0..object.len() {
        prop_assert!(decode(&object[..end]).is_err(), "cut to {end} of {} bytes", object.len());
    }
    for at in 0..object.len() {
        let mut changed = object.to_vec();
        changed[at] ^= flip;
        prop_assert!(decode(&changed).is_err(), "byte {at} of {} changed by {flip:#x}", object.len());
    }
    Ok(())
}

proptest! {
    #[test]
    fn states_are_read_back_and_changes_are_seen(states in states(), flip in 1..=255_u8) {
        let object = operators::encode(&states);
        prop_assert_eq!(operators::decode(&object), Ok(states));
        changes_are_seen(&object, flip, operators::decode)?;
    }

    #[test]
    fn metadata_is_read_back_and_changes_are_seen(metadata in whole(), flip in 1..=255_u8) {
        let object = metadata::encode(&metadata);
        let job = JobId::try_from(&*metadata.job_id).unwrap();
        prop_assert_eq!(metadata::decode_of(job, &object), Ok(metadata));
        changes_are_seen(&object, flip, metadata::decode)?;
    }

    #[test]
    fn bytes_of_anybody_are_no_object(bytes in bytes(300)) {
        prop_assert!(metadata::decode(&bytes).is_err());
        prop_assert!(operators::decode(&bytes).is_err());
    }
}

#[test]
fn another_job_and_another_kind_of_object_are_told_apart() {
    let job = JobId::from_u128(1);
    let made = v1::CheckpointMetadata { job_id: job.to_bytes().to_vec().into(), ..Default::default() };
    let object = metadata::encode(&made);
    let other = JobId::from_u128(2);
    assert_eq!(
        metadata::decode_of(other, &object),
        Err(FormatError::OtherJob { expected: other, found: job })
    );
    assert!(matches!(operators::decode(&object), Err(FormatError::NotThis { .. })));
    let nobody = metadata::encode(&v1::CheckpointMetadata::default());
    assert!(matches!(metadata::decode(&nobody), Err(FormatError::Malformed { .. })));
}
