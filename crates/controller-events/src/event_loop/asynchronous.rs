//! A loop whose handlers may wait.
//!
//! Each handler is awaited to its end before the next event starts, so that the state is still one event's at a time; what
//! need not hold the others up belongs into [`Cx::spawn_then`](crate::Cx::spawn_then).

use super::core::{Core, Hooks, Next, Turn};
use super::future::{Sleep, poll_sleep};
use crate::cx::Cx;
use crate::handle::Handle;
use crate::inside::{self, Place};
use crate::options::LoopOptions;
use crate::processor::{AsyncProcessor, Fault, FaultAction, StopReason};
use crate::spawn::block_on_with;
use runtime_core::{Clock, Tick};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// After this many turns the runtime's other tasks get theirs.
const TURNS_IN_A_ROW: usize = 64;

/// An asynchronous processor and the events that wait for it: an [`EventLoop`](crate::EventLoop) in all other respects.
///
/// Dropping it, or the future of [`run`](Self::run), closes it: every waiting event is told, and of an event whose handler is
/// under way the ticket tells `Failed`.
pub struct AsyncEventLoop<P: AsyncProcessor> {
    processor: P,
    core: Core<P::Event>,
}

struct Of<'a, P>(&'a mut P);

impl<P: AsyncProcessor> Hooks for Of<'_, P> {
    fn after_each(&mut self) {
        self.0.after_each();
    }

    fn on_fault(&mut self, fault: &Fault) -> FaultAction {
        self.0.on_fault(fault)
    }

    fn on_failover(&mut self, fault: &Fault) {
        self.0.on_failover(fault);
    }

    fn on_stop(&mut self, why: StopReason) {
        self.0.on_stop(why);
    }
}

impl<P: AsyncProcessor> AsyncEventLoop<P> {
    /// A loop around a processor.
    #[must_use]
    pub fn new(processor: P, options: LoopOptions) -> Self {
        Self { processor, core: Core::new(options) }
    }

    /// A handle of the loop.
    #[must_use]
    pub fn handle(&self) -> Handle<P::Event> {
        self.core.handle.clone()
    }

    /// Runs the loop until it has ended, and returns the processor. `sleep_until` is that of
    /// [`EventLoop::run`](crate::EventLoop::run).
    pub async fn run<S, F>(mut self, mut sleep_until: S) -> P
    where
        S: FnMut(Tick) -> F,
        F: Future<Output = ()>,
    {
        let mut sleep = None;
        let mut in_a_row = 0;
        loop {
            match self.turn().await {
                Turn::Stopped(_) => return self.processor,
                Turn::Ran | Turn::Rejected => {
                    self.core.armed = false;
                    in_a_row += 1;
                    if in_a_row == TURNS_IN_A_ROW {
                        in_a_row = 0;
                        give_way().await;
                    }
                }
                Turn::Idle { .. } | Turn::Held if !self.core.armed => {
                    self.arm().await;
                }
                Turn::Idle { next_wakeup } => {
                    in_a_row = 0;
                    self.wait(next_wakeup, &mut sleep, &mut sleep_until).await;
                }
                Turn::Held => self.wait(None, &mut sleep, &mut sleep_until).await,
            }
        }
    }

    /// Runs the loop on this thread until it has ended, and returns the processor: for handlers that need no runtime.
    pub fn run_blocking(self) -> P {
        let until = Rc::new(Cell::new(None));
        let (clock, real_time) = (self.core.handle.clock().clone(), self.core.real_time);
        let sleep_until = {
            let (until, clock) = (Rc::clone(&until), clock.clone());
            move |at: Tick| {
                let (until, clock) = (Rc::clone(&until), clock.clone());
                poll_fn(move |_| {
                    until.set(Some(at));
                    if clock.now() >= at { Poll::Ready(()) } else { Poll::Pending }
                })
            }
        };
        block_on_with(self.run(sleep_until), || {
            // A mocked clock calls when it is advanced.
            until.take().filter(|_| real_time).map(|at: Tick| at.since(clock.now()))
        })
    }

    async fn turn(&mut self) -> Turn {
        let Self { processor, core } = self;
        let id = core.shared().id;
        let inside = inside::enter(id, Place::Processor);
        core.look_at_the_clock();
        match core.next() {
            Next::Run(event, begun) => {
                drop(inside);
                let mut cx = Cx { handle: &core.handle, now: begun.at(), confined: &mut core.confined };
                let ended = {
                    let called = catch_unwind(AssertUnwindSafe(|| processor.process(event, &mut cx)));
                    match called {
                        Ok(handler) => {
                            let mut handler = pin!(handler);
                            poll_fn(|task| {
                                let _inside = inside::enter(id, Place::Processor);
                                match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(task))) {
                                    Ok(polled) => polled.map(Ok),
                                    Err(panic) => Poll::Ready(Err(panic)),
                                }
                            })
                            .await
                        }
                        Err(panic) => Err(panic),
                    }
                };
                let _inside = inside::enter(id, Place::Processor);
                core.finish(begun, ended, false, &mut Of(processor))
            }
            Next::End(why) => core.end(why, &mut Of(processor)),
            Next::Did(turn) => turn,
        }
    }

    async fn arm(&mut self) {
        let wake = &self.core.handle.0.wake;
        poll_fn(|task| {
            wake.arm(Some(task.waker()));
            Poll::Ready(())
        })
        .await;
        self.core.armed = true;
    }

    async fn wait<F: Future<Output = ()>>(
        &mut self,
        until: Option<Tick>,
        sleep: &mut Option<Sleep<F>>,
        sleep_until: &mut impl FnMut(Tick) -> F,
    ) {
        let mut waited = false;
        poll_fn(|task: &mut Context<'_>| {
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            poll_sleep(until, task, sleep, sleep_until)
        })
        .await;
        self.core.armed = false;
    }
}

async fn give_way() {
    let mut given = false;
    poll_fn(|task| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<P: AsyncProcessor> std::fmt::Debug for AsyncEventLoop<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncEventLoop").field("name", &self.core.name).finish_non_exhaustive()
    }
}
