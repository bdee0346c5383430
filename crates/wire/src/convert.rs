//! Identifiers to and from the wire.
//!
//! Towards the wire is `From`. From the wire a conversion can fail, and its error names the field: a message with a bad
//! identifier is refused as a whole.

use crate::error::RpcError;
use crate::v1;
use bytes::Bytes;
use runtime_core::{
    AllocationId, AttemptId, Epoch, Incarnation, InstanceId, JobId, ParseIdError, ResourceId, SlotId,
    VertexId,
};

/// A message from the wire makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A field is no identifier of its kind.
    #[error("field `{field}`: {source}")]
    Id {
        /// The field's name in the `.proto` file.
        field: &'static str,
        /// What is wrong with it.
        source: ParseIdError,
    },
    /// A field that must be there is not.
    #[error("field `{field}` is missing")]
    Missing {
        /// The field's name in the `.proto` file.
        field: &'static str,
    },
    /// A field has a value that its type allows and its meaning does not.
    #[error("field `{field}`: {reason}")]
    Value {
        /// The field's name in the `.proto` file.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<ConvertError> for RpcError {
    fn from(error: ConvertError) -> Self {
        Self::application(format!("the message is malformed: {error}"))
    }
}

/// The identifiers that travel as sixteen bytes.
pub trait WireId: Sized {
    /// The identifier as it travels.
    fn to_wire(&self) -> Bytes;

    /// The identifier in the field of this name.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Id`], where the field does not hold sixteen bytes.
    fn from_wire(bytes: &[u8], field: &'static str) -> Result<Self, ConvertError>;

    /// The identifier in a field that may be empty.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Id`], where the field holds something else than nothing or sixteen bytes.
    fn from_wire_or_empty(bytes: &[u8], field: &'static str) -> Result<Option<Self>, ConvertError> {
        if bytes.is_empty() { Ok(None) } else { Self::from_wire(bytes, field).map(Some) }
    }
}

macro_rules! wire_ids {
    ($($id:ident),*) => {
        $(impl WireId for $id {
            fn to_wire(&self) -> Bytes {
                Bytes::copy_from_slice(&self.to_bytes())
            }

            fn from_wire(bytes: &[u8], field: &'static str) -> Result<Self, ConvertError> {
                Self::try_from(bytes).map_err(|source| ConvertError::Id { field, source })
            }
        })*
    };
}

wire_ids!(JobId, AllocationId, InstanceId, Incarnation);

/// The resource id in the field of this name.
///
/// # Errors
///
/// [`ConvertError::Id`], where the text is none.
pub fn resource_id(text: &str, field: &'static str) -> Result<ResourceId, ConvertError> {
    text.parse().map_err(|source| ConvertError::Id { field, source })
}

/// The message in a field that must be there.
///
/// # Errors
///
/// [`ConvertError::Missing`], where it is not.
pub fn required<T>(message: Option<T>, field: &'static str) -> Result<T, ConvertError> {
    message.ok_or(ConvertError::Missing { field })
}

impl From<&AttemptId> for v1::AttemptId {
    fn from(id: &AttemptId) -> Self {
        let AttemptId { job, term, vertex, subtask, attempt } = *id;
        Self { job_id: job.to_wire(), term: term.0, vertex: vertex.0, subtask, attempt }
    }
}

impl From<AttemptId> for v1::AttemptId {
    fn from(id: AttemptId) -> Self {
        Self::from(&id)
    }
}

impl TryFrom<&v1::AttemptId> for AttemptId {
    type Error = ConvertError;

    fn try_from(wire: &v1::AttemptId) -> Result<Self, ConvertError> {
        Ok(Self {
            job: JobId::from_wire(&wire.job_id, "attempt.job_id")?,
            term: Epoch(wire.term),
            vertex: VertexId(wire.vertex),
            subtask: wire.subtask,
            attempt: wire.attempt,
        })
    }
}

/// The attempt in the field of this name.
///
/// # Errors
///
/// [`ConvertError`], where it is missing or its job id is none.
pub fn attempt_id(wire: Option<&v1::AttemptId>, field: &'static str) -> Result<AttemptId, ConvertError> {
    required(wire, field)?.try_into()
}

impl From<&SlotId> for v1::SlotId {
    fn from(id: &SlotId) -> Self {
        Self { task_executor: id.task_executor.to_string(), index: id.index }
    }
}

impl TryFrom<&v1::SlotId> for SlotId {
    type Error = ConvertError;

    fn try_from(wire: &v1::SlotId) -> Result<Self, ConvertError> {
        Ok(Self { task_executor: resource_id(&wire.task_executor, "slot.task_executor")?, index: wire.index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_attempt_comes_back_from_the_wire(job: u128, term: u64, vertex: u32, subtask: u32, attempt: u32) {
            let (job, term, vertex) = (JobId::from_u128(job), Epoch(term), VertexId(vertex));
            let id = AttemptId { job, term, vertex, subtask, attempt };
            prop_assert_eq!(AttemptId::try_from(&v1::AttemptId::from(id)), Ok(id));
        }
    }

    #[test]
    fn a_bad_length_names_the_field() {
        let error = JobId::from_wire(&[0; 15], "job_id").unwrap_err();
        assert_eq!(error.to_string(), "field `job_id`: `15 bytes` is no job id: expected sixteen bytes");
        let wire = v1::AttemptId { job_id: Bytes::from_static(b"short"), ..Default::default() };
        assert!(matches!(AttemptId::try_from(&wire), Err(ConvertError::Id { field: "attempt.job_id", .. })));
    }

    #[test]
    fn an_empty_field_is_no_id_or_none_as_the_reader_wants_it() {
        assert_eq!(InstanceId::from_wire_or_empty(&[], "instance_id"), Ok(None));
        assert!(InstanceId::from_wire_or_empty(&[1], "instance_id").is_err());
        assert!(InstanceId::from_wire(&[], "instance_id").is_err());
    }

    #[test]
    fn a_slot_comes_back_from_the_wire_and_a_bad_name_is_refused() {
        let slot = SlotId { task_executor: "te-1".parse().unwrap(), index: 3 };
        assert_eq!(SlotId::try_from(&v1::SlotId::from(&slot)), Ok(slot));
        let bad = v1::SlotId { task_executor: "a b".to_owned(), index: 0 };
        assert!(matches!(SlotId::try_from(&bad), Err(ConvertError::Id { field: "slot.task_executor", .. })));
    }

    #[test]
    fn a_missing_attempt_names_the_field() {
        assert_eq!(attempt_id(None, "attempt"), Err(ConvertError::Missing { field: "attempt" }));
    }
}
