//! What an operator holds, as a value that can be stored and restored.
//!
//! A snapshot holds inputs, never results (Flink: `_async_wait_operator_state_`): what was in flight is asked again after
//! a restore. It is a list of *units*, one for each operator whose elements it holds. An operator's own snapshot is one
//! unit; a change of parallelism [splits](Snapshot::split) and [combines](Snapshot::combined) them, and keeps each in one
//! piece and in its order, because watermarks mean something only in the order of the stream that they were made for.

mod encoding;
mod rescale;

use runtime_core::{Record, StreamElement, Watermark, WatermarkStatus};

pub use encoding::{DecodeError, EncodeError};

use crate::context::Identity;

/// The elements that one or several operators held at a barrier (Flink: the list state `_async_wait_operator_state_`).
///
/// ```
/// use asyncio::{AsyncWaitOperator, Options, Snapshot};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// operator.push(StreamElement::Record(Record::new(7)), Tick::ZERO).unwrap();
///
/// // Stored...
/// let write = |value: &&u32, into: &mut Vec<u8>| -> Result<(), String> {
///     into.extend(value.to_le_bytes());
///     Ok(())
/// };
/// let bytes = operator.snapshot().unwrap().encode(write).unwrap();
/// // ... and restored.
/// let read = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes);
/// let snapshot = Snapshot::decode(&bytes, read).unwrap();
/// let mut restored = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// restored.restore(snapshot, Tick::ZERO).unwrap();
/// assert_eq!(restored.len(), 1);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot<I> {
    /// The operator's name, for errors.
    pub(crate) operator: String,
    pub(crate) units: Vec<Unit<I>>,
}

/// What one operator held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit<I> {
    /// The number of the element that would have come next. No fewer than there are elements.
    pub(crate) next_sequence: u64,
    /// In the order of admission.
    pub(crate) elements: Vec<Stored<I>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored<I> {
    Record {
        record: Record<I>,
        /// The attempts made so far.
        attempts: u32,
        identity: Identity,
    },
    Watermark(Watermark),
    Status(WatermarkStatus),
}

impl<I> Stored<I> {
    fn element(&self) -> StreamElement<&I> {
        match self {
            Self::Record { record: Record { value, timestamp }, .. } => {
                StreamElement::Record(Record { value, timestamp: *timestamp })
            }
            Self::Watermark(watermark) => StreamElement::Watermark(*watermark),
            Self::Status(status) => StreamElement::Status(*status),
        }
    }

    fn map<J>(self, value: impl FnOnce(I) -> J) -> Stored<J> {
        match self {
            Self::Record { record, attempts, identity } => {
                let record = Record { value: value(record.value), timestamp: record.timestamp };
                Stored::Record { record, attempts, identity }
            }
            Self::Watermark(watermark) => Stored::Watermark(watermark),
            Self::Status(status) => Stored::Status(status),
        }
    }
}

impl<I> Snapshot<I> {
    pub(crate) fn of(operator: &str, next_sequence: u64, elements: Vec<Stored<I>>) -> Self {
        Self { operator: operator.to_owned(), units: vec![Unit { next_sequence, elements }] }
    }

    /// The name of the operator that was stored.
    #[must_use]
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// How many elements are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.iter().map(|unit| unit.elements.len()).sum()
    }

    /// Whether nothing was held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in order, unit by unit.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Options};
    /// use runtime_core::{EpochMillis, Record, StreamElement, Tick, Watermark};
    ///
    /// let mut operator = AsyncWaitOperator::<&str, u32, String>::new(Options::unordered().build()?);
    /// operator.push(StreamElement::Record(Record::new("apple")), Tick::ZERO).unwrap();
    /// operator.push(StreamElement::Watermark(Watermark(EpochMillis(5))), Tick::ZERO).unwrap();
    /// let snapshot = operator.snapshot().unwrap().cloned();
    /// let elements: Vec<_> = snapshot.elements().collect();
    /// assert_eq!(elements[0], StreamElement::Record(Record::new(&"apple")));
    /// assert_eq!(elements[1], StreamElement::Watermark(Watermark(EpochMillis(5))));
    /// assert_eq!(snapshot.attempts().collect::<Vec<_>>(), [1]);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn elements(&self) -> impl Iterator<Item = StreamElement<&I>> + '_ {
        self.units.iter().flat_map(|unit| &unit.elements).map(Stored::element)
    }

    /// The attempts made for each record so far, in the order of [`elements`](Self::elements).
    pub fn attempts(&self) -> impl Iterator<Item = u32> + '_ {
        self.units.iter().flat_map(|unit| &unit.elements).filter_map(|stored| match stored {
            Stored::Record { attempts, .. } => Some(*attempts),
            _ => None,
        })
    }

    /// The same with other values.
    ///
    /// ```
    /// # use asyncio::{AsyncWaitOperator, Options};
    /// # use runtime_core::{Record, StreamElement, Tick};
    /// # let mut operator = AsyncWaitOperator::<String, u32, String>::new(Options::ordered().build()?);
    /// # operator.push(StreamElement::Record(Record::new("7".to_owned())), Tick::ZERO).unwrap();
    /// # let stored_as_text = operator.snapshot().unwrap().cloned();
    /// // What another version of the program has stored.
    /// let numbers = stored_as_text.map(|text: String| text.parse::<u32>().unwrap_or(0));
    /// assert_eq!(numbers.elements().next(), Some(StreamElement::Record(Record::new(&7))));
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    #[must_use]
    pub fn map<J>(self, mut value: impl FnMut(I) -> J) -> Snapshot<J> {
        let units = self.units.into_iter().map(|Unit { next_sequence, elements }| Unit {
            next_sequence,
            elements: elements.into_iter().map(|stored| stored.map(&mut value)).collect(),
        });
        Snapshot { operator: self.operator, units: units.collect() }
    }
}

impl<I: Clone> Snapshot<&I> {
    /// The same with values of its own.
    #[must_use]
    pub fn cloned(self) -> Snapshot<I> {
        self.map(I::clone)
    }
}

/// A snapshot was not restored.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Options, RestoreError};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().name("prices").build()?);
/// operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
/// let snapshot = operator.snapshot().unwrap().cloned();
/// let refused = operator.restore(snapshot, Tick::ZERO);
/// assert_eq!(refused, Err(RestoreError::NotFresh { operator: "prices".to_owned() }));
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The operator has taken something in before, which stored elements must not come after.
    #[error(
        "`{operator}` has taken elements in already: restore a snapshot into a new operator, before anything else"
    )]
    NotFresh {
        /// The operator's name.
        operator: String,
    },
}
