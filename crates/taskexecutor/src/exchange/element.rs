//! What travels on a channel, and the channel's name.

use std::fmt;

use bytes::Bytes;
use job::record::JsonRecord;
use runtime_core::{AttemptId, StreamElement};

/// One element of a channel.
#[derive(Debug, Clone)]
pub enum Element {
    /// A record or a control element.
    Stream(StreamElement<JsonRecord>),
    /// A dead letter as it will be written: one JSON line without its line end.
    DeadLetter(Bytes),
    /// The producer has ended; nothing follows.
    End,
}

/// Elements in the order of their channel.
pub type Batch = Vec<Element>;

/// The name of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    /// The edge of the job graph.
    pub edge: u32,
    /// Who writes.
    pub producer: AttemptId,
    /// Who reads.
    pub consumer: AttemptId,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edge, producer, consumer } = self;
        write!(f, "edge {edge} from {producer} to {consumer}")
    }
}

impl Element {
    /// Roughly how many bytes the element takes on the wire.
    #[must_use]
    pub fn weight(&self) -> usize {
        // A record's origin and event time, and the framing of any element.
        const OVERHEAD: usize = 32;
        match self {
            Self::Stream(StreamElement::Record(record)) => record.value.line().len() + OVERHEAD,
            Self::DeadLetter(line) => line.len() + OVERHEAD,
            Self::Stream(_) | Self::End => OVERHEAD,
        }
    }
}
