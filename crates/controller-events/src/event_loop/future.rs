//! Driving a loop as a future, on any runtime or in a simulation.

use super::EventLoop;
use super::core::Turn;
use crate::processor::Processor;
use runtime_core::Tick;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// After this many turns the runtime's other tasks get theirs.
const TURNS_PER_POLL: usize = 64;

/// A wait until a moment.
pub(super) struct Sleep<F> {
    until: Tick,
    sleeping: Pin<Box<F>>,
}

impl<P: Processor> EventLoop<P> {
    /// Runs the loop until it has ended, and returns the processor. `sleep_until` gives a future that is ready at a
    /// moment of the loop's clock; being ready too early does no harm.
    ///
    /// Handlers run on whatever thread polls, one poll taking at most 64 turns. On a runtime with one thread and a paused
    /// clock every run is the same. Dropping the future drops the loop.
    ///
    /// ```no_run
    /// # async fn example<P: controller_events::Processor>(event_loop: controller_events::EventLoop<P>) {
    /// use runtime_core::time::TokioClock;
    /// let clock = TokioClock::start(); // the one that the loop was made with
    /// let processor = event_loop
    ///     .run(move |at| {
    ///         let clock = clock.clone();
    ///         async move { clock.sleep_until(at).await }
    ///     })
    ///     .await;
    /// # }
    /// ```
    pub async fn run<S, F>(mut self, mut sleep_until: S) -> P
    where
        S: FnMut(Tick) -> F,
        F: Future<Output = ()>,
    {
        let mut sleep = None;
        poll_fn(|cx| self.poll_turns(cx, &mut sleep, &mut sleep_until)).await;
        self.into_processor()
    }

    fn poll_turns<F: Future<Output = ()>>(
        &mut self,
        cx: &mut Context<'_>,
        sleep: &mut Option<Sleep<F>>,
        sleep_until: &mut impl FnMut(Tick) -> F,
    ) -> Poll<()> {
        let _inside = self.enter();
        self.core.look_at_the_clock();
        self.core.armed = false;
        for _ in 0..TURNS_PER_POLL {
            let turn = self.turn();
            let wake = &self.core.handle.0.wake;
            let next_wakeup = match turn {
                Turn::Stopped(_) => return Poll::Ready(()),
                Turn::Ran | Turn::Rejected => continue,
                Turn::Idle { next_wakeup } => next_wakeup,
                Turn::Held => None,
            };
            if !self.core.armed {
                wake.arm(Some(cx.waker()));
                self.core.armed = true;
                continue;
            }
            if poll_sleep(next_wakeup, cx, sleep, sleep_until).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Ready when the moment has come; a moment other than the last one is a new wait.
pub(super) fn poll_sleep<F: Future<Output = ()>>(
    until: Option<Tick>,
    cx: &mut Context<'_>,
    sleep: &mut Option<Sleep<F>>,
    sleep_until: &mut impl FnMut(Tick) -> F,
) -> Poll<()> {
    let Some(until) = until else {
        *sleep = None;
        return Poll::Pending;
    };
    let mut current = match sleep.take() {
        Some(current) if current.until == until => current,
        _ => Sleep { until, sleeping: Box::pin(sleep_until(until)) },
    };
    let polled = current.sleeping.as_mut().poll(cx);
    if polled.is_pending() {
        *sleep = Some(current);
    }
    polled
}
