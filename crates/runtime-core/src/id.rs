//! Who is who: identifiers, epochs and incarnations.
//!
//! Flink: job, vertex and allocation ids are sixteen bytes, printed as 32 lower-case hexadecimal digits; an attempt is
//! named by its graph, vertex, subtask and attempt number. A *role* that can be led by another process later is fenced
//! by an [`Epoch`]; a *process* that may come back under the same name is told apart by its [`Incarnation`].
//!
//! Nothing here draws randomness: whoever makes an id passes the bytes in, so that a simulation can seed them.

mod resource;

pub use resource::ResourceId;

use std::fmt;
use std::str::FromStr;

/// A text or a byte string is no identifier of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {kind}: expected {expected}")]
pub struct ParseIdError {
    /// What was to be read.
    pub kind: &'static str,
    /// What would have been right.
    pub expected: &'static str,
    /// What was found, cut to 64 characters.
    pub text: String,
}

impl ParseIdError {
    fn new(kind: &'static str, expected: &'static str, text: &str) -> Self {
        Self { kind, expected, text: text.chars().take(64).collect() }
    }
}

macro_rules! sixteen_bytes {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// An id of these bits.
            #[must_use]
            pub const fn from_u128(bits: u128) -> Self {
                Self(bits)
            }

            /// The bits of the id.
            #[must_use]
            pub const fn as_u128(self) -> u128 {
                self.0
            }

            /// The id as it travels: sixteen bytes, most significant first.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
        }

        impl TryFrom<&[u8]> for $name {
            type Error = ParseIdError;

            fn try_from(bytes: &[u8]) -> Result<Self, ParseIdError> {
                <[u8; 16]>::try_from(bytes)
                    .map(|b| Self(u128::from_be_bytes(b)))
                    .map_err(|_| ParseIdError::new($kind, "sixteen bytes", &format!("{} bytes", bytes.len())))
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let hex = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                if !hex {
                    return Err(ParseIdError::new($kind, "32 lower-case hexadecimal digits", text));
                }
                u128::from_str_radix(text, 16)
                    .map(Self)
                    .map_err(|_| ParseIdError::new($kind, "32 lower-case hexadecimal digits", text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

sixteen_bytes!(
    /// A job, from its submission to its end, through every restart and savepoint.
    JobId,
    "job id"
);
sixteen_bytes!(
    /// One promise of a slot to a job (Flink: `AllocationID`).
    AllocationId,
    "allocation id"
);
sixteen_bytes!(
    /// One registration of a task executor at the resource manager (Flink: `InstanceID`).
    InstanceId,
    "instance id"
);
sixteen_bytes!(
    /// One life of a process: drawn at its start, sent with everything it says.
    Incarnation,
    "incarnation"
);

/// The term of a master. A higher one is newer; what carries an older one is refused.
///
/// A master draws its epoch at its start as `max(stored + 1, wall clock in milliseconds)` and stores it before it
/// serves, so that it grows even when the folder with the stored one is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Said by a caller that has not yet heard from this master; the answer brings the current one.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the caller knows an epoch at all.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A slot of a task executor, counted from 0 (Flink: `SlotID`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId {
    /// Whose slot.
    pub task_executor: ResourceId,
    /// Which of its slots.
    pub index: u32,
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.task_executor, self.index)
    }
}

/// A vertex of a job graph: its place in the plan, stable for one plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VertexId(pub u32);

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// One life of one subtask (Flink: `ExecutionAttemptID`). Never used twice: the term of the job master is part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptId {
    /// The job.
    pub job: JobId,
    /// The job master's term in which the attempt was made.
    pub term: Epoch,
    /// The vertex of the job graph.
    pub vertex: VertexId,
    /// The subtask, from 0.
    pub subtask: u32,
    /// The attempt at this subtask within the term, from 0.
    pub attempt: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, term, vertex, subtask, attempt } = self;
        write!(f, "{job}-{term}-{vertex}-{subtask}-{attempt}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_text_and_from_its_bytes() {
        let id = JobId::from_u128(0xab);
        assert_eq!(id.to_string(), "000000000000000000000000000000ab");
        assert_eq!(id.to_string().parse::<JobId>(), Ok(id));
        assert_eq!(JobId::try_from(id.to_bytes().as_slice()), Ok(id));
    }

    #[test]
    fn an_id_of_other_length_case_or_alphabet_is_refused() {
        for text in ["", "ab", "000000000000000000000000000000AB", "00000000000000000000000000000zab"] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
        assert!(JobId::try_from([0_u8; 15].as_slice()).is_err());
    }
}
