//! An asynchronous step: the operator of `asyncio` with its calls, and what becomes of their outcomes.

mod outcome;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};

use asyncio::{
    AsyncWaitOperator, CallError, CompletionInbox, Effect, EntryId, FailurePolicy, KeySelector, Options,
    OptionsError, Output, RetryPredicate, Snapshot, SnapshotRefused, SpawnedCalls, Verdict,
};
use connectors::call::{Answer, Call, CallFailure, CallOutcome, CallRequest, Called};
use futures::FutureExt;
use job::idempotency::IdempotencyKey;
use job::key::Key;
use job::options::{EnrichOptions, OnFailure, Order, Retry};
use job::record::JsonRecord;
use runtime_core::Tick;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Flow;
use super::context::Context;
use crate::figures::StepFigures;
use crate::task::TaskError;

/// The key that keyed order goes by.
struct FieldKey(Option<String>);

impl KeySelector<JsonRecord> for FieldKey {
    type Key = Key;

    fn key_of(&self, record: &JsonRecord) -> Option<Key> {
        record.path(self.0.as_deref()?).and_then(Key::of)
    }
}

/// A failure says itself whether another attempt may help; an attempt that took too long may.
struct Retryable;

impl RetryPredicate<Asked<Answer>, Asked<CallFailure>> for Retryable {
    fn judge(&self, outcome: &Result<Asked<Answer>, CallError<Asked<CallFailure>>>) -> Verdict {
        match outcome {
            Err(CallError::Error(Asked {
                reply: CallFailure { retryable: true, retry_after, .. }, ..
            })) => retry_after.map_or(Verdict::Retry, Verdict::RetryAfter),
            Err(CallError::AttemptTimeout) => Verdict::Retry,
            Ok(_) | Err(_) => Verdict::Final,
        }
    }
}

/// What came of asking, and whether anything was asked at all.
pub(crate) struct Asked<T> {
    reply: T,
    made: bool,
}

impl<T> Asked<T> {
    const fn made(reply: T) -> Self {
        Self { reply, made: true }
    }
}

type Operator = AsyncWaitOperator<JsonRecord, Asked<Answer>, Asked<CallFailure>, FieldKey, Retryable>;
type Settled = Output<JsonRecord, Asked<Answer>, Asked<CallFailure>>;

struct WakeTask(Arc<Notify>);

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// One asynchronous step.
pub(crate) struct EnrichStep {
    options: EnrichOptions,
    /// Its place among the chain's asynchronous steps.
    index: usize,
    operator: Operator,
    call: Arc<dyn Call>,
    running: SpawnedCalls,
    inbox: CompletionInbox<Asked<Answer>, Asked<CallFailure>>,
    io: Handle,
    /// Failures that the operator does not know of: answers that do not fit the record.
    unfit: u64,
    /// Attempts that the operator counts and that asked nothing.
    not_made: u64,
}

impl EnrichStep {
    /// `wake` is told when a call that ran elsewhere has ended.
    pub(crate) fn new(
        options: EnrichOptions,
        index: usize,
        call: Arc<dyn Call>,
        io: Handle,
        wake: Arc<Notify>,
    ) -> Result<Self, OptionsError> {
        let key = FieldKey(options.key.clone());
        let operator = AsyncWaitOperator::with(operator_options(&options)?, key, Retryable);
        let inbox = CompletionInbox::new();
        // It is empty: nothing has been called yet.
        let _ = inbox.register(&Waker::from(Arc::new(WakeTask(wake))));
        let running = SpawnedCalls::new();
        Ok(Self { options, index, operator, call, running, inbox, io, unfit: 0, not_made: 0 })
    }

    pub(crate) fn has_room(&self) -> bool {
        self.operator.is_available()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operator.is_empty()
    }

    /// Takes in what has come from running calls, then lets time pass: an answer that came in time is not late.
    pub(crate) fn begin_turn(&mut self, cx: &Context) -> bool {
        let (operator, running) = (&mut self.operator, &mut self.running);
        let moved = self.inbox.deliver(|entry, attempt, result| {
            running.completed(entry, attempt);
            operator.complete(entry, attempt, result, cx.now);
        });
        let moved = moved > 0;
        self.operator.advance(cx.now);
        self.run_effects(cx);
        moved
    }

    /// Takes in an element and makes the call about it.
    pub(crate) fn push(&mut self, element: Flow, cx: &Context) -> Result<(), TaskError> {
        self.operator.push(element, cx.now).map_err(|refused| {
            TaskError::recoverable(format!(
                "step `{}` was given an element without room: {refused}",
                self.options.name
            ))
        })?;
        self.run_effects(cx);
        Ok(())
    }

    /// Takes in an element though there may be no room: without, it waits its turn there, before whatever comes later.
    pub(crate) fn park(&mut self, element: Flow, cx: &Context) -> Result<(), TaskError> {
        self.operator.park(element, cx.now).map_err(|refused| {
            TaskError::recoverable(format!(
                "step `{}` was given an element after its end: {refused}",
                self.options.name
            ))
        })?;
        self.run_effects(cx);
        Ok(())
    }

