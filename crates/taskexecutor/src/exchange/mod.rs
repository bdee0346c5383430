//! Records between subtasks: one channel from each producing to each consuming subtask.
//!
//! A channel is named by its edge and both attempts, so that nothing of an earlier life can reach a later one. It
//! carries batches: inside one task executor through a bounded queue without encoding, between two of them on one gRPC
//! stream that the producer opens. The stream has *credits*: the consumer grants batches, the producer sends no more
//! than it was granted, and the receiving side always reads what arrives into the channel's own bounded buffer. HTTP/2
//! windows are shared by a connection and are therefore never the back-pressure: one channel held up by them would stop
//! the others.
//!
//! Nothing here repeats or reorders: a channel that breaks fails its tasks, and the job is restarted.

mod alignment;
mod channel;
mod channels;
mod codec;
mod credits;
mod element;
mod endpoint;
mod gate;
mod partitioner;
mod remote;
mod valve;
mod writer;

pub use alignment::Alignment;
pub use channels::{Channels, ConnectError, Refusal};
pub use codec::{DecodeError, Decoder, encode};
pub(crate) use codec::{RecordReader, encode_record};
pub use credits::{CreditWindow, Grants};
pub use element::{Batch, ChannelId, Element};
pub use endpoint::DataEndpoint;
pub use gate::{GateError, InputGates};
pub use partitioner::Partitioner;
pub use valve::{Valve, ValveOutput};

pub(crate) use remote::{RemoteTarget, open};
pub(crate) use writer::{ChannelWriter, Outlet, Peer};

/// Batches that a channel holds, and credits that a consumer grants at first.
pub const CHANNEL_BATCHES: usize = 4;
/// A batch is sent when its records have this many bytes; one record may be longer.
pub const BATCH_BYTES: usize = 64 * 1024;
/// A batch is sent when it has this many elements, so that small records do not wait for many.
pub const BATCH_ELEMENTS: usize = 200;
