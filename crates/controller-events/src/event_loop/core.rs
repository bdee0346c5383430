//! What every kind of loop does around a handler: take what comes next, begin it, and deal with how it ended.
//!
//! Kafka's order is kept: the state changes, then the time in the queue is recorded, then the handler runs, then what
//! follows from it is done and its time recorded whether it succeeded or not, then the loop is idle again, also between
//! two events of a backlog.
//!
//! The time is read once an event: where one ends the next one starts. Before something is decided by it (an event with
//! a deadline, nothing to do) it is read again.

use crate::commits::Commits;
use crate::event::{Event, EventState, NotRun};
use crate::handle::Handle;
use crate::options::{HaltHook, LoopOptions};
use crate::periodic::Periodics;
use crate::processor::{Fault, FaultAction, StopReason};
use crate::queue::{Queued, Ready, Selected, Taken};
use crate::shared::{ENDED, Shared};
use crate::ticket::{Outcome, TicketCell};
use runtime_core::{Clock, Epoch, Tick};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

/// What one turn did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// A handler ran.
    Ran,
    /// An event was told that it will not run.
    Rejected,
    /// There is nothing to do before this moment, or at all.
    Idle { next_wakeup: Option<Tick> },
    /// A barrier's callbacks are running on another thread.
    Held,
    /// The loop has ended.
    Stopped(StopReason),
}

/// What comes next.
pub(super) enum Next<E: Event> {
    Run(E, Begun),
    End(StopReason),
    Did(Turn),
}

/// An event that has started.
pub(super) struct Begun {
    ticket: Option<Arc<TicketCell>>,
    state: u8,
    name: &'static str,
    at: Tick,
    /// The chain of ticks that it belongs to.
    chain: Option<u64>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // Its handler was dropped with its loop.
        if let Some(ticket) = &self.ticket {
            ticket.finished(Outcome::Failed);
        }
    }
}

impl Begun {
    pub(super) const fn at(&self) -> Tick {
        self.at
    }
}

/// How a handler ended: with its result, or with what it panicked with.
pub(super) type Ended = thread::Result<Result<(), Fault>>;

/// The calls of a processor besides its handler.
pub(super) trait Hooks {
    fn after_each(&mut self);
    fn on_fault(&mut self, fault: &Fault) -> FaultAction;
    fn on_failover(&mut self, fault: &Fault);
    fn on_stop(&mut self, why: StopReason);
}

/// What belongs to the loop and its handlers alone.
pub(crate) struct Confined<E: Event> {
    pub(crate) epoch: Epoch,
    pub(crate) periodics: Periodics<E>,
    pub(crate) commits: Commits,
}

/// The loop without its processor.
pub(super) struct Core<E: Event> {
    pub(super) handle: Handle<E>,
    pub(super) name: Cow<'static, str>,
    pub(super) confined: Confined<E>,
    panic_policy: FaultAction,
    on_halt: Option<HaltHook>,
    /// Whether the loop waits in real time; a mocked clock calls instead.
    pub(super) real_time: bool,
    pub(super) stopped: Option<StopReason>,
    /// Producers have been asked to call.
    pub(super) armed: bool,
    /// When the last event ended, if nothing has happened since.
    now: Option<Tick>,
}

impl<E: Event> Core<E> {
    pub(super) fn new(options: LoopOptions) -> Self {
        Self {
            handle: Handle(Shared::new(&options)),
            name: options.name,
            confined: Confined {
                epoch: Epoch::UNKNOWN,
                periodics: Periodics::default(),
                commits: Commits::new(),
            },
            panic_policy: options.panic_policy,
            on_halt: options.on_halt,
            real_time: options.mock.is_none(),
            stopped: None,
            armed: false,
            now: None,
        }
    }

    pub(super) fn shared(&self) -> &Shared<E> {
        &self.handle.0
    }