    pub(crate) fn parked(&self) -> usize {
        self.operator.parked()
    }

    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    /// What it holds. A record shares its bytes with its copy, so this costs some hundred nanoseconds for each.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<JsonRecord>, SnapshotRefused> {
        Ok(self.operator.snapshot()?.cloned())
    }

    /// Begins with what a snapshot holds; before anything else.
    pub(crate) fn restore(&mut self, snapshot: Snapshot<JsonRecord>, cx: &Context) -> Result<(), TaskError> {
        self.operator.restore(snapshot, cx.now).map_err(TaskError::recoverable)?;
        self.run_effects(cx);
        Ok(())
    }

    pub(crate) fn end_of_input(&mut self, cx: &Context) {
        self.operator.end_of_input(cx.now);
        self.run_effects(cx);
    }

    pub(crate) fn next_output(&mut self) -> Option<Settled> {
        self.operator.next_output()
    }

    pub(crate) fn next_wakeup(&mut self) -> Option<Tick> {
        self.operator.next_wakeup()
    }

    pub(crate) fn publish(&self, cx: &Context) {
        let Some(published) = self.figures(cx) else { return };
        let figures = self.operator.figures(cx.now);
        published.in_flight.set(figures.in_flight as u64);
        published.calls.set(figures.calls.saturating_sub(self.not_made));
        published.retries.set(figures.retries);
        published.timeouts.set(figures.timeouts + figures.attempt_timeouts);
        published.failures.set(figures.failures + self.unfit);
        published.completed_waiting.set(figures.completed_waiting as u64);
        let oldest = figures.oldest_in_flight.map_or(0, |age| age.as_millis());
        published.oldest_in_flight_ms.set(u64::try_from(oldest).unwrap_or(u64::MAX));
    }

    fn figures<'a>(&self, cx: &'a Context) -> Option<&'a StepFigures> {
        cx.figures.steps.get(self.index)
    }

    fn run_effects(&mut self, cx: &Context) {
        while let Some(effect) = self.operator.next_effect() {
            match effect {
                Effect::Start { entry, attempt } => self.start(entry, attempt, cx),
                // Only an operator that was told to ask about timeouts asks.
                Effect::TimedOut { .. } => {}
                Effect::Abandon { entry, attempt } => self.running.abandon(entry, attempt),
            }
        }
    }

    fn start(&mut self, entry: EntryId, attempt: u32, cx: &Context) {
        let (Some(input), Some(context)) = (self.operator.input(entry), self.operator.context(entry)) else {
            return;
        };
        let record = input.value.clone();
        let idempotency_key = IdempotencyKey::of(cx.origin_job, &self.options.name, record.origin());
        let deadline = context.deadline();
        let request = CallRequest { record, idempotency_key, attempt: context.attempt(), deadline };
        match catch_unwind(AssertUnwindSafe(|| self.call.call(&request))) {
            Ok(Called::Ready(outcome)) => self.complete(entry, attempt, outcome, true, cx),
            Ok(Called::NotMade(outcome)) => {
                self.not_made += 1;
                self.complete(entry, attempt, outcome, false, cx);
            }
            Ok(Called::Pending(call)) => {
                let asked = call.map(|outcome| outcome.map(Asked::made).map_err(Asked::made));
                self.running.spawn(&self.io, &mut self.inbox, entry, attempt, asked);
            }
            Err(panic) => self.complete(entry, attempt, Err(panicked(&*panic)), true, cx),
        }
    }

    fn complete(&mut self, entry: EntryId, attempt: u32, outcome: CallOutcome, made: bool, cx: &Context) {
        let outcome = outcome
            .map(|reply| Asked { reply, made })
            .map_err(|reply| CallError::Error(Asked { reply, made }));
        self.operator.complete(entry, attempt, outcome, cx.now);
    }
}

/// A call that panics would do so again.
fn panicked(panic: &(dyn std::any::Any + Send)) -> CallFailure {
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    CallFailure::terminal(format!("the call panicked: {}", said.unwrap_or("without a message")))
}

fn operator_options(options: &EnrichOptions) -> Result<Options, OptionsError> {
    let order = match options.order {
        Order::Ordered => asyncio::Order::Ordered,
        Order::Unordered => asyncio::Order::Unordered,
        Order::Keyed => asyncio::Order::Keyed,
    };
    let retry = match options.retry {
        Retry::None => asyncio::Retry::None,
        Retry::FixedDelay { max_retries, delay } => asyncio::Retry::FixedDelay { max_retries, delay },
        Retry::ExponentialDelay { max_retries, initial, max, multiplier, jitter } => {
            // Records differ in their jitter by their number; two steps need not differ.
            asyncio::Retry::ExponentialDelay { max_retries, initial, max, multiplier, jitter, seed: 0 }
        }
    };
    Options::with_order(order)
        .capacity(options.capacity)
        .timeout(options.timeout)
        .attempt_timeout(options.attempt_timeout)
        .retry(retry)
        .max_in_flight_per_key(options.max_in_flight_per_key)
        .on_failure(match options.on_failure {
            OnFailure::Fail => FailurePolicy::Fail,
            OnFailure::Drop => FailurePolicy::Drop,
            OnFailure::Keep => FailurePolicy::Keep,
            OnFailure::DeadLetter => FailurePolicy::DeadLetter,
        })
        .name(options.name.clone())
        .build()
}
