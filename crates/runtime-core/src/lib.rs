//! What Tidegate's three libraries share.
//!
//! Identifiers and epochs, the elements that flow through a stream, time as a value, the timer wheel, metric types
//! without an exporter, and the shutdown signal. It is small on purpose: whoever depends on `asyncio`, `heartbeat` or
//! `controller-events` gets this crate with it, so nothing here knows of gRPC, of jobs, of YAML or of a subscriber.
//!
//! It does no I/O. The only shells in it are `time::TokioClock` and `shutdown`, behind the feature `tokio`.

pub mod element;
pub mod id;
pub mod metrics;
pub mod service;
#[cfg(feature = "tokio")]
pub mod shutdown;
pub mod time;
pub mod timer;

pub use element::{Barrier, LatencyMarker, Record, StreamElement, Watermark, WatermarkStatus};
pub use id::{
    AllocationId, AttemptId, Epoch, Incarnation, InstanceId, JobId, ParseIdError, ResourceId, SlotId,
    VertexId,
};
pub use time::{Clock, EpochMillis, Tick};
