//! What flows through a stream: records and the control elements between them.
//!
//! Flink: `StreamElement` with its kinds. The order of control elements among themselves and against the records
//! around them is part of the meaning of a stream, so every operator keeps it.

use crate::id::JobId;
use crate::time::EpochMillis;

/// One element of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamElement<T> {
    /// A value with its event time.
    Record(Record<T>),
    /// "No record older than this will follow."
    Watermark(Watermark),
    /// Whether watermarks are to be expected from here at all.
    Status(WatermarkStatus),
    /// A probe that measures how long elements travel; it overtakes records that wait.
    LatencyMarker(LatencyMarker),
    /// The cut between what belongs to a checkpoint and what follows it.
    Barrier(Barrier),
}

impl<T> StreamElement<T> {
    /// The record in it, if it is one.
    #[must_use]
    pub fn into_record(self) -> Option<Record<T>> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }
}

/// A value and its event time in milliseconds since 1970, where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<T> {
    /// What the record carries.
    pub value: T,
    /// Its event time.
    pub timestamp: Option<EpochMillis>,
}

impl<T> Record<T> {
    /// A record without event time.
    pub const fn new(value: T) -> Self {
        Self { value, timestamp: None }
    }

    /// A record of this event time.
    pub const fn at(value: T, timestamp: EpochMillis) -> Self {
        Self { value, timestamp: Some(timestamp) }
    }
}

/// No record with an event time at or below this one will follow (Flink: `Watermark`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(pub EpochMillis);

impl Watermark {
    /// The last watermark of a stream that has ended.
    pub const MAX: Self = Self(EpochMillis(i64::MAX));
}

/// Whether a stream makes watermarks at present (Flink: `WatermarkStatus`). Records may flow while it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatermarkStatus {
    /// Watermarks count.
    Active,
    /// The stream holds nobody's watermark back.
    Idle,
}

/// A probe sent by a source (Flink: `LatencyMarker`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyMarker {
    /// When the source sent it.
    pub marked_at: EpochMillis,
    /// Which subtask of the source.
    pub subtask: u32,
}

/// The cut of one checkpoint (Flink: `CheckpointBarrier`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// The job whose checkpoint it is.
    pub job: JobId,
    /// The checkpoint, growing through the life of the job.
    pub checkpoint: u64,
    /// When the coordinator began it.
    pub begun_at: EpochMillis,
}
