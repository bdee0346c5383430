//! What drives the operator of a stream.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use runtime_core::{Record, Tick};

use super::calls::{Calls, Outlet};
use super::failed::{AsyncWaitResult, Failed};
use super::timing::Timing;
use crate::context::{CallContext, Identity};
use crate::inbox::CompletionInbox;
use crate::key::KeySelector;
use crate::operator::{AsyncWaitOperator, Effect, Offered};
use crate::options::FailurePolicy;
use crate::output::{Attempts, Outcome, Output};
use crate::retry::RetryPredicate;

/// How many inputs are taken in between two looks at clock, inbox and timers, and half as many as results are handed out.
/// Long enough that the looks cost little, short enough that freed places are soon taken again; and since more may leave
/// than comes in, results do not pile up behind a source that always has more.
const RUN: usize = 64;

/// The same while nothing is held, so that there is nothing to look after but the clock.
const EMPTY_RUN: usize = 512;

/// How many calls that were woken are polled before the results of those that have ended leave: few, so that no result
/// waits for long.
const WOKEN_RUN: usize = 16;

/// How often woken calls are polled without a result before others on this thread come first.
const MOST_LOOKS: usize = 64;

pub(super) struct Engine<I, C: Calls<I>, S: KeySelector<I>, P> {
    pub(super) operator: AsyncWaitOperator<I, C::Output, C::Error, S, P>,
    calls: C,
    inbox: CompletionInbox<C::Output, C::Error>,
    /// The time that a first attempt has.
    first_limit: Option<Duration>,
    /// How many more results may be handed out before the next look at everything else.
    run: usize,
    /// Whether a failure has ended the work.
    pub(super) over: bool,
}

type Item<I, C> = AsyncWaitResult<I, <C as Calls<I>>::Output, <C as Calls<I>>::Error>;

