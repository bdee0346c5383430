//! The asynchronous I/O operator: ordered, unordered and keyed waiting with timeouts and retries.
//!
//! A stream whose records each need an answer from somewhere else spends its life waiting. This operator lets many
//! answers be awaited at once and keeps what such a stream promises: the order asked for, a deadline and retries for
//! each record, and watermarks that never overtake the records before them. It follows Flink's async I/O operator
//! (`AsyncWaitOperator`); to Flink's two orders it adds [`Order::Keyed`].
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), asyncio::OptionsError> {
//! use asyncio::{AsyncWaitExt, Options};
//! use futures::{StreamExt, stream};
//! use std::time::Duration;
//!
//! let options = Options::ordered().capacity(10).timeout(Duration::from_secs(1)).build()?;
//! let answers = stream::iter(1..=3).async_wait(options, |n: &u32| {
//!     let n = *n;
//!     async move { Ok::<_, std::io::Error>(n * 2) }
//! });
//! let answers: Vec<u32> = answers.map(|answer| answer.unwrap_or(0)).collect().await;
//! assert_eq!(answers, [2, 4, 6]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! # Layers
//!
//! [`AsyncWaitOperator`] is the core: a state machine that is told the time, takes elements and completions, and returns
//! effects (start this call, abandon that one) and output. It starts no task and reads no clock. Around it,
//! [`CompletionInbox`] carries completions from other threads to the one that owns the operator. With the feature
//! `tokio` (on by default) [`AsyncWaitExt`] puts both behind a `futures::Stream`, and [`SpawnedCalls`] holds the calls
//! that run on the runtime.
//!
//! # What it does not do
//!
//! A record whose calls have failed is an output like any other ([`Outcome::Failed`]); whether it ends the job, is left
//! out or becomes a dead letter is the caller's policy. It never emits from within a completion, never drops or merges a
//! watermark, and keeps nothing about records that have left.

mod batch;
mod coalesce;
mod context;
mod deadlines;
mod entries;
mod entry;
mod figures;
mod function;
mod inbox;
mod key;
mod operator;
mod options;
mod output;
mod panics;
mod queue;
mod result_future;
mod retry;
mod snapshot;
#[cfg(feature = "tokio")]
mod spawned;
#[cfg(feature = "tokio")]
mod stream;

pub use batch::{BatchItem, BatchOptions, BatchOptionsError, Batcher};
pub use context::{CallContext, IdempotencyKey};
pub use entry::EntryId;
pub use figures::{Figures, HeldWatermark, Report};
pub use function::{AsyncFunction, Callback, CallbackFunction, FunctionContext, OnTimeout, callback};
pub use inbox::CompletionInbox;
pub use key::{KeySelector, NoKey};
pub use operator::{AsyncWaitOperator, Effect, Offered, Refused, RefusedReason, SnapshotRefused};
pub use options::{FailurePolicy, Options, OptionsBuilder, OptionsError, Order};
pub use output::{Attempts, CallError, FailureReason, Outcome, Output};
pub use result_future::ResultFuture;
pub use retry::{NeverRetry, Retry, RetryBudget, RetryErrors, RetryPredicate, Verdict};
pub use snapshot::{DecodeError, EncodeError, RestoreError, Snapshot};
#[cfg(feature = "tokio")]
pub use spawned::SpawnedCalls;
#[cfg(feature = "tokio")]
pub use stream::{
    AsyncWait, AsyncWaitExt, AsyncWaitResult, BatchCalls, CallbackCalls, Calls, Failed, FunctionCalls,
    FutureCalls, MakeCall, Outlet, Plain, WithContext,
};
