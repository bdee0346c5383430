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
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
//! # Choosing an order
//!
//! | [`Order`] | records leave | a slow answer holds up | take it when |
//! |---|---|---|---|
//! | [`Ordered`](Order::Ordered) | as they came | everything behind it | the output must have the input's order |
//! | [`Unordered`](Order::Unordered) | as they are ready | only the watermarks behind it, and what is behind those | order does not matter: most answers in flight at the least latency |
//! | [`Keyed`](Order::Keyed) | as they came within a key | the records of its key, and watermarks | calls about one key must not overtake each other |
//!
//! In keyed order the *calls* of a key are ordered, too: by default a call starts when the one before it of the same key
//! has its outcome ([`max_in_flight_per_key`](OptionsBuilder::max_in_flight_per_key)). In the other orders calls start in
//! the order of the input and overlap freely. The [capacity](OptionsBuilder::capacity) counts everything that is held,
//! records that are done and wait for their turn included: in order, a slow head fills it.
//!
//! # Failures and policies
//!
//! Every record that is taken in ends in exactly one [`Outcome`]. What is to become of one that has failed says its
//! [`FailurePolicy`]: the options name it ([`on_failure`](OptionsBuilder::on_failure)), and a
//! [predicate](RetryPredicate::policy) may decide by the kind of failure. A stream gives `Ok(answer)`, or `Err` with a
//! [`Failed`] that has the input, the reason and the attempts:
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use asyncio::{AsyncWaitExt, FailurePolicy, Options};
//! use futures::{StreamExt, stream};
//!
//! let options = Options::ordered().on_failure(FailurePolicy::DeadLetter).build()?;
//! let mut lengths = stream::iter(["one", "", "three"]).async_wait(options, |word: &&str| {
//!     let length = word.len();
//!     async move { if length > 0 { Ok(length) } else { Err("an empty word") } }
//! });
//! let (mut known, mut dead) = (vec![], vec![]);
//! while let Some(length) = lengths.next().await {
//!     match length {
//!         Ok(length) => known.push(length),
//!         Err(failed) => dead.push(failed.to_string()),
//!     }
//! }
//! assert_eq!(known, [3, 5]);
//! assert_eq!(dead, [r#"no answer for "" after 1 attempt(s): an empty word"#]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! Under [`Fail`](FailurePolicy::Fail), the default, the failure is told at once, whatever the order, and is the stream's
//! last item. A panic in a call, a predicate that panics and an error before the call began are final failures of that
//! record alone, with their text.
//!
//! # Timeouts and retries
//!
//! [`timeout`](OptionsBuilder::timeout) is the budget of a record over all attempts and pauses, counted from the start of
//! its first attempt; [`attempt_timeout`](OptionsBuilder::attempt_timeout) bounds each attempt. Unless said otherwise there
//! is neither. [`Retry`] says how often and after which pause a call is made again, a [`RetryPredicate`] what is worth it;
//! [`Verdict::RetryAfter`] lengthens a pause as the service asks, a [`RetryBudget`] bounds the retries of all records
//! together. An answer that comes after the record's end is ignored, and a call whose time is over is dropped.
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use asyncio::{AsyncWaitExt, AsyncWaitOperator, CallContext, FutureCalls, Options, Retry};
//! use futures::{StreamExt, stream};
//! use std::time::Duration;
//!
//! let options = Options::ordered()
//!     .timeout(Duration::from_secs(30))
//!     .attempt_timeout(Duration::from_secs(2))
//!     .retry(Retry::FixedDelay { max_retries: 3, delay: Duration::from_millis(100) })
//!     .build()?;
//! let calls = FutureCalls::with_context(|n: &u32, context: CallContext| {
//!     let (n, attempt) = (*n, context.attempt());
//!     async move { if attempt < 3 { Err("busy") } else { Ok((n, attempt)) } }
//! });
//! // The source stays open: see below.
//! let source = stream::iter([7]).chain(stream::pending());
//! let mut answers = source.async_wait_on(AsyncWaitOperator::new(options), calls);
//! assert_eq!(answers.next().await.unwrap()?, (7, 3));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! **At the end of the input nothing is retried any more** (as in Flink): who pauses is called once more at once, and the
//! outcomes of running attempts stand. A short finite source, which ends before its first answer has come, therefore sees
//! no retries at all, unless [`retry_after_end`](OptionsBuilder::retry_after_end) lets them go on.
//!
//! # Keys and idempotency keys
//!
//! A [`KeySelector`], which may be a closure, names the key of a record in [keyed order](AsyncWaitExt::async_wait_with);
//! a record without key waits for nobody. Whatever the order, each record also has an [`IdempotencyKey`]: the same for all
//! its attempts, also after a restore. Give it to a service that must not act twice, and give each operator that may ask
//! the same service, each subtask counted, a [scope](OptionsBuilder::idempotency_scope) of its own. Calls are made *at
//! least* once.
//!
//! # Ways to make calls
//!
//! | what | for | example |
//! |---|---|---|
//! | `async` closure | most | [`AsyncWaitExt::async_wait`] |
//! | closure with context | who wants the attempt's number, deadline or idempotency key | [`FutureCalls::with_context`] |
//! | [`AsyncFunction`] | what is opened and closed, or has something to say when a record's time is over | [`FunctionCalls`] |
//! | [`CallbackFunction`] and [`ResultFuture`] | clients that call back, from any thread | [`CallbackCalls`] |
//! | batches | services that answer many questions at once; each input has its own result | [`BatchCalls`] |
//! | shared calls | equal records in flight together ask once | [`coalescing_by`](AsyncWaitOperator::coalescing_by) |
//! | your own [`Calls`] | what answers from memory now and then | [`Calls`] |
//!
//! # Snapshot and restore
//!
//! A [`Snapshot`] holds the inputs of what has not left, in the order of admission, with the attempts made so far; never a
//! result. Nothing is drained or waited for, and a full operator need not hold up a checkpoint: what waits before it can be
//! [parked](AsyncWaitOperator::park). [`encode`](Snapshot::encode) and [`decode`](Snapshot::decode) make bytes of it in a
//! versioned format; [`restore`](AsyncWaitOperator::restore) fits whatever capacity, order or options the new operator has;
//! [`split`](Snapshot::split) and [`combined`](Snapshot::combined) change the parallelism.
//!
//! # Metrics
//!
//! [`Figures`] are counts and gauges, [`Report`] adds the histograms and [what holds the
//! watermark](HeldWatermark). A `Report` shows itself through `runtime_core::metrics::Observe`, under names that begin
//! with `asyncio_`; no registry is brought along.
//!
//! # Layers, and use without tokio
//!
//! [`AsyncWaitOperator`] is the core: a state machine that is told the time, takes elements and completions, and returns
//! [effects](Effect) (start this call, abandon that one) and [output](Output). It starts no task and reads no clock. Around
//! it, [`CompletionInbox`] carries completions from other threads to the one that owns the operator. With the feature
//! `tokio` (on by default) [`AsyncWaitExt`] puts both behind a `futures::Stream`; [`DrivenCalls`] holds calls that are
//! futures of one type, [`SpawnedCalls`] those that are tasks of the runtime. With `default-features = false` there is
//! no tokio, and no runtime is needed: the example `without_tokio` drives the core on plain threads.
//!
//! A stream has records only. Who has watermarks, statuses or barriers among them drives the core.
//!
//! # Beside `buffered` and `buffer_unordered`
//!
//! | | `futures` | here |
//! |---|---|---|
//! | calls make progress | while the stream is polled: behind a slow consumer they stand still (futures-rs#2387) | always: what the consumer does not poll, one task for all calls does |
//! | deadline, retry | around each future, by hand; a pause keeps nobody's order | for the record as a whole |
//! | order | the input's, or none | also within a key, and around watermarks |
//! | a call that panics | takes the stream's consumer with it | fails its record |
//! | a call that computes | holds up the others | the same; it should be given a thread or a task of its own |
//! | what is in flight | is lost with the process | is in the snapshot |
//! | calls | may borrow, and need not be `Send` | are `Send + 'static` |
//!
//! # What it does not do
//!
//! It keeps no connections, no cache, no rate limit and no circuit breaker: those belong to the call. Its capacity is that
//! of one operator, not of all that ask a service. It never emits from within a completion, never drops or merges a
//! watermark (but for those of several restored units, see [`combined`](Snapshot::combined)), and keeps nothing about
//! records that have left.

// What the page links to is there with all features, with which it is made.
#![cfg_attr(not(feature = "tokio"), allow(rustdoc::broken_intra_doc_links))]

mod batch;
mod coalesce;
mod context;
mod deadlines;
#[cfg(feature = "tokio")]
mod driven;
mod entries;
mod entry;
mod figures;
mod function;
mod inbox;
mod key;
#[doc(hidden)]
pub mod measured;
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
#[cfg(feature = "tokio")]
mod sync;

pub use batch::{BatchItem, BatchOptions, BatchOptionsError, Batcher};
pub use context::{CallContext, IdempotencyKey};
#[cfg(feature = "tokio")]
pub use driven::DrivenCalls;
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
