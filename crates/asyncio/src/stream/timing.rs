//! The runtime that polls a stream: its clock, its timer, its tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use runtime_core::Tick;
use runtime_core::time::{Clock, TokioClock};
use tokio::runtime::Handle;
use tokio::time::Sleep;

#[derive(Debug)]
pub(super) struct Timing {
    runtime: Handle,
    clock: TokioClock,
    sleep: Pin<Box<Sleep>>,
    sleeps_until: Tick,
}

impl Timing {
    pub(super) fn of_this_runtime() -> Self {
        let clock = TokioClock::start();
        let sleep = Box::pin(tokio::time::sleep_until(clock.instant(Tick::ZERO)));
        Self { runtime: Handle::current(), clock, sleep, sleeps_until: Tick::ZERO }
    }

    pub(super) fn now(&self) -> Tick {
        self.clock.now()
    }

    pub(super) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Ready when `at` has come.
    pub(super) fn poll_until(&mut self, at: Tick, cx: &mut Context<'_>) -> Poll<()> {
        if self.sleeps_until != at {
            self.sleep.as_mut().reset(self.clock.instant(at));
            self.sleeps_until = at;
        }
        self.sleep.as_mut().poll(cx)
    }
}
