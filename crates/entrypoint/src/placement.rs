//! Where a role's event loop runs: on a thread of its own, or as a task of the runtime.
//!
//! In a process each loop has a thread, so that a busy runtime never delays what a role decides. In a simulation all
//! loops are tasks of one runtime with one thread and a paused clock, so that every run is the same.

use std::io;

use controller_events::{EventLoop, Handle, LoopThread, Processor};
use runtime_core::time::TokioClock;
use tokio::runtime;

/// How many events may wait for a role before it refuses requests; signs of life and what its own work reports are
/// always taken. More than the busiest cluster's requests of a second, and worked off in a fraction of one.
pub const MOST_REQUESTS: usize = 10_000;

/// Where the loops of a process run, and the work that may block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Each loop on a thread of its own; blocking work on threads for it.
    Threads,
    /// Everything as tasks of the runtime: for simulations.
    Tasks,
}

/// A loop that runs. Dropping it closes the loop.
pub struct Running<P: Processor> {
    handle: Handle<P::Event>,
    thread: Option<LoopThread<P>>,
}

impl<P: Processor> Running<P> {
    /// Waits until the loop has ended.
    pub async fn ended(&self) {
        self.handle.ended().await;
    }
}

impl<P: Processor> Drop for Running<P> {
    fn drop(&mut self) {
        // A thread is closed and joined by its own drop; a task has nobody else to end it.
        if self.thread.is_none() {
            self.handle.close();
        }
    }
}

impl Placement {
    /// Runs a loop.
    ///
    /// # Errors
    /// The system gives no thread, or the loop was closed before.
    pub fn run<P: Processor>(
        self,
        event_loop: EventLoop<P>,
        runtime: &runtime::Handle,
        clock: &TokioClock,
    ) -> io::Result<Running<P>> {
        let handle = event_loop.handle();
        let thread = match self {
            Self::Threads => Some(event_loop.start().map_err(io::Error::other)?),
            Self::Tasks => {
                let clock = clock.clone();
                runtime.spawn(event_loop.run(move |at| {
                    let clock = clock.clone();
                    async move { clock.sleep_until(at).await }
                }));
                None
            }
        };
        Ok(Running { handle, thread })
    }

    /// Does work that may wait for a disk, apart from the loops; in a simulation, as a task among the others.
    pub fn block(self, runtime: &runtime::Handle, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Threads => drop(runtime.spawn_blocking(work)),
            Self::Tasks => drop(runtime.spawn(async move { work() })),
        }
    }
}
