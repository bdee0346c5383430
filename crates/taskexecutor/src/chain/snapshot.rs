//! A chain's part of a checkpoint.

use std::collections::BTreeMap;

use asyncio::Snapshot;
use job::record::JsonRecord;
use runtime_core::{Barrier, StreamElement};

use super::{Chain, Step, Tail};
use crate::exchange::Element;
use crate::task::{Held, TaskError, TaskSnapshot};

impl Chain {
    /// Takes a snapshot between two elements, and sends the barrier behind everything that has left. Nothing moves
    /// meanwhile, so what is in the steps is in the snapshot and comes after the barrier, and nothing is in both or
    /// neither.
    ///
    /// # Errors
    ///
    /// One sentence: a step refuses, or the sink cannot stage. The barrier goes on all the same, for those behind wait
    /// for it.
    pub(crate) fn snapshot(&mut self, barrier: Barrier) -> Result<(Held, TaskSnapshot), String> {
        let snapshot = self.take(barrier.checkpoint);
        let now = self.cx.now;
        for output in self.outputs() {
            output.push(Element::Stream(StreamElement::Barrier(barrier)), now);
        }
        snapshot
    }

    fn take(&mut self, checkpoint: u64) -> Result<(Held, TaskSnapshot), String> {
        let mut held = Held::new();
        for step in &self.steps {
            if let Step::Enrich(step) = step {
                held.push(step.snapshot().map_err(|refused| refused.to_string())?);
            }
        }
        held.retain(|snapshot| !snapshot.is_empty());
        let (mut staged, mut committed_length) = (Vec::new(), 0);
        if let Tail::Sink(sink) = &mut self.tail {
            staged = sink.stage(checkpoint).map_err(|error| error.to_string())?;
            committed_length = sink.committed_length();
        }
        self.publish();
        let figures = self.cx.figures.snapshot();
        Ok((held, TaskSnapshot { state: None, staged, committed_length, source: None, figures }))
    }

    /// The output of this checkpoint and of every earlier one is visible.
    pub(crate) fn confirmed(&mut self, checkpoint: u64) {
        if let Tail::Sink(sink) = &mut self.tail {
            sink.confirmed(checkpoint);
        }
    }

    /// Begins with what the steps held, before anything else comes in.
    ///
    /// # Errors
    ///
    /// Something has come in already.
    pub(crate) fn restore(
        &mut self,
        mut held: BTreeMap<String, Snapshot<JsonRecord>>,
    ) -> Result<(), TaskError> {
        for step in &mut self.steps {
            if let Step::Enrich(step) = step
                && let Some(snapshot) = held.remove(step.name())
            {
                step.restore(snapshot, &self.cx)?;
            }
        }
        Ok(())
    }

    /// Whether an element would be taken in without room: an asynchronous step parks it. Filters before it may make a dead
    /// letter of it, which needs room as ever.
    pub(crate) fn can_park(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Enrich(_))) && self.cx.has_room()
    }

    /// How many elements wait in the steps beyond their capacity.
    pub(crate) fn parked(&self) -> usize {
        let parked = |step: &Step| match step {
            Step::Enrich(step) => step.parked(),
            Step::Filter(_) => 0,
        };
        self.steps.iter().map(parked).sum()
    }
}
