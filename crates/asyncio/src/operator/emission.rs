//! How elements leave.

use runtime_core::Record;

use super::AsyncWaitOperator;
use crate::entry::State;
use crate::key::KeySelector;
use crate::output::{Attempts, Outcome, Output};
use crate::queue::{Control, Next};

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Takes out the next element that may leave, which frees its place. Take as many at a time as suits; a bounded run
    /// lets other work come in between.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Options, Output};
    /// use runtime_core::{EpochMillis, StreamElement, Tick, Watermark};
    ///
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// operator.push(StreamElement::Watermark(Watermark(EpochMillis(7))), Tick::ZERO).unwrap();
    /// assert_eq!(operator.len(), 1);
    /// assert!(matches!(operator.next_output(), Some(Output::Watermark(_))));
    /// assert!(operator.is_empty());
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn next_output(&mut self) -> Option<Output<I, R, E>> {
        self.emit(
            |input, outcome, attempts| Output::Record { input, outcome, attempts },
            std::convert::identity,
        )
    }

    /// As [`next_output`](Self::next_output), for a caller that wants a record's parts and not the whole of them moved.
    #[inline]
    pub(crate) fn emit<T>(
        &mut self,
        record: impl FnOnce(Record<I>, Outcome<R, E>, Attempts) -> T,
        other: impl FnOnce(Output<I, R, E>) -> T,
    ) -> Option<T> {
        if let Some(output) = self.leaving.pop_front() {
            if matches!(output, Output::Record { .. }) {
                self.figures.records_out += 1;
            }
            return Some(other(output));
        }
        loop {
            let next = self.queue.pop(&mut self.entries)?;
            self.occupied -= 1;
            if self.full_since.is_some() {
                self.no_longer_full();
            }
            match next {
                Next::Control(Control::Watermark(watermark)) => {
                    return Some(other(Output::Watermark(watermark)));
                }
                Next::Control(Control::Status(status)) => return Some(other(Output::Status(status))),
                Next::Record(slot) => {
                    let entry = self.entries.get_mut(slot)?;
                    let (attempts, input) = (entry.attempts(), entry.input.take());
                    let state = std::mem::replace(&mut entry.state, State::Gone);
                    self.entries.free(slot);
                    if let (State::Done(outcome), Some(input)) = (state, input) {
                        self.figures.completed_waiting -= 1;
                        self.figures.records_out += 1;
                        return Some(record(input, outcome, attempts));
                    }
                    // It has left ahead of the order; this was its place.
                }
            }
        }
    }

    pub(super) fn no_longer_full(&mut self) {
        if let Some(since) = self.full_since.take() {
            self.figures.blocked += self.now.since(since);
        }
    }
}