    /// Forgets what time it was: somebody else has had the thread.
    pub(super) const fn look_at_the_clock(&mut self) {
        self.now = None;
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Next<E> {
        if let Some(why) = self.stopped {
            return Next::Did(Turn::Stopped(why));
        }
        let known = self.now.take();
        let shared = &self.handle.0;
        let now = known.unwrap_or_else(|| shared.clock.now());
        if let Some(queued) = shared.queue.take_plain() {
            return self.begin(queued, None, now);
        }
        self.next_in_full(now, known.is_some())
    }

    #[inline(never)]
    fn next_in_full(&mut self, now: Tick, is_of_the_last_event: bool) -> Next<E> {
        let shared = &self.handle.0;
        match shared.queue.take(now, self.armed) {
            Taken::Event(Selected::Run(queued)) => self.begin(queued, None, now),
            Taken::Event(Selected::RunKept(ready)) => self.begin_kept(ready, now, is_of_the_last_event),
            Taken::Event(Selected::TimedOut(queued)) => self.pass_over(queued, NotRun::TimedOut),
            Taken::Idle { .. } if is_of_the_last_event => self.next(),
            Taken::Idle { next_wakeup } => {
                shared.metrics.idle.begins(now);
                Next::Did(Turn::Idle { next_wakeup })
            }
            Taken::Held => Next::Did(Turn::Held),
            Taken::End(why) => Next::End(why),
        }
    }

    fn begin_kept(&mut self, ready: Ready<E>, now: Tick, is_of_the_last_event: bool) -> Next<E> {
        let shared = &self.handle.0;
        let Ready { queued, deadline, epoch, chain } = ready;
        if let Some(deadline) = deadline
            && is_of_the_last_event
            && deadline <= shared.clock.now()
        {
            return self.pass_over(queued, NotRun::TimedOut);
        }
        if epoch.is_some_and(|epoch| epoch != self.confined.epoch) {
            shared.metrics.stale.increment();
            return self.pass_over(queued, NotRun::Preempted);
        }
        self.begin(queued, chain, now)
    }

    #[inline(always)]
    fn begin(&mut self, queued: Queued<E>, chain: Option<u64>, now: Tick) -> Next<E> {
        let shared = &self.handle.0;
        let Queued { event, ticket, waiting_since } = queued;
        let described = catch_unwind(AssertUnwindSafe(|| (event.state(), event.name())));
        let (state, name) = described.unwrap_or((E::State::IDLE, "unnamed"));
        shared.metrics.busy_from(now);
        shared.set_state(state);
        if waiting_since == UNMEASURED {
            shared.metrics.starts_unmeasured();
        } else {
            shared.metrics.starts(state.value(), nanos_between(waiting_since, now));
        }
        if let Some(ticket) = &ticket {
            ticket.started();
        }
        if let Some(chain) = chain {
            self.rearm(chain, now);
        }
        Next::Run(event, Begun { ticket, state: state.value(), name, at: now, chain })
    }

    /// Does what follows from a handler's end. If it `has_followed`, the handler has succeeded and `after_each` has been
    /// called, so that only this can have panicked.
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        mut begun: Begun,
        ended: Ended,
        has_followed: bool,
        hooks: &mut impl Hooks,
    ) -> Turn {
        let ticket = begun.ticket.take();
        let Begun { state, name, at, chain, .. } = begun;
        let fault = match ended {
            Ok(Ok(())) => None,
            Err(_) if has_followed => {
                self.shared().metrics.hook_panics.increment();
                None
            }
            Ok(Err(fault)) => Some(fault),
            Err(payload) => Some(Fault::panicked(&*payload)),
        };
        let outcome = if fault.is_some() { Outcome::Failed } else { Outcome::Done };
        let died = fault.is_some_and(|fault| self.deal_with(&fault, name, chain, hooks));
        if !has_followed {
            self.guard(|| hooks.after_each());
        }

        let shared = &self.handle.0;
        let now = shared.clock.now();
        let took = nanos_between(at, now);
        shared.metrics.handled(state, name, took, now);
        shared.set_state(E::State::IDLE);
        if outcome == Outcome::Failed {
            shared.metrics.failed.increment();
        } else {
            shared.metrics.done.increment();
        }
        shared.queue.landed();
        if let Some(ticket) = ticket {
            ticket.finished(outcome);
        }
        if died {
            shared.reject_and_release(shared.queue.die());
        }
        self.now = Some(now);
        Turn::Ran
    }

