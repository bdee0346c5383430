//! The object with the state of one subtask's steps.

use wire::v1;

use crate::envelope::{self, FormatError};

const KIND: envelope::Kind = *b"STEP";

/// The object of these states.
#[must_use]
pub fn encode(states: &v1::OperatorStates) -> Vec<u8> {
    envelope::seal(KIND, states)
}

/// The states in an object.
///
/// # Errors
///
/// [`FormatError`]: the bytes are no such object, or not all of it, or changed.
pub fn decode(bytes: &[u8]) -> Result<v1::OperatorStates, FormatError> {
    envelope::open(KIND, "the state of a task's steps", bytes)
}
