//! The loop itself, and three ways to drive it.
//!
//! All three take the same turns. A loop runs on a [thread](EventLoop::start) of its own, as a
//! [future](EventLoop::run) on any runtime, or [by hand](EventLoop::step) in a test.

mod dispatch;
mod future;
mod step;
mod thread;

pub use step::Step;
pub use thread::{JoinError, LoopThread, StartError};

use crate::handle::Handle;
use crate::options::{HaltHook, LoopOptions};
use crate::processor::{FaultAction, Processor, StopReason};
use crate::shared::{ENDED, Shared};
use runtime_core::Epoch;
use std::borrow::Cow;
use std::time::Duration;

/// A processor and the events that wait for it. Made by [`new`](Self::new); events can be put at once, but nothing
/// runs until the loop is driven.
///
/// Dropping it unfinished closes it: every waiting event is told, and the processor is dropped without
/// [`on_stop`](Processor::on_stop), as if its process had ended.
pub struct EventLoop<P: Processor> {
    processor: P,
    core: Core<P>,
}

/// The loop without its processor.
struct Core<P: Processor> {
    handle: Handle<P::Event>,
    name: Cow<'static, str>,
    epoch: Epoch,
    panic_policy: FaultAction,
    slow_event: Duration,
    on_halt: Option<HaltHook>,
    /// Whether the loop waits in real time; a mocked clock calls instead.
    real_time: bool,
    stopped: Option<StopReason>,
}

impl<P: Processor> EventLoop<P> {
    /// A loop around a processor.
    #[must_use]
    pub fn new(processor: P, options: LoopOptions) -> Self {
        let handle = Handle(Shared::new(&options));
        let core = Core {
            handle,
            name: options.name,
            epoch: Epoch::UNKNOWN,
            panic_policy: options.panic_policy,
            slow_event: options.slow_event,
            on_halt: options.on_halt,
            real_time: options.mock.is_none(),
            stopped: None,
        };
        Self { processor, core }
    }

    /// A handle of the loop.
    #[must_use]
    pub fn handle(&self) -> Handle<P::Event> {
        self.core.handle.clone()
    }

    /// Closes the loop on this thread, as [`Handle::close`] does, calls [`on_stop`](Processor::on_stop) unless the loop
    /// has ended before, and returns the processor.
    pub fn close(mut self) -> P {
        self.core.handle.close();
        self.turn_until_stopped();
        self.into_processor()
    }

    fn into_processor(self) -> P {
        self.processor
    }
}

impl<P: Processor> Drop for Core<P> {
    fn drop(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let shared = &self.handle.0;
        let rejected =
            if std::thread::panicking() { shared.queue.die() } else { shared.queue.close().rejected };
        shared.reject_and_release(rejected);
        shared.ended.raise(ENDED);
    }
}

impl<P: Processor> std::fmt::Debug for EventLoop<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLoop")
            .field("name", &self.core.name)
            .field("stopped", &self.core.stopped)
            .finish_non_exhaustive()
    }
}
