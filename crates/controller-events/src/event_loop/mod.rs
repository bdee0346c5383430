//! The loop itself, and three ways to drive it.
//!
//! All three take the same turns. A loop runs on a [thread](EventLoop::start) of its own, as a
//! [future](EventLoop::run) on any runtime, or [by hand](EventLoop::step) in a test.

mod asynchronous;
mod core;
mod dispatch;
mod future;
mod step;
mod thread;

pub(crate) use self::core::{Confined, UNMEASURED};
pub use asynchronous::AsyncEventLoop;
pub use step::Step;
pub use thread::{JoinError, LoopThread, StartError};

use self::core::Core;
use crate::handle::Handle;
use crate::options::LoopOptions;
use crate::processor::Processor;

/// A processor and the events that wait for it. Made by [`new`](Self::new); events can be put at once, but nothing
/// runs until the loop is driven.
///
/// Dropping it unfinished closes it: every waiting event is told, and the processor is dropped without
/// [`on_stop`](Processor::on_stop), as if its process had ended.
pub struct EventLoop<P: Processor> {
    processor: P,
    core: Core<P::Event>,
}

impl<P: Processor> EventLoop<P> {
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

impl<P: Processor> std::fmt::Debug for EventLoop<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLoop")
            .field("name", &self.core.name)
            .field("stopped", &self.core.stopped)
            .finish_non_exhaustive()
    }
}
