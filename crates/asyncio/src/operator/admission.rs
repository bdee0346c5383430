//! How elements come in.

use runtime_core::{Record, StreamElement, Tick};

use super::{AsyncWaitOperator, Effect};
use crate::entry::{EntryId, Past, State};
use crate::key::KeySelector;
use crate::output::Output;
use crate::queue::Control;

/// An element that was not taken in. Nothing has changed; it may be offered again.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Options, RefusedReason};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().capacity(1).build()?);
/// operator.push(StreamElement::Record(Record::new(1)), now).unwrap();
/// let refused = operator.push(StreamElement::Record(Record::new(2)), now).unwrap_err();
/// assert_eq!(refused.reason, RefusedReason::Full);
/// assert_eq!(refused.element.into_record().unwrap().value, 2);
///
/// operator.end_of_input(now);
/// let refused = operator.push(StreamElement::Record(Record::new(3)), now).unwrap_err();
/// assert_eq!(refused.reason, RefusedReason::Ended);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the element was not taken in: {reason}")]
pub struct Refused<I> {
    /// What was offered.
    pub element: StreamElement<I>,
    /// Why it was not taken in.
    pub reason: RefusedReason,
}

/// Why an element was not taken in.
///
/// The example is at [`Refused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReason {
    /// Every place is taken, or parked elements come first; offer it again when output has left.
    #[error("the operator is full")]
    Full,
    /// The end of input was told, or the operator is closed.
    #[error("the input has ended")]
    Ended,
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Whether a record, a watermark or a status would be taken in.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.has_place() && self.parked.is_empty() && !self.ended
    }

    pub(super) const fn has_place(&self) -> bool {
        self.occupied < self.options.capacity()
    }

    /// Takes in an element.
    ///
    /// Records, watermarks and statuses take a place until they have left. Latency markers and barriers take none: they
    /// are the next output. A barrier overtakes what is held because that is stored in its snapshot, so take the
    /// [snapshot](Self::snapshot) before pushing it. (Flink forwards a status at once; here it keeps its place like a
    /// watermark, since otherwise it would announce idleness ahead of watermarks that still wait.)
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().capacity(2).build()?);
    /// let mut input = (1..=10).map(|n| StreamElement::Record(Record::new(n)));
    /// while operator.is_available() {
    ///     let Some(element) = input.next() else { break };
    ///     operator.push(element, Tick::ZERO).unwrap();
    /// }
    /// assert_eq!((operator.len(), input.count()), (2, 8));
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the element back when the operator is full, when [parked](Self::park) elements wait, or when its input has
    /// ended.
    pub fn push(&mut self, element: StreamElement<I>, now: Tick) -> Result<(), Refused<I>> {
        let now = self.at(now);
        if self.ended {
            return Err(Refused { element, reason: RefusedReason::Ended });
        }
        match element {
            StreamElement::LatencyMarker(marker) => self.leaving.push_back(Output::LatencyMarker(marker)),
            StreamElement::Barrier(barrier) => self.leaving.push_back(Output::Barrier(barrier)),
            element => {
                self.admit_parked(now);
                if !self.is_available() {
                    return Err(Refused { element, reason: RefusedReason::Full });
                }
                match element {
                    StreamElement::Record(record) => self.admit(record, None, now),
                    StreamElement::Watermark(watermark) => self.admit_control(Control::Watermark(watermark)),
                    StreamElement::Status(status) => self.admit_control(Control::Status(status)),
                    // Served above.
                    StreamElement::LatencyMarker(_) | StreamElement::Barrier(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Gives the control element the next place, which is free.
    pub(super) fn admit_control(&mut self, control: Control) {
        let sequence = self.take_place();
        self.queue.admit_control((sequence, control));
    }

    /// Gives the record the next place, which is free, and starts what may start.
    pub(super) fn admit(&mut self, input: Record<I>, past: Option<Box<Past>>, now: Tick) {
        let key = self.keys.as_ref().and_then(|_| self.selector.key_of(&input.value));
        let slot = self.insert(input, past, now);
        if let (Some(keys), Some(key)) = (self.keys.as_mut(), key) {
            let place = keys.admit(key, slot, &mut self.entries);
            if let Some(entry) = self.entries.get_mut(slot) {
                entry.key = place;
            }
            self.start_of_key(place, now);
        } else {
            self.start(slot, now);
        }
    }

    /// Puts the record, which has not started, into a place.
    pub(super) fn insert(&mut self, input: Record<I>, past: Option<Box<Past>>, now: Tick) -> u32 {
        let sequence = self.take_place();
        self.figures.records_in += 1;
        let slot = self.entries.insert(sequence, input, self.queue.segment(), now);
        if past.is_some()
            && let Some(entry) = self.entries.get_mut(slot)
        {
            entry.past = past;
        }
        self.queue.admit(slot);
        slot
    }

    fn take_place(&mut self) -> u64 {
        self.occupied += 1;
        if !self.has_place() {
            self.full_since = Some(self.now);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// Starts what the key allows.
    pub(super) fn start_of_key(&mut self, place: u32, now: Tick) {
        while let Some(slot) = self.keys.as_mut().and_then(|keys| keys.start(place, &self.entries)) {
            self.start(slot, now);
        }
    }

    /// Begins the next attempt of the record in this place, or lets it follow an equal one.
    pub(super) fn start(&mut self, slot: u32, now: Tick) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let id = EntryId { sequence: entry.sequence, slot };
        if entry.attempt == 0 && !matches!(entry.state, State::Following) {
            self.begin_life(slot, now);
            if self.follows(id) {
                return self.arm_budget(slot, now);
            }
        }
        if let Some(attempt) = self.begin_attempt(slot, now) {
            self.effects.push_back(Effect::Start { entry: id, attempt });
        }
    }

    /// The record's own time begins.
    pub(super) fn begin_life(&mut self, slot: u32, now: Tick) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if now > entry.first_at {
            self.queue_wait.record_alone(nanos(now, entry.first_at));
        } else {
            self.unqueued += 1;
        }
        entry.first_at = now;
        self.figures.in_flight += 1;
        if let Some(allowance) = &mut self.allowance {
            allowance.pay_in();
        }
    }

    /// The record's next attempt begins; its number.
    pub(super) fn begin_attempt(&mut self, slot: u32, now: Tick) -> Option<u32> {
        let entry = self.entries.get_mut(slot)?;
        entry.state = State::InFlight;
        entry.attempt += 1;
        entry.last_at = now;
        self.figures.calls += 1;
        if entry.attempt > 1 {
            self.figures.retries += 1;
        }
        Some(entry.attempt)
    }

    fn follows(&mut self, id: EntryId) -> bool {
        let Some(coalescing) = &mut self.coalescing else { return false };
        let Some(entry) = self.entries.get_mut(id.slot) else { return false };
        let Some(input) = &entry.input else { return false };
        let follows = coalescing.follows(&input.value, id);
        if follows {
            entry.state = State::Following;
            self.figures.coalesced += 1;
        }
        follows
    }
}

/// Nanoseconds from `earlier` to `now`.
pub(super) const fn nanos(now: Tick, earlier: Tick) -> u64 {
    now.as_nanos().saturating_sub(earlier.as_nanos())
}
