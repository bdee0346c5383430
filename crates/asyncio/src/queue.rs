//! Which element leaves next.
//!
//! Flink: `StreamElementQueue`. One of two: [`Fifo`](fifo::Fifo) for the ordered mode, [`Segments`](segments::Segments)
//! for the others. The records themselves live in the operator's slab; what stands here are their places.

mod fifo;
pub(crate) mod keys;
mod segments;

use runtime_core::{Watermark, WatermarkStatus};

use crate::entries::Entries;
use crate::options::Order;
use crate::snapshot::Stored;

/// A control element that keeps its place among the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Watermark(Watermark),
    Status(WatermarkStatus),
}

impl Control {
    pub(crate) const fn stored<I>(self) -> Stored<I> {
        match self {
            Self::Watermark(watermark) => Stored::Watermark(watermark),
            Self::Status(status) => Stored::Status(status),
        }
    }
}

/// A control element with its number in the order of admission.
pub(crate) type NumberedControl = (u64, Control);

/// What may leave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Record(u32),
    Control(Control),
}

#[derive(Debug)]
pub(crate) enum Queue {
    Fifo(fifo::Fifo),
    Segments(segments::Segments),
}

impl Queue {
    pub(crate) fn new(order: Order) -> Self {
        match order {
            Order::Ordered => Self::Fifo(fifo::Fifo::new()),
            Order::Unordered | Order::Keyed => Self::Segments(segments::Segments::new()),
        }
    }

    /// The segment that a record admitted now belongs to.
    pub(crate) fn segment(&self) -> u64 {
        match self {
            Self::Fifo(_) => 0,
            Self::Segments(segments) => segments.last(),
        }
    }

    /// Takes in a record, whose entry names its [`segment`](Self::segment).
    pub(crate) fn admit(&mut self, slot: u32) {
        match self {
            Self::Fifo(fifo) => fifo.admit(slot),
            Self::Segments(segments) => segments.admit(),
        }
    }

    pub(crate) fn admit_control(&mut self, control: NumberedControl) {
        match self {
            Self::Fifo(fifo) => fifo.admit_control(control),
            Self::Segments(segments) => segments.admit_control(control),
        }
    }

    /// The record in this place has its outcome and its key lets it go.
    pub(crate) fn ready<I, R, E>(&mut self, slot: u32, entries: &mut Entries<I, R, E>) {
        if let Self::Segments(segments) = self {
            segments.ready(slot, entries);
        }
    }

    /// Whether a record that is ready at once would be the next to leave: nothing may leave before it, and nothing that
    /// is held up holds it up.
    pub(crate) fn lets_pass(&self) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.is_empty(),
            Self::Segments(segments) => segments.lets_pass(),
        }
    }

    /// Takes out what leaves next.
    pub(crate) fn pop<I, R, E>(&mut self, entries: &mut Entries<I, R, E>) -> Option<Next> {
        match self {
            Self::Fifo(fifo) => fifo.pop(entries),
            Self::Segments(segments) => segments.pop(entries),
        }
    }

    /// The first watermark that waits, and the number of what is behind it.
    pub(crate) fn first_watermark(&self) -> Option<(u64, Watermark)> {
        self.controls().into_iter().find_map(|(sequence, control)| match control {
            Control::Watermark(watermark) => Some((sequence, watermark)),
            Control::Status(_) => None,
        })
    }

    /// The control elements that wait, in order.
    pub(crate) fn controls(&self) -> Vec<NumberedControl> {
        match self {
            Self::Fifo(fifo) => fifo.controls().collect(),
            Self::Segments(segments) => segments.controls().collect(),
        }
    }
}
