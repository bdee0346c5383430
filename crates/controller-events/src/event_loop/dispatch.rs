//! One turn of a loop: take what comes next, run it, and deal with what it does.
//!
//! Kafka's order around a handler is kept: the state changes, then the time in the queue is recorded, then the
//! handler runs and its time is recorded whether it succeeds or not, then the loop is idle again, also between two
//! events of a backlog.

use super::EventLoop;
use crate::cx::Cx;
use crate::event::{Event, EventState, NotRun};
use crate::fifo::Queued;
use crate::inside::{self, Place};
use crate::processor::{Fault, FaultAction, Processor, StopReason};
use crate::queue::Taken;
use crate::shared::ENDED;
use crate::store::Selected;
use crate::ticket::Outcome;
use runtime_core::{Clock, Tick};
use std::panic::{AssertUnwindSafe, catch_unwind};

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

impl<P: Processor> EventLoop<P> {
    pub(super) fn turn(&mut self) -> Turn {
        if let Some(why) = self.core.stopped {
            return Turn::Stopped(why);
        }
        let shared = &self.core.handle.0;
        let _inside = inside::enter(shared.id, Place::Processor);
        let now = shared.clock.now();
        match shared.queue.take(now) {
            Taken::Event(Selected::Run(queued)) => self.handle_event(queued, now),
            Taken::Event(Selected::TimedOut(queued)) => self.pass_over(queued, NotRun::TimedOut),
            Taken::Idle { next_wakeup } => Turn::Idle { next_wakeup },
            Taken::Held => Turn::Held,
            Taken::End(why) => self.end(why),
        }
    }

    fn pass_over(&self, queued: Queued<P::Event>, why: NotRun) -> Turn {
        let shared = &self.core.handle.0;
        shared.reject(queued, why);
        shared.queue.landed();
        Turn::Rejected
    }

    fn handle_event(&mut self, queued: Queued<P::Event>, now: Tick) -> Turn {
        let Self { processor, core } = self;
        let shared = &core.handle.0;
        if queued.epoch.is_some_and(|epoch| epoch != core.epoch) {
            shared.metrics.stale.increment();
            return self.pass_over(queued, NotRun::Preempted);
        }
        let Queued { event, ticket, waiting_since, .. } = queued;
        let described = catch_unwind(AssertUnwindSafe(|| (event.state(), event.name())));
        let (state, name) = described.unwrap_or((<P::Event as Event>::State::IDLE, "unnamed"));
        shared.set_state(state);
        shared.metrics.waited(now.since(waiting_since));
        if let Some(ticket) = &ticket {
            ticket.started();
        }

        let mut cx = Cx { handle: &core.handle, now, epoch: &mut core.epoch };
        let ran = catch_unwind(AssertUnwindSafe(|| processor.process(event, &mut cx)));
        let took = shared.clock.now().since(now);
        shared.metrics.processed(state.value(), took);
        if took >= core.slow_event {
            shared.metrics.slow.increment();
            tracing::warn!(event_loop = %core.name, event = name, ?took, "slow event");
        }

        let fault = match ran {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            Err(payload) => Some(Fault::panicked(&*payload)),
        };
        let outcome = if fault.is_some() { Outcome::Failed } else { Outcome::Done };
        let died = fault.is_some_and(|fault| self.deal_with(&fault, name));
        self.guard(Processor::after_each);

        let shared = &self.core.handle.0;
        shared.set_state(<P::Event as Event>::State::IDLE);
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
        Turn::Ran
    }

    /// Does what follows from a fault. Returns whether the loop ends of it.
    fn deal_with(&mut self, fault: &Fault, event: &'static str) -> bool {
        tracing::error!(event_loop = %self.core.name, event, %fault, "event failed");
        let mut least = FaultAction::Continue;
        if fault.is_panic() {
            self.core.handle.0.metrics.panicked.increment();
            least = self.core.panic_policy;
        }
        let asked = self.guard(|processor| processor.on_fault(fault)).unwrap_or(self.core.panic_policy);
        match asked.max(least) {
            FaultAction::Continue => false,
            FaultAction::Failover => {
                self.guard(|processor| processor.on_failover(fault));
                false
            }
            FaultAction::Stop => true,
            FaultAction::Halt => {
                if let Some(hook) = &self.core.on_halt {
                    // The process ends either way.
                    drop(catch_unwind(AssertUnwindSafe(|| hook(fault))));
                }
                std::process::abort()
            }
        }
    }

    fn end(&mut self, why: StopReason) -> Turn {
        self.guard(|processor| processor.on_stop(why));
        self.core.stopped = Some(why);
        self.core.handle.0.ended.raise(ENDED);
        Turn::Stopped(why)
    }

    /// Calls a hook of the processor. A panic in it is counted and ends there.
    fn guard<T>(&mut self, hook: impl FnOnce(&mut P) -> T) -> Option<T> {
        let called = catch_unwind(AssertUnwindSafe(|| hook(&mut self.processor)));
        called.inspect_err(|_| self.core.handle.0.metrics.hook_panics.increment()).ok()
    }
}