    pub(super) fn end(&mut self, why: StopReason, hooks: &mut impl Hooks) -> Turn {
        self.guard(|| hooks.on_stop(why));
        // Nobody is left to commit: who waits for that hears so.
        self.confined.commits.fail_all(|_, uncommitted| drop(uncommitted));
        self.stopped = Some(why);
        self.shared().ended.raise(ENDED);
        Turn::Stopped(why)
    }

    #[cold]
    fn pass_over(&self, queued: Queued<E>, why: NotRun) -> Next<E> {
        let shared = &self.handle.0;
        shared.reject(queued, why);
        shared.queue.landed();
        Next::Did(Turn::Rejected)
    }

    /// Does what follows from a fault. Returns whether the loop ends of it.
    #[cold]
    fn deal_with(
        &mut self,
        fault: &Fault,
        event: &'static str,
        chain: Option<u64>,
        hooks: &mut impl Hooks,
    ) -> bool {
        if let Some(chain) = chain {
            self.back_off(chain);
        }
        tracing::error!(event_loop = %self.name, event, %fault, "event failed");
        let mut least = FaultAction::Continue;
        if fault.is_panic() {
            self.shared().metrics.panicked.increment();
            least = self.panic_policy;
        }
        let asked = self.guard(|| hooks.on_fault(fault)).unwrap_or(self.panic_policy);
        match asked.max(least) {
            FaultAction::Continue => false,
            FaultAction::Failover => {
                self.guard(|| hooks.on_failover(fault));
                false
            }
            FaultAction::Stop => true,
            FaultAction::Halt => {
                if let Some(hook) = &self.on_halt {
                    // The process ends either way.
                    drop(catch_unwind(AssertUnwindSafe(|| hook(fault))));
                }
                std::process::abort()
            }
        }
    }

    /// Calls a hook of the processor. A panic in it is counted and ends there.
    fn guard<T>(&self, hook: impl FnOnce() -> T) -> Option<T> {
        let called = catch_unwind(AssertUnwindSafe(hook));
        called.inspect_err(|_| self.shared().metrics.hook_panics.increment()).ok()
    }

    /// A tick has started: puts the next one, before its handler can fail.
    fn rearm(&mut self, chain: u64, now: Tick) {
        let next = catch_unwind(AssertUnwindSafe(|| self.confined.periodics.next(chain, now)));
        match next {
            Ok(Some((tag, at, event))) => {
                // Refused only when the loop is ending; the event hears of it.
                self.handle.put_tick(tag, at, event, chain);
            }
            Ok(None) => {}
            Err(_) => self.shared().metrics.hook_panics.increment(),
        }
    }

    /// A tick has failed: the next one comes later.
    fn back_off(&mut self, chain: u64) {
        let now = self.shared().clock.now();
        if let Some((tag, at)) = self.confined.periodics.after_failure(chain, now) {
            self.handle.0.queue.postpone(&tag, at, chain);
        }
    }
}

/// Zero if `to` is before `from`. Not a `Duration`, which costs a division.
const fn nanos_between(from: Tick, to: Tick) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}

/// Stands in [`Queued::waiting_since`] for "does not wait its turn".
pub(crate) const UNMEASURED: Tick = Tick::MAX;

impl<E: Event> Drop for Core<E> {
    fn drop(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let shared = self.shared();
        let rejected =
            if std::thread::panicking() { shared.queue.die() } else { shared.queue.close().rejected };
        shared.reject_and_release(rejected);
        shared.ended.raise(ENDED);
    }
}
