//! Calls that are made for several records at once.
//!
//! A batch is called when it has its size, when its first record has waited for the linger, or when nothing more can come
//! that would fill it: at the end of the input and while the operator is full. Each batch has a linger of its own that
//! ends with it (the timer of a batch that has gone must not send the next one off early: FLINK-38825). Nothing is stored
//! of a batch: its records are in the operator, and a restore gathers them anew.

use std::time::Duration;

use runtime_core::Tick;

use crate::entry::EntryId;

/// When a batch is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    size: usize,
    linger: Option<Duration>,
}

impl BatchOptions {
    /// Batches of at most `size` records. A first record waits at most for the `linger` for others, so that a slow stream
    /// does not wait long; without one it waits until the batch is full or nothing more can come.
    ///
    /// ```
    /// use asyncio::BatchOptions;
    /// use std::time::Duration;
    ///
    /// let options = BatchOptions::new(100, Duration::from_millis(5))?;
    /// assert!(BatchOptions::new(0, None).is_err());
    /// # Ok::<(), asyncio::BatchOptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the size or the linger is zero.
    pub fn new(size: usize, linger: impl Into<Option<Duration>>) -> Result<Self, BatchOptionsError> {
        let linger = linger.into();
        if size == 0 {
            return Err(BatchOptionsError::ZeroSize);
        }
        if linger == Some(Duration::ZERO) {
            return Err(BatchOptionsError::ZeroLinger);
        }
        Ok(Self { size, linger })
    }

    /// The most records that a batch has.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// For how long a first record waits for others; absent: until nothing more can come.
    #[must_use]
    pub const fn linger(&self) -> Option<Duration> {
        self.linger
    }
}

/// Batches that make no sense. Nothing was built.
///
/// ```
/// use asyncio::{BatchOptions, BatchOptionsError};
/// use std::time::Duration;
///
/// assert_eq!(BatchOptions::new(0, None), Err(BatchOptionsError::ZeroSize));
/// assert_eq!(BatchOptions::new(10, Duration::ZERO), Err(BatchOptionsError::ZeroLinger));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchOptionsError {
    /// No record would ever be in a batch.
    #[error("batch size is 0: it must be at least 1")]
    ZeroSize,
    /// No record would wait for another.
    #[error("batch linger is zero: give a positive duration, or none to wait until the batch is full")]
    ZeroLinger,
}

/// One attempt in a batch.
///
/// The example is at [`Batcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchItem<I> {
    /// Whose attempt.
    pub entry: EntryId,
    /// Which attempt.
    pub attempt: u32,
    /// What is asked.
    pub input: I,
}

/// Gathers attempts into batches: the core behind [`BatchCalls`](crate::BatchCalls), for whoever drives an operator by hand.
///
/// ```
/// use asyncio::{AsyncWaitOperator, BatchItem, BatchOptions, Batcher, Effect, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// let mut batcher = Batcher::new(BatchOptions::new(2, None).unwrap());
/// let mut batches = Vec::new();
/// for n in [1, 2, 3] {
///     operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
///     while let Some(Effect::Start { entry, attempt }) = operator.next_effect() {
///         let input = operator.input(entry).unwrap().value;
///         batches.extend(batcher.add(BatchItem { entry, attempt, input }, now));
///     }
/// }
/// batches.extend(batcher.flush());
/// let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug)]
pub struct Batcher<I> {
    options: BatchOptions,
    gathered: Vec<BatchItem<I>>,
    /// When the gathered ones have waited long enough.
    due: Option<Tick>,
}

impl<I> Batcher<I> {
    /// With nothing gathered.
    #[must_use]
    pub const fn new(options: BatchOptions) -> Self {
        Self { options, gathered: Vec::new(), due: None }
    }

    /// Adds an attempt. Gives the batch that is full with it.
    pub fn add(&mut self, item: BatchItem<I>, now: Tick) -> Option<Vec<BatchItem<I>>> {
        if self.gathered.is_empty() {
            self.due = self.options.linger.map(|linger| now + linger);
        }
        self.gathered.push(item);
        if self.gathered.len() < self.options.size {
            return None;
        }
        self.flush()
    }

    /// Takes an attempt out that nobody waits for any more. Says whether it was here; otherwise its batch has gone.
    pub fn remove(&mut self, entry: EntryId, attempt: u32) -> bool {
        let before = self.gathered.len();
        self.gathered.retain(|item| (item.entry, item.attempt) != (entry, attempt));
        if self.gathered.is_empty() {
            self.due = None;
        }
        self.gathered.len() < before
    }

