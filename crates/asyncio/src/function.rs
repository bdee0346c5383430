//! What a user brings: how a record is asked about.
//!
//! An `async` closure does for most. What needs to be opened and closed, wants to know its attempt's number, or has
//! something to say when a record's time is over, is an [`AsyncFunction`]; what talks to a client with callbacks is a
//! [`CallbackFunction`], the original's shape.

use std::future::Future;

use crate::context::CallContext;
use crate::options::Options;
use crate::result_future::ResultFuture;

/// Where a function runs (Flink: the part of `RuntimeContext` that an asynchronous function may use).
///
/// There is no access to state, accumulators, broadcast variables or a distributed cache, which Flink's context has and
/// refuses: calls run concurrently and belong to no key. A function's own metrics are its own fields.
///
/// ```
/// use asyncio::{FunctionContext, Options};
///
/// let context = FunctionContext::of(&Options::ordered().name("prices").build()?).subtask(2, 4);
/// assert_eq!(context.to_string(), "prices (3/4)");
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionContext {
    operator: String,
    subtask: u32,
    parallelism: u32,
}

impl FunctionContext {
    /// The context of the only subtask of an operator with these options.
    #[must_use]
    pub fn of(options: &Options) -> Self {
        Self { operator: options.name().to_owned(), subtask: 0, parallelism: 1 }
    }

    /// The same for one of several subtasks, counted from 0.
    #[must_use]
    pub const fn subtask(mut self, subtask: u32, parallelism: u32) -> Self {
        self.subtask = subtask;
        self.parallelism = parallelism;
        self
    }

    /// The operator's name.
    #[must_use]
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// Which subtask this is, from 0.
    #[must_use]
    pub const fn subtask_index(&self) -> u32 {
        self.subtask
    }

    /// How many subtasks the operator has.
    #[must_use]
    pub const fn parallelism(&self) -> u32 {
        self.parallelism
    }
}

/// The operator's name with the subtask, counted from 1, as in Flink.
impl std::fmt::Display for FunctionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}/{})", self.operator, self.subtask + 1, self.parallelism)
    }
}

/// What follows when a record's budget has ended. "Nothing" cannot be said: a record that nobody answers for would hold
/// up the others for ever.
///
/// ```
/// use asyncio::OnTimeout;
///
/// /// The `timeout` of some function: a price that is not known in time is last week's, if there is one.
/// fn timeout(product: &str) -> OnTimeout<u32, String> {
///     match product {
///         "" => OnTimeout::Error("a product without a name".to_owned()),
///         "apple" => OnTimeout::Complete(199),
///         _ => OnTimeout::Fail,
///     }
/// }
/// # assert_eq!(timeout("apple"), OnTimeout::Complete(199));
/// ```
///
/// [`FunctionCalls`](crate::FunctionCalls) has one that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnTimeout<R, E> {
    /// The record fails with [`FailureReason::Timeout`](crate::FailureReason::Timeout).
    Fail,
    /// This is the answer.
    Complete(R),
    /// The record fails with this error. It is not retried.
    Error(E),
}

/// Asks about records (Flink: `AsyncFunction`, `RichAsyncFunction`).
///
/// ```
/// use asyncio::{AsyncFunction, CallContext, FunctionContext, OnTimeout};
///
/// struct Prices {
///     service: String,
/// }
///
/// impl AsyncFunction<String> for Prices {
///     type Output = u32;
///     type Error = String;
///
///     fn open(&mut self, context: &FunctionContext) -> Result<(), String> {
///         self.service = format!("http://localhost/prices?from={}", context.subtask_index());
///         Ok(())
///     }
///
///     async fn call(&self, product: &String, context: &CallContext) -> Result<u32, String> {
///         // ... ask `self.service`, with `context.idempotency_key()` in a header ...
///         Ok(product.len() as u32)
///     }
///
///     fn timeout(&self, _product: &String, _context: &CallContext) -> OnTimeout<u32, String> {
///         OnTimeout::Complete(0)
///     }
/// }
/// ```
pub trait AsyncFunction<I>: Send + Sync + 'static {
    /// What a call answers.
    type Output: Send + 'static;
    /// What a call may fail with.
    type Error: Send + 'static;

    /// Called once, before any call.
    ///
    /// # Errors
    ///
    /// When the function cannot work; nothing is called then but [`close`](Self::close).
    fn open(&mut self, _context: &FunctionContext) -> Result<(), Self::Error> {
        Ok(())
    }

    /// One attempt to ask about one record. A panic is a final error of the record.
    fn call(
        &self,
        input: &I,
        context: &CallContext,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;

    /// What follows when the record's budget has ended. Called in the operator's thread, so it must not wait; a call that
    /// still runs is dropped.
    fn timeout(&self, _input: &I, _context: &CallContext) -> OnTimeout<Self::Output, Self::Error> {
        OnTimeout::Fail
    }

    /// Called once, at the end, by the thread that gives the operator up: when the last call has ended, when the calls
    /// that run were dropped (one that another thread polls at this moment is dropped as soon as it rests), and after an
    /// [`open`](Self::open) that failed.
    fn close(&self) {}
}

