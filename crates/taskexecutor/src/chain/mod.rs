//! The operators of one subtask, passing elements to each other by direct calls.
//!
//! Each asynchronous step has a queue of its own; filters and the tail have none. What may move is decided from the tail
//! to the head: a step gives out a result only when the next queue, or the tail, has room for it, and the head reads
//! only when the first queue has. So nothing ever waits inside a call, and several asynchronous steps in one chain cannot
//! block each other.
//!
//! The chain is synchronous. [`task::turn`](crate::task) drives it, waits for it, and brings it mail.

mod build;
mod context;
mod enrich;
mod filter;
mod output;
mod policy;
mod sink;
mod snapshot;
mod source;

use bytes::Bytes;
use job::record::JsonRecord;
use runtime_core::{EpochMillis, StreamElement, Tick};

pub(crate) use build::{Parts, build, steps_of};
pub(crate) use context::Context;
pub(crate) use output::EdgeOutput;
pub(crate) use source::Progress;
pub(crate) use source::{Next, Source};

use crate::exchange::{ChannelId, Element, Peer};
use crate::task::{TaskError, TaskSnapshot};
use enrich::EnrichStep;
use filter::FilterStep;
use sink::SinkTail;

/// What flows through a chain.
pub(crate) type Flow = StreamElement<JsonRecord>;

enum Step {
    Filter(FilterStep),
    // Large beside the other.
    Enrich(Box<EnrichStep>),
}

/// Where a chain ends.
pub(crate) enum Tail {
    Sink(SinkTail),
    Output(EdgeOutput),
}

/// The steps and the tail of one subtask.
pub(crate) struct Chain {
    steps: Vec<Step>,
    tail: Tail,
    pub(crate) cx: Context,
    /// The first step whose input has not ended yet, once the chain's has.
    ending: usize,
    /// The end was put into the outputs: nothing may follow it there.
    ended: bool,
}

/// How the channels that leave the chain stand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peers {
    Open,
    /// All have the end of input.
    Delivered,
    Gone(ChannelId),
}

impl Chain {
    /// A new turn: one reading of the clocks serves all that happens in it.
    pub(crate) fn begin_turn(&mut self, now: Tick, wall: EpochMillis) -> Result<bool, TaskError> {
        let mut moved = self.begin_still_turn(now, wall);
        for step in &mut self.steps {
            if let Step::Enrich(step) = step {
                moved |= step.begin_turn(&self.cx);
            }
        }
        Ok(self.drain()? || moved)
    }

    /// A turn of a task that stands still: what waits for room in the outputs goes on, and nothing follows it.
    pub(crate) fn begin_still_turn(&mut self, now: Tick, wall: EpochMillis) -> bool {
        self.cx.begin_turn(now, wall);
        let mut moved = false;
        self.outputs().for_each(|output| moved |= output.retry());
        moved
    }