    /// The batch whose linger has ended: at its time, not only after it.
    ///
    /// ```
    /// use asyncio::{BatchItem, BatchOptions, Batcher};
    /// # use asyncio::{AsyncWaitOperator, Effect, Options};
    /// # use runtime_core::{Record, StreamElement};
    /// use runtime_core::Tick;
    /// use std::time::Duration;
    ///
    /// # let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// # operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
    /// # let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
    /// let mut batcher = Batcher::new(BatchOptions::new(100, Duration::from_millis(5)).unwrap());
    /// batcher.add(BatchItem { entry, attempt, input: 1 }, Tick::from_millis(10));
    /// assert_eq!(batcher.next_wakeup(), Some(Tick::from_millis(15)));
    /// assert!(batcher.advance(Tick::from_millis(14)).is_none());
    /// assert_eq!(batcher.advance(Tick::from_millis(15)).unwrap().len(), 1);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn advance(&mut self, now: Tick) -> Option<Vec<BatchItem<I>>> {
        self.due.filter(|&due| due <= now).and_then(|_| self.flush())
    }

    /// What is gathered, if anything is: to be called now, whatever its size.
    pub fn flush(&mut self) -> Option<Vec<BatchItem<I>>> {
        self.due = None;
        (!self.gathered.is_empty()).then(|| std::mem::take(&mut self.gathered))
    }

    /// When [`advance`](Self::advance) has something to do.
    #[must_use]
    pub const fn next_wakeup(&self) -> Option<Tick> {
        self.due
    }

    /// How many attempts are gathered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gathered.len()
    }

    /// Whether nothing is gathered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gathered.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(n: u64) -> BatchItem<u64> {
        BatchItem { entry: EntryId { sequence: n, slot: n as u32 }, attempt: 1, input: n }
    }

    fn batcher(size: usize, linger: Option<u64>) -> Batcher<u64> {
        Batcher::new(BatchOptions::new(size, linger.map(Duration::from_millis)).unwrap())
    }

    fn inputs(batch: Option<Vec<BatchItem<u64>>>) -> Vec<u64> {
        batch.into_iter().flatten().map(|item| item.input).collect()
    }

    #[test]
    fn k05_a_batch_is_called_when_it_is_full_and_the_rest_at_the_end() {
        let mut batcher = batcher(3, None);
        let full: Vec<_> = (1..=5).filter_map(|n| batcher.add(item(n), Tick::ZERO)).collect();
        assert_eq!(full.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
        assert_eq!(inputs(batcher.flush()), [4, 5]);
        assert_eq!(batcher.flush(), None, "no call for an empty input");
    }

    #[test]
    fn k06_a_batch_is_called_when_its_first_record_has_waited_for_the_linger() {
        let mut lingering = batcher(10, Some(50));
        assert_eq!(lingering.add(item(1), Tick::ZERO), None);
        assert_eq!(lingering.advance(Tick::from_millis(49)), None);
        assert_eq!(lingering.next_wakeup(), Some(Tick::from_millis(50)));
        assert_eq!(inputs(lingering.advance(Tick::from_millis(51))), [1]);
        let mut patient = batcher(10, None);
        assert_eq!(patient.add(item(1), Tick::ZERO), None);
        assert_eq!((patient.next_wakeup(), patient.advance(Tick::from_millis(u64::MAX))), (None, None));
        assert_eq!(inputs(patient.flush()), [1], "only the end sends it off");
    }

    #[test]
    fn the_linger_of_a_batch_that_has_gone_does_not_send_the_next_one_off() {
        let mut batcher = batcher(2, Some(50));
        batcher.add(item(1), Tick::ZERO);
        assert!(batcher.add(item(2), Tick::from_millis(10)).is_some());
        batcher.add(item(3), Tick::from_millis(40));
        assert_eq!(batcher.advance(Tick::from_millis(50)), None);
        assert_eq!(inputs(batcher.advance(Tick::from_millis(90))), [3]);
    }

    #[test]
    fn an_abandoned_attempt_leaves_its_batch_and_the_last_one_takes_the_linger_along() {
        let mut batcher = batcher(3, Some(50));
        batcher.add(item(1), Tick::ZERO);
        batcher.add(item(2), Tick::ZERO);
        assert!(batcher.remove(item(1).entry, 1));
        assert!(!batcher.remove(item(2).entry, 2), "another attempt");
        assert!(batcher.remove(item(2).entry, 1));
        assert_eq!((batcher.next_wakeup(), batcher.is_empty()), (None, true));
    }

    #[test]
    fn a_size_or_a_linger_of_zero_is_refused() {
        assert_eq!(BatchOptions::new(0, None), Err(BatchOptionsError::ZeroSize));
        assert_eq!(BatchOptions::new(1, Duration::ZERO), Err(BatchOptionsError::ZeroLinger));
    }
}