/// Asks about records by a client that calls back (Flink: `AsyncFunction` with its `ResultFuture`).
///
/// ```
/// use asyncio::{CallContext, CallbackFunction, ResultFuture};
///
/// struct Doubling;
///
/// impl CallbackFunction<u32> for Doubling {
///     type Output = u32;
///     type Error = String;
///
///     fn invoke(&mut self, n: &u32, _: &CallContext, result: ResultFuture<u32, String>) -> Result<(), String> {
///         let n = *n;
///         std::thread::spawn(move || result.complete(n * 2));
///         Ok(())
///     }
/// }
/// ```
pub trait CallbackFunction<I> {
    /// What a call answers.
    type Output;
    /// What a call may fail with.
    type Error;

    /// Called once, before any call.
    ///
    /// # Errors
    ///
    /// When the function cannot work; nothing is called then but [`close`](Self::close).
    fn open(&mut self, _context: &FunctionContext) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Begins one attempt to ask about one record; whoever gets `result` ends it. Called in the operator's thread, one
    /// call after the other, so it must not wait.
    ///
    /// # Errors
    ///
    /// When the call cannot begin: a final error of the record. It is not retried.
    fn invoke(
        &mut self,
        input: &I,
        context: &CallContext,
        result: ResultFuture<Self::Output, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// The record's budget has ended: complete it with what should follow. The first completion from now on counts, be it
    /// this one or that of the call, which goes on. Whoever completes nothing leaves the record in flight: no second
    /// timeout comes.
    ///
    /// # Errors
    ///
    /// When that cannot be said: a final error of the record.
    fn timeout(
        &mut self,
        _input: &I,
        _context: &CallContext,
        result: ResultFuture<Self::Output, Self::Error>,
    ) -> Result<(), Self::Error> {
        result.time_out();
        Ok(())
    }

    /// Called once, at the end: also after an [`open`](Self::open) that failed, and when the operator is given up.
    fn close(&mut self) {}
}

/// A closure as a [`CallbackFunction`].
///
/// ```
/// use asyncio::{ResultFuture, callback};
///
/// let doubling = callback(|n: &u32, result: ResultFuture<u32, String>| result.complete(n * 2));
/// # let _ = doubling;
/// ```
pub const fn callback<I, F, R, E>(function: F) -> Callback<F, R, E>
where
    F: FnMut(&I, ResultFuture<R, E>),
{
    Callback { function, completes: std::marker::PhantomData }
}

/// The function that [`callback`] makes.
///
/// The example is at [`CallbackCalls`](crate::CallbackCalls).
#[derive(Debug)]
pub struct Callback<F, R, E> {
    function: F,
    completes: std::marker::PhantomData<fn(R, E)>,
}

impl<I, F, R, E> CallbackFunction<I> for Callback<F, R, E>
where
    F: FnMut(&I, ResultFuture<R, E>),
{
    type Output = R;
    type Error = E;

    fn invoke(&mut self, input: &I, _: &CallContext, result: ResultFuture<R, E>) -> Result<(), E> {
        (self.function)(input, result);
        Ok(())
    }
}
