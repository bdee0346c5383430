//! Elements beyond the capacity: what waits before a full operator when a checkpoint begins, and what comes from one.
//!
//! A full operator must not hold up a barrier (Flink: FLINK-34704, FLINK-39835). So what waits before it is taken in as
//! *parked*: in order, not started, outside the capacity, and part of the snapshot. A restore is the same from the other
//! end: everything stored is parked, however little room there is (Flink: FLINK-7949), and takes places as they come free,
//! before any new input.

use runtime_core::{Record, StreamElement, Tick};

use super::{AsyncWaitOperator, Refused, RefusedReason};
use crate::context::Identity;
use crate::entry::Past;
use crate::key::KeySelector;
use crate::output::Output;
use crate::queue::Control;
use crate::snapshot::{RestoreError, Snapshot, Stored, Unit};

#[derive(Debug)]
pub(super) struct Parked<I> {
    element: Parkable<I>,
    past: Option<Box<Past>>,
}

/// What takes a place.
#[derive(Debug)]
enum Parkable<I> {
    Record(Record<I>),
    Control(Control),
}

impl<I> From<Control> for Parked<I> {
    fn from(control: Control) -> Self {
        Self { element: Parkable::Control(control), past: None }
    }
}

/// No snapshot was taken: a record has failed under [`FailurePolicy::Fail`](crate::FailurePolicy::Fail), and a snapshot
/// without it would lose it. The way out is the last snapshot before it.
///
/// ```
/// use asyncio::{AsyncWaitOperator, CallError, Effect, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(Options::ordered().name("prices").build()?);
/// operator.push(StreamElement::Record(Record::new(1)), now).unwrap();
/// let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
/// operator.complete(entry, attempt, Err(CallError::Error("gone")), now);
/// assert!(operator.has_failed());
/// assert_eq!(operator.snapshot().unwrap_err().operator, "prices");
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{operator}` takes no snapshot after a failed record: a restore would lose the record; restore an earlier one"
)]
pub struct SnapshotRefused {
    /// The operator's name.
    pub operator: String,
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Takes in an element whether or not there is room, for a snapshot that must not wait for any (Flink: FLINK-34704,
    /// where it does). With room it is as if
    /// [pushed](Self::push); without, it is parked, and starts before whatever is pushed later.
    ///
    /// Who parks bounds what is parked: it counts against no capacity.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let record = |n| StreamElement::Record(Record::new(n));
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().capacity(1).build()?);
    /// operator.push(record(1), Tick::ZERO).unwrap();
    /// operator.park(record(2), Tick::ZERO).unwrap();
    /// assert_eq!((operator.len(), operator.parked()), (1, 1));
    /// assert_eq!(operator.snapshot().unwrap().len(), 2);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the element back when the input has ended.
    pub fn park(&mut self, element: StreamElement<I>, now: Tick) -> Result<(), Refused<I>> {
        let now = self.at(now);
        if self.ended {
            return Err(Refused { element, reason: RefusedReason::Ended });
        }
        match element {
            StreamElement::LatencyMarker(marker) => self.leaving.push_back(Output::LatencyMarker(marker)),
            StreamElement::Barrier(barrier) => self.leaving.push_back(Output::Barrier(barrier)),
            StreamElement::Record(record) => {
                self.parked.push_back(Parked { element: Parkable::Record(record), past: None });
            }
            StreamElement::Watermark(watermark) => {
                self.parked.push_back(Control::Watermark(watermark).into());
            }
            StreamElement::Status(status) => self.parked.push_back(Control::Status(status).into()),
        }
        self.admit_parked(now);
        Ok(())
    }

    /// How many elements are parked.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Gives free places to parked elements, in order.
    pub(super) fn admit_parked(&mut self, now: Tick) {
        while self.has_place()
            && let Some(Parked { element, past }) = self.parked.pop_front()
        {
            match element {
                Parkable::Record(record) => self.admit(record, past, now),
                Parkable::Control(control) => self.admit_control(control),
            }
        }
    }

    /// What is held, as it was taken in and in that order, parked elements last (Flink: `snapshotState`, which has no order
    /// within a segment). Never a result: after a restore the calls
    /// are made again, so calls are made *at least* once, and what has left is not in the snapshot.
    ///
    /// Nothing is drained or waited for. With the snapshot of what comes before the operator, taken at the same barrier, it
    /// holds every record once.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Effect, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let now = Tick::ZERO;
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// for n in [1, 2] {
    ///     operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
    /// }
    /// while let Some(Effect::Start { entry, attempt }) = operator.next_effect() {
    ///     operator.complete(entry, attempt, Ok(0), now);
    /// }
    /// // Both are done. The first has left, the second would be asked again.
    /// operator.next_output();
    /// let stored = operator.snapshot().unwrap().cloned();
    /// assert_eq!(stored.elements().collect::<Vec<_>>(), [StreamElement::Record(Record::new(&2))]);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Refused after a record has failed under [`FailurePolicy::Fail`](crate::FailurePolicy::Fail).
    pub fn snapshot(&self) -> Result<Snapshot<&I>, SnapshotRefused> {
        if self.failed {
            return Err(SnapshotRefused { operator: self.options.name().to_owned() });
        }
        let scope = self.options.idempotency_scope();
        let records = self.entries.iter().filter_map(|(_, entry)| {
            let Record { value, timestamp } = entry.input.as_ref()?;
            let record = Record { value, timestamp: *timestamp };
            let (attempts, identity) = (entry.attempts().count, entry.identity(scope));
            Some((entry.sequence, Stored::Record { record, attempts, identity }))
        });
        let controls =
            self.queue.controls().into_iter().map(|(sequence, control)| (sequence, control.stored()));
        let mut held: Vec<(u64, Stored<&I>)> = records.chain(controls).collect();
        held.sort_unstable_by_key(|&(sequence, _)| sequence);
        let parked = self.parked.iter().zip(self.next_sequence..);
        let elements = held.into_iter().map(|(_, stored)| stored).chain(parked.map(|(parked, sequence)| {
            let past = parked.past.as_deref();
            match &parked.element {
                Parkable::Control(control) => control.stored(),
                Parkable::Record(Record { value, timestamp }) => Stored::Record {
                    record: Record { value, timestamp: *timestamp },
                    attempts: past.map_or(0, |past| past.attempts),
                    identity: past.map_or(Identity { scope, sequence }, |past| past.identity),
                },
            }
        }));
        let next_sequence = self.next_sequence + self.parked.len() as u64;
        Ok(Snapshot::of(self.options.name(), next_sequence, elements.collect()))
    }

    /// Takes in what a snapshot holds: everything is parked in its order and starts as there is room, each record with its
    /// whole budget and all its retries, before any new input. The attempts that were made before count on in
    /// [`CallContext::attempt`](crate::CallContext::attempt) and [`Attempts::count`](crate::Attempts::count).
    ///
    /// Order, capacity, timeouts and retries of this operator need not be those of the one that was stored. Where the
    /// snapshots of several subtasks were [combined](Snapshot::combined), a watermark stands only where every one of them
    /// has passed it, and statuses are left out.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Effect, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let now = Tick::ZERO;
    /// let mut before = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().capacity(5).build()?);
    /// for n in 1..=5 {
    ///     before.push(StreamElement::Record(Record::new(n)), now).unwrap();
    /// }
    /// let stored = before.snapshot().unwrap().cloned();
    ///
    /// // With fewer places all are restored none the less.
    /// let mut after = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().capacity(2).build()?);
    /// after.restore(stored, now).unwrap();
    /// assert_eq!((after.len(), after.parked()), (2, 3));
    /// // The call was in flight at the snapshot; this is the second one about the record.
    /// let Some(Effect::Start { entry, attempt: 1 }) = after.next_effect() else { panic!("it starts") };
    /// assert_eq!(after.context(entry).unwrap().attempt(), 2);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the operator has taken anything in before. It is left as it was.
    pub fn restore(&mut self, snapshot: Snapshot<I>, now: Tick) -> Result<(), RestoreError> {
        let now = self.at(now);
        if self.next_sequence > 0 || !self.parked.is_empty() || self.ended {
            return Err(RestoreError::NotFresh { operator: self.options.name().to_owned() });
        }
        let Unit { next_sequence, elements } = snapshot.merged();
        // New records get numbers that no stored one has, and after a restore of one subtask the numbers they had before.
        self.next_sequence = next_sequence.saturating_sub(elements.len() as u64);
        for stored in elements {
            self.parked.push_back(match stored {
                Stored::Record { record, attempts, identity } => Parked {
                    element: Parkable::Record(record),
                    past: Some(Box::new(Past { attempts, identity })),
                },
                Stored::Watermark(watermark) => Control::Watermark(watermark).into(),
                Stored::Status(status) => Control::Status(status).into(),
            });
        }
        self.admit_parked(now);
        Ok(())
    }
}
