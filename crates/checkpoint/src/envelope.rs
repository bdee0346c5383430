//! What every object of a checkpoint begins with: who made it, what it is, in which version, how long, and a checksum.
//!
//! A message that is cut off or changed can still be a message of protobuf's, with another meaning. The checksum covers
//! all but itself, so that no single change of the object goes unseen.

use runtime_core::JobId;
use xxhash_rust::xxh3::Xxh3;

use crate::store::StoreError;

/// The first bytes of every object.
const MAGIC: &[u8; 8] = b"TIDEGATE";
/// What an object is, behind the magic.
pub(crate) type Kind = [u8; 4];
/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;
/// Magic, kind, version, length and checksum.
const HEADER: usize = 32;
/// What of the header the checksum covers.
const COVERED: usize = 24;

/// The bytes are no object of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// They were not written by this program, or are another of its objects.
    #[error("it is not {expected}, but {found}")]
    NotThis {
        /// What was to be read.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// A newer program has written them.
    #[error(
        "it has version {found}, and this program reads up to {known}; restore it with the program that wrote it or a newer one"
    )]
    NewerVersion {
        /// The version that was found.
        found: u32,
        /// The newest that is read.
        known: u32,
    },
    /// The end is missing.
    #[error("it is cut off: {found} bytes of {expected}")]
    Truncated {
        /// How many bytes were to be there.
        expected: u64,
        /// How many are.
        found: u64,
    },
    /// Bytes were changed or added.
    #[error("it is damaged: its checksum is {found:016x}, and {expected:016x} was written")]
    Damaged {
        /// The checksum that was written.
        expected: u64,
        /// That of what is there.
        found: u64,
    },
    /// The checksum is right and the content still has no meaning: a mistake of the program that wrote it.
    #[error("its content cannot be read: {cause}")]
    Malformed {
        /// What is wrong with it.
        cause: String,
    },
    /// Another job has written it.
    #[error("it belongs to job {found}, not to {expected}")]
    OtherJob {
        /// The job that asks.
        expected: JobId,
        /// The job that wrote it.
        found: JobId,
    },
}

/// An object of a checkpoint cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was read and is not what it should be.
    #[error("`{name}` in the checkpoint store {url} cannot be used: {cause}")]
    Format {
        /// The store.
        url: String,
        /// The object.
        name: String,
        /// What is wrong with it.
        cause: FormatError,
    },
}

/// The object of a message.
pub(crate) fn seal(kind: Kind, message: &impl prost::Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(HEADER + length);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&kind);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes());
    let mut content = Vec::with_capacity(length);
    // Into a vector there is always room.
    let _ = message.encode(&mut content);
    let checksum = checksum(&bytes, &content);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.append(&mut content);
    bytes
}

/// The message in an object.
pub(crate) fn open<M: prost::Message + Default>(
    kind: Kind,
    what: &'static str,
    bytes: &[u8],
) -> Result<M, FormatError> {
    let not_this = |found| FormatError::NotThis { expected: what, found };
    let magic = bytes.get(..MAGIC.len()).unwrap_or(bytes);
    if magic.is_empty() {
        return Err(not_this("empty"));
    }
    if !MAGIC.starts_with(magic) {
        return Err(not_this("something that Tidegate has not written"));
    }
    let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let cut_off = |expected| FormatError::Truncated { expected, found };
    let Some((header, content)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(cut_off(HEADER as u64));
    };
    let (covered, stored) = header.split_at(COVERED);
    let fields = covered.get(MAGIC.len()..).and_then(|rest| rest.split_first_chunk::<4>());
    let fields = fields.and_then(|(kind, rest)| Some((kind, rest.split_first_chunk::<4>()?)));
    let Some((of_kind, (version, length))) = fields else { return Err(cut_off(HEADER as u64)) };
    if *of_kind != kind {
        return Err(not_this("another kind of object"));
    }
    let version = u32::from_le_bytes(*version);
    if version > VERSION {
        return Err(FormatError::NewerVersion { found: version, known: VERSION });
    }
    let expected = number(length).saturating_add(HEADER as u64);
    if found < expected {
        return Err(cut_off(expected));
    }
    let (stored, computed) = (number(stored), checksum(covered, content));
    if found > expected || stored != computed || version == 0 {
        return Err(FormatError::Damaged { expected: stored, found: computed });
    }
    M::decode(content).map_err(|cause| FormatError::Malformed { cause: cause.to_string() })
}

fn checksum(header: &[u8], content: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(header);
    hash.update(content);
    hash.digest()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use wire::v1;

    use super::*;

    const KIND: Kind = *b"TEST";

    fn open_it(bytes: &[u8]) -> Result<v1::OperatorState, FormatError> {
        open(KIND, "a test", bytes)
    }

    fn sealed() -> Vec<u8> {
        seal(KIND, &v1::OperatorState { name: "customer".to_owned(), held: b"1234".to_vec().into() })
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        let good = sealed();
        assert_eq!(open_it(&good).unwrap().name, "customer");
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            open_it(&bytes).unwrap_err()
        };
        assert!(matches!(open_it(b""), Err(FormatError::NotThis { found: "empty", .. })));
        assert!(matches!(open_it(b"{\"json\":1}"), Err(FormatError::NotThis { .. })));
        assert!(matches!(changed(0, b'X'), FormatError::NotThis { .. }));
        assert!(matches!(changed(8, b'X'), FormatError::NotThis { .. }));
        assert_eq!(changed(12, 7), FormatError::NewerVersion { found: 7, known: 1 });
        assert!(matches!(changed(12, 0), FormatError::Damaged { .. }));
        assert!(matches!(changed(16, 1), FormatError::Damaged { .. }));
        assert!(matches!(changed(23, 1), FormatError::Truncated { .. }));
        assert!(matches!(changed(24, 0x55), FormatError::Damaged { .. }));
        assert!(matches!(changed(HEADER, 0x55), FormatError::Damaged { .. }));
        let expected = good.len() as u64;
        assert_eq!(open_it(&good[..40]), Err(FormatError::Truncated { expected, found: 40 }));
        let longer = [&good[..], &[0]].concat();
        assert!(matches!(open_it(&longer), Err(FormatError::Damaged { .. })));
    }

    #[test]
    fn a_right_checksum_over_nonsense_is_still_an_error() {
        let text = v1::OperatorState { name: "x".to_owned(), held: vec![0xff; 20].into() };
        // Field 1 of this message is a number there, and a text here.
        let bytes = seal(KIND, &v1::SubtaskSnapshot { subtask: 7, ..Default::default() });
        assert!(matches!(open_it(&bytes), Err(FormatError::Malformed { .. })));
        assert_eq!(open_it(&seal(KIND, &text)), Ok(text));
    }

    #[test]
    fn the_frame_is_what_is_documented() {
        let bytes = seal(*b"STEP", &v1::OperatorStates { operators: vec![v1::OperatorState::default()] });
        let content = [0x0a, 0];
        assert_eq!(&bytes[..24], b"TIDEGATESTEP\x01\0\0\0\x02\0\0\0\0\0\0\0");
        let covered = [&bytes[..24], &content].concat();
        assert_eq!(bytes[24..32], xxhash_rust::xxh3::xxh3_64(&covered).to_le_bytes());
        assert_eq!(bytes[32..], content);
    }
}
