//! A record and its first call in one step, for calls that may be ready at once.
//!
//! Most of what an operator does for a record (a place, a name, a deadline, its turn) is of use only while the record
//! waits. So a call is made before the record is taken in: when it is ready, and nothing holds the record up, the record
//! passes through and was never held.

use std::task::Poll;

use runtime_core::{Record, StreamElement, Tick};

use super::calls::Judged;
use super::{AsyncWaitOperator, Refused, RefusedReason};
use crate::entry::EntryId;
use crate::key::KeySelector;
use crate::output::CallError;
use crate::retry::RetryPredicate;

/// What has become of a record that was [offered](AsyncWaitOperator::offer).
///
/// The example is at [`offer`](AsyncWaitOperator::offer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered<I, R> {
    /// It has passed: it was answered at once and next to leave.
    Passed {
        /// What was offered.
        input: Record<I>,
        /// The call's answer.
        answer: R,
    },
    /// It is held, and leaves through [`next_output`](AsyncWaitOperator::next_output).
    Held,
}

impl<I, R, E, S: KeySelector<I>, P: RetryPredicate<R, E>> AsyncWaitOperator<I, R, E, S, P> {
    /// Takes in a record and makes its first call, where it may start now, by `call`: with the input, the name of the
    /// record, and the number of the attempt, which is 1. Otherwise the call is an [effect](Self::next_effect), now or
    /// when the record's key lets it start.
    ///
    /// The same as [`push`](Self::push) with the effect carried out, but cheaper, above all for a result that is ready at
    /// once. `now` is asked at most once, and not at all for a record that passes.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Offered, Options};
    /// use runtime_core::{Record, Tick};
    /// use std::task::Poll;
    ///
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// let offered = operator.offer(Record::new(21), || Tick::ZERO, |n, _entry| Poll::Ready(Ok(n * 2)));
    /// assert!(matches!(offered, Ok(Offered::Passed { answer: 42, .. })));
    /// assert!(operator.is_empty());
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push); no call was made.
    #[inline]
    pub fn offer(
        &mut self,
        record: Record<I>,
        now: impl FnOnce() -> Tick,
        call: impl FnOnce(&I, EntryId) -> Poll<Result<R, CallError<E>>>,
    ) -> Result<Offered<I, R>, Refused<I>> {
        if !self.is_available() {
            let reason = if self.ended { RefusedReason::Ended } else { RefusedReason::Full };
            return Err(Refused { element: StreamElement::Record(record), reason });
        }
        if !self.starts_at_once(&record.value) {
            self.push(StreamElement::Record(record), now())?;
            return Ok(Offered::Held);
        }
        if self.unarmed.is_some() {
            self.arm();
        }
        let id = EntryId { sequence: self.next_sequence, slot: self.entries.next_place() };
        let result = match call(&record.value, id) {
            Poll::Pending => {
                let now = self.at(now());
                let slot = self.hold_started(record, now);
                self.arm_attempt(slot, now, now);
                return Ok(Offered::Held);
            }
            Poll::Ready(result) => result,
        };
        match (self.judge(1, &result), result) {
            (Judged::Final, Ok(answer)) if self.leaving.is_empty() && self.queue.lets_pass() => {
                self.next_sequence += 1;
                self.passed += 1;
                if let Some(allowance) = &mut self.allowance {
                    allowance.pay_in();
                }
                Ok(Offered::Passed { input: record, answer })
            }
            (judged, result) => {
                self.hold_judged(record, id, judged, result, now());
                Ok(Offered::Held)
            }
        }
    }

    #[cold]
    fn hold_judged(
        &mut self,
        record: Record<I>,
        id: EntryId,
        judged: Judged,
        result: Result<R, CallError<E>>,
        now: Tick,
    ) {
        let now = self.at(now);
        self.hold_started(record, now);
        self.apply(id, judged, result, now);
    }

    /// Whether a record taken in now would start now, with nobody before it. Records with a key of their own, where others
    /// of the key are held, take the longer way: they may have to wait.
    fn starts_at_once(&self, input: &I) -> bool {
        self.effects.is_empty()
            && self.coalescing.is_none()
            && self.keys.as_ref().is_none_or(|keys| {
                keys.is_empty() || self.selector.key_of(input).is_none_or(|key| !keys.holds(&key))
            })
    }

    /// Gives a record whose first attempt has just begun its place.
    fn hold_started(&mut self, record: Record<I>, now: Tick) -> u32 {
        let key = self.keys.as_ref().and_then(|_| self.selector.key_of(&record.value));
        let slot = self.insert(record, None, now);
        if let (Some(keys), Some(key)) = (self.keys.as_mut(), key) {
            let place = keys.admit(key, slot, &mut self.entries);
            if let Some(entry) = self.entries.get_mut(slot) {
                entry.key = place;
            }
            // It is the key's only record and may start.
            let _ = keys.start(place, &self.entries);
        }
        self.begin_life(slot, now);
        self.begin_attempt(slot, now);
        slot
    }
}
