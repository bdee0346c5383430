//! Snapshots as bytes.
//!
//! All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `AWAITOPS` |
//! | 2 | version, 1 |
//! | 2 + n | length and text of the operator's name |
//! | 4 | number of units |
//!
//! then for each unit 8 bytes of its next number, 8 of its length, and for each element a byte of its kind: 1 record, 2
//! watermark (8: milliseconds), 3 idle, 4 active. A record goes on with a byte, 0 or 1, and 8 of its timestamp where that
//! is 1; 4 of its attempts; 8 and 8 of its identity; 4 + n of its value, which the caller writes.
//!
//! A reader of version *n* reads versions 1 to *n*. Nothing is trusted: no length is believed before the bytes are there.

use runtime_core::{EpochMillis, Record, Watermark, WatermarkStatus};

use super::{Snapshot, Stored, Unit};
use crate::context::Identity;

const MAGIC: &[u8; 8] = b"AWAITOPS";
const VERSION: u16 = 1;

/// Beyond every number that an operator gives out: at a thousand million elements a second for more than a century.
pub(super) const LAST_NUMBER: u64 = 1 << 62;

const RECORD: u8 = 1;
const WATERMARK: u8 = 2;
const IDLE: u8 = 3;
const ACTIVE: u8 = 4;

/// A snapshot could not be written. No bytes of it are left.
///
/// ```
/// use asyncio::{AsyncWaitOperator, EncodeError, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let mut operator = AsyncWaitOperator::<&str, u32, String>::new(Options::ordered().name("prices").build()?);
/// operator.push(StreamElement::Record(Record::new("apple")), Tick::ZERO).unwrap();
/// let error = operator.snapshot().unwrap().encode(|_, _| Err("no space")).unwrap_err();
/// assert_eq!(error, EncodeError::Value { operator: "prices".to_owned(), index: 0, error: "no space" });
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError<X> {
    /// The value of a record could not be written.
    #[error("snapshot of `{operator}`: the value of element {index} could not be written: {error}")]
    Value {
        /// The operator's name.
        operator: String,
        /// The element's place, from 0.
        index: usize,
        /// What the writer said.
        error: X,
    },
    /// The value of a record is longer than 4 GiB.
    #[error("snapshot of `{operator}`: the value of element {index} has {length} bytes, more than 4 GiB")]
    TooLong {
        /// The operator's name.
        operator: String,
        /// The element's place, from 0.
        index: usize,
        /// The value's length in bytes.
        length: usize,
    },
}

/// Bytes could not be read as a snapshot. Nothing was restored.
///
/// ```
/// use asyncio::{DecodeError, Snapshot};
///
/// let read = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).map_err(|error| error.to_string());
/// assert_eq!(Snapshot::decode(b"something else", read), Err(DecodeError::NotASnapshot));
/// assert_eq!(
///     Snapshot::decode(b"AWAITOPS\x01\x00", read),
///     Err(DecodeError::Truncated { offset: 10, wanted: 2 })
/// );
/// assert_eq!(Snapshot::decode(b"AWAITOPS\x09\x00", read), Err(DecodeError::Version { found: 9, known: 1 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError<X> {
    /// The bytes do not begin like a snapshot.
    #[error("not a snapshot of an async wait operator: it does not begin with `AWAITOPS`")]
    NotASnapshot,
    /// A newer program has written it.
    #[error(
        "the snapshot has version {found}; this program reads versions 1 to {known}: use the program that wrote it"
    )]
    Version {
        /// The version found.
        found: u16,
        /// The newest version that can be read.
        known: u16,
    },
    /// The bytes end too early.
    #[error("the snapshot is cut short: {wanted} more bytes were expected at byte {offset}")]
    Truncated {
        /// Where the missing bytes should begin.
        offset: usize,
        /// How many are expected there at least.
        wanted: usize,
    },
    /// A byte or a text has a value that it never has.
    #[error("the snapshot is damaged: {what} at byte {offset}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// Where.
        offset: usize,
    },
    /// The value of a record could not be read.
    #[error("the value of element {index}, at byte {offset} of the snapshot, could not be read: {error}")]
    Value {
        /// The element's place, from 0.
        index: usize,
        /// Where the value begins.
        offset: usize,
        /// What the reader said.
        error: X,
    },
}

