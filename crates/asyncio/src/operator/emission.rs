//! How elements leave.

use runtime_core::element::LatencyMarker;
use runtime_core::{Barrier, Record, StreamElement};

use super::AsyncWaitOperator;
use crate::entry::State;
use crate::key::KeySelector;
use crate::output::{Attempts, Output};
use crate::queue::{Control, Next};

/// An element that takes no place among the others.
#[derive(Debug)]
pub(super) enum Bypass {
    LatencyMarker(LatencyMarker),
    Barrier(Barrier),
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Takes out the next element that may leave, which frees its place. Take as many at a time as suits; a bounded run
    /// lets other work come in between.
    pub fn next_output(&mut self) -> Option<Output<I, R, E>> {
        if let Some(bypass) = self.bypass.pop_front() {
            return Some(match bypass {
                Bypass::LatencyMarker(marker) => Output::LatencyMarker(marker),
                Bypass::Barrier(barrier) => Output::Barrier(barrier),
            });
        }
        let next = self.queue.pop(&mut self.entries)?;
        self.occupied -= 1;
        self.no_longer_full();
        match next {
            Next::Control(Control::Watermark(watermark)) => Some(Output::Watermark(watermark)),
            Next::Control(Control::Status(status)) => Some(Output::Status(status)),
            Next::Record(slot) => {
                let entry = self.entries.try_remove(slot as usize)?;
                // Only a record that has its outcome is given out by a queue.
                let State::Done(outcome) = entry.state else { return None };
                self.figures.completed_waiting -= 1;
                self.figures.records_out += 1;
                let attempts =
                    Attempts { count: entry.attempt, first_at: entry.first_at, last_at: entry.last_at };
                Some(Output::Record { input: entry.input, outcome, attempts })
            }
        }
    }

    pub(super) fn no_longer_full(&mut self) {
        if let Some(since) = self.full_since.take() {
            self.figures.blocked += self.now.since(since);
        }
    }

    /// What is held, as it was taken in and in that order: what a snapshot stores. Never a result: after a restore the
    /// calls are made again.
    #[must_use]
    pub fn elements(&self) -> Vec<StreamElement<&I>> {
        let records = self.entries.iter().map(|(_, entry)| {
            let Record { value, timestamp } = &entry.input;
            (entry.sequence, StreamElement::Record(Record { value, timestamp: *timestamp }))
        });
        let controls =
            self.queue.controls().into_iter().map(|(sequence, control)| (sequence, control.element()));
        let mut elements: Vec<(u64, StreamElement<&I>)> = records.chain(controls).collect();
        elements.sort_unstable_by_key(|&(sequence, _)| sequence);
        elements.into_iter().map(|(_, element)| element).collect()
    }
}
