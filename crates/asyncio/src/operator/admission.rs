//! How elements come in.

use runtime_core::{Record, StreamElement, Tick};

use super::emission::Bypass;
use super::{AsyncWaitOperator, Effect};
use crate::entry::{Entry, EntryId, NONE, State};
use crate::key::KeySelector;
use crate::queue::Control;

/// An element that was not taken in. Nothing has changed; it may be offered again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the element was not taken in: {reason}")]
pub struct Refused<I> {
    /// What was offered.
    pub element: StreamElement<I>,
    /// Why it was not taken in.
    pub reason: RefusedReason,
}

/// Why an element was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReason {
    /// Every place is taken; offer it again when output has left.
    #[error("the operator is full")]
    Full,
    /// The end of input was told, or the operator is closed.
    #[error("the input has ended")]
    Ended,
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Whether a record, a watermark or a status would be taken in.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        self.occupied < self.options.capacity() && !self.ended
    }

    /// Takes in an element.
    ///
    /// Records, watermarks and statuses take a place until they have left. Latency markers and barriers take none: they
    /// are the next output. A barrier overtakes what is held because that is stored in its snapshot, so take the
    /// [elements](Self::elements) before pushing it. (Flink forwards a status at once; here it keeps its place like a
    /// watermark, since otherwise it would announce idleness ahead of watermarks that still wait.)
    ///
    /// # Errors
    ///
    /// Gives the element back when the operator is full or its input has ended.
    pub fn push(&mut self, element: StreamElement<I>, now: Tick) -> Result<(), Refused<I>> {
        let now = self.at(now);
        if self.ended {
            return Err(Refused { element, reason: RefusedReason::Ended });
        }
        match element {
            StreamElement::LatencyMarker(marker) => self.bypass.push_back(Bypass::LatencyMarker(marker)),
            StreamElement::Barrier(barrier) => self.bypass.push_back(Bypass::Barrier(barrier)),
            element if self.occupied >= self.options.capacity() => {
                return Err(Refused { element, reason: RefusedReason::Full });
            }
            StreamElement::Record(record) => self.admit(record, now),
            StreamElement::Watermark(watermark) => self.admit_control(Control::Watermark(watermark)),
            StreamElement::Status(status) => self.admit_control(Control::Status(status)),
        }
        Ok(())
    }

    fn admit_control(&mut self, control: Control) {
        let sequence = self.take_place();
        self.queue.admit_control((sequence, control));
    }

    fn admit(&mut self, input: Record<I>, now: Tick) {
        let sequence = self.take_place();
        self.figures.records_in += 1;
        let key = self.keys.as_ref().and_then(|_| self.selector.key_of(&input.value));
        let entry = Entry {
            sequence,
            input,
            state: State::Queued,
            attempt: 0,
            first_at: now,
            last_at: now,
            budget_armed: false,
            segment: self.queue.segment(),
            key: NONE,
            next: NONE,
        };
        // The capacity keeps places below 2^32 - 1.
        let slot = self.entries.insert(entry) as u32;
        self.queue.admit(slot);
        if let (Some(keys), Some(key)) = (self.keys.as_mut(), key) {
            let place = keys.admit(key, slot, &mut self.entries);
            if let Some(entry) = self.entries.get_mut(slot as usize) {
                entry.key = place;
            }
            self.start_of_key(place, now);
        } else {
            self.start(slot, now);
        }
    }

    fn take_place(&mut self) -> u64 {
        self.occupied += 1;
        if self.occupied == self.options.capacity() {
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

    /// Begins the next attempt of the record in this place.
    pub(super) fn start(&mut self, slot: u32, now: Tick) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if entry.attempt == 0 {
            entry.first_at = now;
            self.figures.in_flight += 1;
        } else {
            self.figures.retries += 1;
        }
        entry.state = State::InFlight;
        entry.attempt += 1;
        entry.last_at = now;
        self.figures.calls += 1;
        let budget = self.options.timeout().map(|timeout| entry.first_at + timeout);
        let limit = self.options.attempt_timeout().map(|limit| now + limit);
        self.effects.push_back(Effect::Start {
            entry: EntryId { sequence: entry.sequence, slot },
            attempt: entry.attempt,
            deadline: [budget, limit].into_iter().flatten().min(),
        });
    }
}