impl<I> Snapshot<I> {
    /// The snapshot as bytes, each value as `write` writes it.
    ///
    /// # Errors
    ///
    /// When `write` fails, or a value is longer than 4 GiB. The operator goes on as if nothing had been asked.
    pub fn encode<X>(
        &self,
        mut write: impl FnMut(&I, &mut Vec<u8>) -> Result<(), X>,
    ) -> Result<Vec<u8>, EncodeError<X>> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        let name = cut(&self.operator, usize::from(u16::MAX));
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend((self.units.len() as u32).to_le_bytes());
        let mut index = 0;
        for Unit { next_sequence, elements } in &self.units {
            bytes.extend(next_sequence.to_le_bytes());
            bytes.extend((elements.len() as u64).to_le_bytes());
            for stored in elements {
                match stored {
                    Stored::Record { record: Record { value, timestamp }, attempts, identity } => {
                        bytes.push(RECORD);
                        bytes.push(timestamp.is_some().into());
                        bytes.extend(timestamp.iter().flat_map(|at| at.0.to_le_bytes()));
                        bytes.extend(attempts.to_le_bytes());
                        bytes.extend(identity.scope.to_le_bytes());
                        bytes.extend(identity.sequence.to_le_bytes());
                        let length_at = bytes.len();
                        bytes.extend([0; 4]);
                        let begins = bytes.len();
                        let operator = || self.operator.clone();
                        write(value, &mut bytes).map_err(|error| EncodeError::Value {
                            operator: operator(),
                            index,
                            error,
                        })?;
                        let length = bytes.len().saturating_sub(begins);
                        let stated = u32::try_from(length).map_err(|_| EncodeError::TooLong {
                            operator: operator(),
                            index,
                            length,
                        })?;
                        if let Some(place) = bytes.get_mut(length_at..begins) {
                            place.copy_from_slice(&stated.to_le_bytes());
                        }
                    }
                    Stored::Watermark(Watermark(at)) => {
                        bytes.push(WATERMARK);
                        bytes.extend(at.0.to_le_bytes());
                    }
                    Stored::Status(WatermarkStatus::Idle) => bytes.push(IDLE),
                    Stored::Status(WatermarkStatus::Active) => bytes.push(ACTIVE),
                }
                index += 1;
            }
        }
        Ok(bytes)
    }

    /// The snapshot in these bytes, each value as `read` reads it from its own bytes.
    ///
    /// # Errors
    ///
    /// When they are no snapshot, of a newer version, cut short or damaged, or `read` fails: says what and where.
    pub fn decode<X>(
        bytes: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<I, X>,
    ) -> Result<Self, DecodeError<X>> {
        let mut reader = Reader { bytes, offset: 0 };
        let magic: [u8; 8] = reader.array().map_err(|_: DecodeError<X>| DecodeError::NotASnapshot)?;
        if magic != *MAGIC {
            return Err(DecodeError::NotASnapshot);
        }
        let version = u16::from_le_bytes(reader.array()?);
        if version == 0 || version > VERSION {
            return Err(DecodeError::Version { found: version, known: VERSION });
        }
        let name_length = u16::from_le_bytes(reader.array()?);
        let name_at = reader.offset;
        let operator = std::str::from_utf8(reader.take(name_length.into())?)
            .map_err(|_| DecodeError::Damaged { what: "a name that is no text", offset: name_at })?
            .to_owned();
        let unit_count = u32::from_le_bytes(reader.array()?);
        let (mut units, mut index) = (Vec::new(), 0);
        for _ in 0..unit_count {
            let next_sequence = u64::from_le_bytes(reader.array()?);
            if next_sequence > LAST_NUMBER {
                let offset = reader.offset - 8;
                return Err(DecodeError::Damaged { what: "a number beyond all that are given out", offset });
            }
            let count = u64::from_le_bytes(reader.array()?);
            if count > next_sequence {
                let offset = reader.offset - 8;
                return Err(DecodeError::Damaged { what: "more elements than were ever taken in", offset });
            }
            let mut elements = Vec::new();
            for _ in 0..count {
                elements.push(reader.stored(index, &mut read)?);
                index += 1;
            }
            units.push(Unit { next_sequence, elements });
        }
        if reader.offset < bytes.len() {
            return Err(DecodeError::Damaged { what: "bytes behind the end", offset: reader.offset });
        }
        Ok(Self { operator, units })
    }
}

/// The text's beginning, at most this many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    fn take<X>(&mut self, count: usize) -> Result<&'a [u8], DecodeError<X>> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let taken = rest
            .get(..count)
            .ok_or_else(|| DecodeError::Truncated { offset: self.bytes.len(), wanted: count - rest.len() })?;
        self.offset += count;
        Ok(taken)
    }

    fn array<const N: usize, X>(&mut self) -> Result<[u8; N], DecodeError<X>> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn stored<I, X>(
        &mut self,
        index: usize,
        read: &mut impl FnMut(&[u8]) -> Result<I, X>,
    ) -> Result<Stored<I>, DecodeError<X>> {
        let offset = self.offset;
        let [kind] = self.array()?;
        Ok(match kind {
            RECORD => {
                let timestamp = match self.array()? {
                    [0] => None,
                    [1] => Some(EpochMillis(i64::from_le_bytes(self.array()?))),
                    _ => return Err(DecodeError::Damaged { what: "an unknown timestamp", offset }),
                };
                let attempts = u32::from_le_bytes(self.array()?);
                let scope = u64::from_le_bytes(self.array()?);
                let sequence = u64::from_le_bytes(self.array()?);
                let length = u32::from_le_bytes(self.array()?);
                let begins = self.offset;
                let value = read(self.take(length as usize)?).map_err(|error| DecodeError::Value {
                    index,
                    offset: begins,
                    error,
                })?;
                let identity = Identity { scope, sequence };
                Stored::Record { record: Record { value, timestamp }, attempts, identity }
            }
            WATERMARK => Stored::Watermark(Watermark(EpochMillis(i64::from_le_bytes(self.array()?)))),
            IDLE => Stored::Status(WatermarkStatus::Idle),
            ACTIVE => Stored::Status(WatermarkStatus::Active),
            _ => return Err(DecodeError::Damaged { what: "an unknown kind of element", offset }),
        })
    }
}