impl<I, C, S, P> Engine<I, C, S, P>
where
    C: Calls<I>,
    S: KeySelector<I>,
    P: RetryPredicate<C::Output, C::Error>,
{
    pub(super) fn new(operator: AsyncWaitOperator<I, C::Output, C::Error, S, P>, calls: C) -> Self {
        let operator = if calls.answers_timeouts() { operator.asking_on_timeout() } else { operator };
        let options = operator.options();
        let first_limit = [options.timeout(), options.attempt_timeout()].into_iter().flatten().min();
        Self { operator, calls, inbox: CompletionInbox::new(), first_limit, run: 0, over: false }
    }

    pub(super) fn poll_next<St: Stream<Item = I>>(
        &mut self,
        source: &mut Option<Pin<Box<St>>>,
        timing: &mut Timing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Item<I, C>>> {
        // While nothing is held there is nothing to look after: what is ready at once passes.
        if self.run > 0
            && self.operator.is_empty()
            && let Some(polled) = source
            && let Poll::Ready(input) = polled.as_mut().poll_next(cx)
        {
            match input {
                Some(input) => {
                    self.run -= 1;
                    if let Some(item) = self.offer(input, timing, &Cell::new(None)) {
                        return Poll::Ready(Some(item));
                    }
                }
                None => self.end(source, timing),
            }
        }
        self.poll_held(source, timing, cx)
    }

    /// The longer way: something is held, or the run is over.
    #[inline(never)]
    fn poll_held<St: Stream<Item = I>>(
        &mut self,
        source: &mut Option<Pin<Box<St>>>,
        timing: &mut Timing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Item<I, C>>> {
        if self.over {
            *source = None;
            self.operator.close();
            self.calls.close();
            return Poll::Ready(None);
        }
        if self.run > 0
            && let Some(item) = self.next_item()
        {
            self.run -= 1;
            return Poll::Ready(Some(item));
        }
        self.turn(source, timing, cx)
    }

    #[cold]
    fn end<St>(&mut self, source: &mut Option<Pin<Box<St>>>, timing: &Timing) {
        *source = None;
        self.operator.end_of_input(timing.now());
        self.carry_out(timing);
    }

    /// Looks at everything: completions, timers, source, results.
    fn turn<St: Stream<Item = I>>(
        &mut self,
        source: &mut Option<Pin<Box<St>>>,
        timing: &mut Timing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Item<I, C>>> {
        let mut looks_for_more = 0;
        loop {
            // Others on this thread come first now and then, however ready everything here is.
            let coop = ready!(tokio::task::coop::poll_proceed(cx));
            let now = timing.now();
            self.collect(now, cx);
            self.carry_out(timing);
            // A small operator is looked after more often: its places must not stand empty meanwhile.
            let take = RUN.min(self.operator.options().capacity().div_ceil(2));
            let (passed, source_waits) = match self.take_in(take, source, timing, cx) {
                Poll::Ready(passed) => (passed, false),
                Poll::Pending => (None, true),
            };
            // Behind the inputs, so that what ends now is not held up by calls that begin; before the timers, so that what
            // has come is not late.
            let more_woken = self.poll_woken(now, cx);
            self.operator.advance(now);
            self.carry_out(timing);
            self.run = if self.operator.is_empty() { EMPTY_RUN } else { 2 * take };
            let nothing_more = source.is_none() || !self.operator.is_available();
            let mut outlet = Outlet { inbox: &mut self.inbox, runtime: timing.runtime(), now: &|| now };
            self.calls.advance(nothing_more, &mut outlet);
            coop.made_progress();
            if let Some(item) = passed.or_else(|| self.next_item()) {
                return Poll::Ready(Some(item));
            }
            if self.operator.is_drained() {
                self.calls.close();
                return Poll::Ready(None);
            }
            if !source_waits && source.is_some() && self.operator.is_available() {
                // The source has more to give.
                continue;
            }
            if more_woken {
                // Theirs may be the result that is wanted next. But calls that wake themselves would never end this.
                looks_for_more += 1;
                if looks_for_more < MOST_LOOKS {
                    continue;
                }
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match [self.operator.next_wakeup(), self.calls.next_wakeup()].into_iter().flatten().min() {
                Some(at) => ready!(timing.poll_until(at, cx)),
                None => return Poll::Pending,
            }
        }
    }

    /// Takes in what has come, and has the next completion wake the consumer.
    fn collect(&mut self, now: Tick, cx: &Context<'_>) {
        if self.inbox.register(cx.waker()) {
            let (operator, calls) = (&mut self.operator, &mut self.calls);
            self.inbox.deliver(|entry, attempt, result| {
                calls.completed(entry, attempt);
                operator.complete(entry, attempt, result, now);
            });
        }
    }

    /// Polls calls that were woken. Says whether there may be more.
    fn poll_woken(&mut self, now: Tick, cx: &mut Context<'_>) -> bool {
        // Where a timer is about to end calls, all get the chance to be in time.
        let at_most = if self.operator.next_wakeup().is_some_and(|due| due <= now) {
            self.operator.len()
        } else {
            WOKEN_RUN
        };
        let operator = &mut self.operator;
        self.calls.poll_woken(cx, at_most, |entry, attempt, result| {
            operator.complete(entry, attempt, result, now);
        })
    }

    /// Takes at most so many inputs in while there is room. Gives the item of one that has passed; pending when
    /// the source has to wake the consumer.
    fn take_in<St: Stream<Item = I>>(
        &mut self,
        at_most: usize,
        source: &mut Option<Pin<Box<St>>>,
        timing: &Timing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Item<I, C>>> {
        // One look at the clock serves all inputs of a poll.
        let looked_at = Cell::new(None);
        for _ in 0..at_most {
            let Some(polled) = source.as_mut().filter(|_| self.operator.is_available()) else { break };
            match ready!(polled.as_mut().poll_next(cx)) {
                Some(input) => {
                    if let Some(item) = self.offer(input, timing, &looked_at) {
                        return Poll::Ready(Some(item));
                    }
                }
                None => self.end(source, timing),
            }
        }
        Poll::Ready(None)
    }

    /// Takes in an input. Gives its item if it has passed.
    #[inline]
    fn offer(&mut self, input: I, timing: &Timing, looked_at: &Cell<Option<Tick>>) -> Option<Item<I, C>> {
        // None is needed for an input that passes.
        let now = || {
            looked_at.get().unwrap_or_else(|| {
                let now = timing.now();
                looked_at.set(Some(now));
                now
            })
        };
        let Self { operator, calls, inbox, first_limit, .. } = self;
        let (limit, scope) = (*first_limit, operator.options().idempotency_scope());
        let offered = operator.offer(Record::new(input), now, |input, entry| {
            let context = || {
                let (now, identity) = (now(), Identity { scope, sequence: entry.sequence() });
                CallContext {
                    attempt: 1,
                    started_at: now,
                    deadline: limit.map(|limit| now + limit),
                    identity,
                }
            };
            let mut outlet = Outlet { inbox, runtime: timing.runtime(), now: &now };
            calls.start(input, entry, 1, context, &mut outlet)
        });
        match offered {
            Ok(Offered::Passed { answer, .. }) => Some(Ok(answer)),
            Ok(Offered::Held) => {
                if self.operator.has_effects() {
                    self.carry_out(timing);
                }
                None
            }
            // There is room, so it is not refused.
            Err(_) => None,
        }
    }

    /// Has calls made and dropped until there is nothing to do.
    #[inline(never)]
    fn carry_out(&mut self, timing: &Timing) {
        while let Some(effect) = self.operator.next_effect() {
            let (entry, attempt) = match effect {
                Effect::Abandon { entry, attempt } => {
                    self.calls.abandon(entry, attempt);
                    continue;
                }
                Effect::Start { entry, attempt } | Effect::TimedOut { entry, attempt } => (entry, attempt),
            };
            let (Some(record), Some(context)) = (self.operator.input(entry), self.operator.context(entry))
            else {
                continue;
            };
            let (input, now) = (&record.value, timing.now());
            let mut outlet = Outlet { inbox: &mut self.inbox, runtime: timing.runtime(), now: &|| now };
            let done = match effect {
                Effect::TimedOut { .. } => self.calls.timed_out(input, context, entry, attempt, &mut outlet),
                _ => self.calls.start(input, entry, attempt, || context, &mut outlet),
            };
            if let Poll::Ready(result) = done {
                self.operator.complete(entry, attempt, result, now);
            }
        }
    }

    fn next_item(&mut self) -> Option<Item<I, C>> {
        if self.operator.is_empty() {
            return None;
        }
        loop {
            let item = self.operator.emit(item_of, |output| match output {
                Output::Record { input, outcome, attempts } => item_of(input, outcome, attempts),
                // Only records were pushed.
                _ => None,
            })?;
            if let Some(Err(failed)) = &item {
                self.over |= failed.policy == FailurePolicy::Fail;
            }
            if item.is_some() {
                return item;
            }
        }
    }
}

/// What the consumer is given of this record, if anything.
#[inline]
fn item_of<I, R, E>(
    input: Record<I>,
    outcome: Outcome<R, E>,
    attempts: Attempts,
) -> Option<AsyncWaitResult<I, R, E>> {
    match outcome {
        Outcome::Completed(answer) => Some(Ok(answer)),
        Outcome::Failed { policy: FailurePolicy::Drop, .. } => None,
        Outcome::Failed { reason, policy } => {
            Some(Err(Box::new(Failed { input: input.value, reason, policy, attempts })))
        }
    }
}