    /// Whether an element would be taken in at the head.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room_from(0)
    }

    /// Whether what stops the chain is the room downstream, and not its own steps.
    pub(crate) fn is_backpressured(&self) -> bool {
        !self.has_room_from(self.steps.len())
    }

    fn has_room_from(&self, from: usize) -> bool {
        let queue = self.steps.iter().skip(from).find_map(|step| match step {
            Step::Enrich(step) => Some(step.has_room()),
            Step::Filter(_) => None,
        });
        let room = queue.unwrap_or_else(|| match &self.tail {
            Tail::Sink(_) => true,
            Tail::Output(output) => output.has_room(),
        });
        // Any step may make a dead letter of what it is given.
        room && self.cx.has_room()
    }

    /// Takes an element in at the head. To be called only while there [is room](Self::has_room).
    pub(crate) fn push(&mut self, element: Flow) -> Result<(), TaskError> {
        self.push_to(0, element, false)
    }

    /// Takes an element in at the head though there may be no room. To be called only while it [can](Self::can_park).
    pub(crate) fn park(&mut self, element: Flow) -> Result<(), TaskError> {
        self.push_to(0, element, true)
    }

    /// Takes in a dead letter of another chain, which goes past the steps.
    pub(crate) fn push_dead_letter(&mut self, line: &Bytes) -> Result<(), TaskError> {
        match &mut self.tail {
            Tail::Sink(sink) => sink.write_dead_letter(line, &self.cx),
            Tail::Output(_) => Err(TaskError::unrecoverable("a dead letter came to a chain without a sink")),
        }
    }

    fn push_to(&mut self, from: usize, mut element: Flow, park: bool) -> Result<(), TaskError> {
        for step in self.steps.iter_mut().skip(from) {
            match step {
                Step::Filter(filter) => match filter.apply(element, &mut self.cx)? {
                    Some(passed) => element = passed,
                    None => return Ok(()),
                },
                Step::Enrich(step) if park => return step.park(element, &self.cx),
                Step::Enrich(step) => return step.push(element, &self.cx),
            }
        }
        if let StreamElement::Watermark(watermark) = &element {
            self.cx.figures.set_watermark(*watermark);
        }
        match &mut self.tail {
            Tail::Sink(sink) => sink.push(&element, &self.cx),
            Tail::Output(output) => {
                output.push(Element::Stream(element), self.cx.now);
                Ok(())
            }
        }
    }

    /// Lets results move on as far as there is room, from the tail to the head. Says whether anything moved.
    pub(crate) fn drain(&mut self) -> Result<bool, TaskError> {
        let mut moved = false;
        loop {
            let mut again = false;
            for index in (0..self.steps.len()).rev() {
                again |= self.drain_step(index)?;
            }
            if !again {
                return Ok(moved);
            }
            moved = true;
        }
    }

    fn drain_step(&mut self, index: usize) -> Result<bool, TaskError> {
        let mut moved = false;
        while self.has_room_from(index + 1) {
            let Some(Step::Enrich(step)) = self.steps.get_mut(index) else { break };
            let Some(output) = step.next_output() else { break };
            moved = true;
            if let Some(element) = step.settle(output, &mut self.cx)? {
                self.push_to(index + 1, element, false)?;
            }
        }
        Ok(moved)
    }

    /// Nothing more comes in at the head: ends step after step, each once the one before it has given out all it had, and
    /// then the outputs. To be called again in each turn until it says that all has ended.
    ///
    /// An operator is told of the end only when it is empty. From then on it retries nothing (as in Flink), and the last
    /// records of a file are to have the retries that their job file gives to all.
    pub(crate) fn end(&mut self) -> Result<bool, TaskError> {
        while let Some(step) = self.steps.get_mut(self.ending) {
            if let Step::Enrich(step) = step {
                if !step.is_empty() {
                    return Ok(false);
                }
                step.end_of_input(&self.cx);
            }
            self.ending += 1;
        }
        let now = self.cx.now;
        self.outputs().for_each(|output| output.end(now));
        self.ended = true;
        Ok(true)
    }

    /// Whether the end has been put into the outputs.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Completes the sink's output; what a finished task adds to every later checkpoint.
    pub(crate) fn finish(&mut self) -> Result<TaskSnapshot, TaskError> {
        let mut last = TaskSnapshot::default();
        if let Tail::Sink(sink) = &mut self.tail {
            last.staged = sink.finish()?;
            last.committed_length = sink.committed_length();
        }
        self.publish();
        last.figures = self.cx.figures.snapshot();
        Ok(last)
    }

    /// Sends what has waited long enough, or with `all` whatever there is.
    pub(crate) fn flush(&mut self, all: bool) {
        let now = self.cx.now;
        self.outputs().for_each(|output| output.flush(now, all));
    }

    /// How the consumers stand.
    ///
    /// # Errors
    ///
    /// The way to one of them broke.
    pub(crate) fn peers(&mut self) -> Result<Peers, TaskError> {
        let mut peers = Peers::Delivered;
        for peer in self.outputs().flat_map(|output| output.peers()) {
            match peer {
                Peer::Delivered => {}
                Peer::Open if peers == Peers::Delivered => peers = Peers::Open,
                Peer::Open => {}
                Peer::Gone(channel) => peers = Peers::Gone(channel),
                Peer::Broken(cause) => return Err(TaskError::recoverable(cause)),
            }
        }
        Ok(peers)
    }

    /// When a step has something to do that nothing else announces.
    pub(crate) fn next_wakeup(&mut self) -> Option<Tick> {
        self.steps
            .iter_mut()
            .filter_map(|step| match step {
                Step::Enrich(step) => step.next_wakeup(),
                Step::Filter(_) => None,
            })
            .min()
    }

    /// Brings the published figures of the steps up to date.
    pub(crate) fn publish(&self) {
        self.cx.figures.checkpoints.parked.set(self.parked() as u64);
        for step in &self.steps {
            if let Step::Enrich(step) = step {
                step.publish(&self.cx);
            }
        }
    }

    fn outputs(&mut self) -> impl Iterator<Item = &mut EdgeOutput> {
        let records = match &mut self.tail {
            Tail::Output(output) => Some(output),
            Tail::Sink(_) => None,
        };
        records.into_iter().chain(&mut self.cx.dead_letters)
    }
}
