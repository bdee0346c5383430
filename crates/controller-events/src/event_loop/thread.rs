//! Driving a loop on a thread of its own.

use super::EventLoop;
use super::core::Turn;
use crate::handle::Handle;
use crate::inside;
use crate::processor::Processor;
use runtime_core::{Clock, Tick};
use std::io;
use std::thread::JoinHandle;

/// Kafka: the thread's name.
const THREAD_NAME: &str = "controller-event-thread";

/// A loop could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It had been closed before; its events have been told.
    #[error("the event loop was closed before it was started")]
    Closed,
    /// It has been started before, and runs.
    #[error("the event loop was started before")]
    Started,
    /// The operating system gave no thread. The events that waited have been told.
    #[error("no thread for the event loop: {0}")]
    Spawn(#[from] io::Error),
}

/// The processor cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The caller is inside the loop that would have to end.
    #[error("joining here would wait for the caller's own loop")]
    WouldDeadlock,
    /// The loop's thread panicked outside of handlers and hooks, which is a defect of this crate.
    #[error("the event loop's thread died")]
    Died,
}

/// A loop that runs on its own thread. Dropping it closes the loop and waits for it, except from inside the loop.
pub struct LoopThread<P: Processor> {
    handle: Handle<P::Event>,
    thread: Option<JoinHandle<P>>,
}

impl<P: Processor> EventLoop<P> {
    /// Runs the loop on a thread named `controller-event-thread`.
    ///
    /// # Errors
    /// [`StartError`]. A loop that is already started is no longer an `EventLoop`, so it cannot be started twice.
    pub fn start(self) -> Result<LoopThread<P>, StartError> {
        let handle = self.handle();
        if !handle.0.queue.claim_for_thread() {
            return Err(StartError::Closed);
        }
        let mut event_loop = self;
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(move || {
            event_loop.turn_until_stopped();
            event_loop.into_processor()
        })?;
        Ok(LoopThread { handle, thread: Some(thread) })
    }

    /// Takes turns, and waits on this thread when there is nothing to do, until the loop has ended.
    pub(super) fn turn_until_stopped(&mut self) {
        let _inside = self.enter();
        loop {
            match self.turn() {
                Turn::Stopped(_) => return,
                Turn::Ran | Turn::Rejected => self.disarm(),
                Turn::Idle { .. } if !self.core.armed && self.expects_news() => {}
                Turn::Idle { .. } | Turn::Held if !self.core.armed => {
                    self.core.shared().wake.arm(None);
                    self.core.armed = true;
                }
                Turn::Idle { next_wakeup } => self.wait_until(next_wakeup),
                Turn::Held => self.wait_until(None),
            }
        }
    }

    fn expects_news(&self) -> bool {
        let shared = self.core.shared();
        shared.queue.expects_news(&*shared.clock)
    }

    fn disarm(&mut self) {
        if self.core.armed {
            self.core.shared().wake.disarm();
            self.core.armed = false;
        }
    }

    fn wait_until(&mut self, at: Option<Tick>) {
        let shared = self.core.shared();
        let limit = at.filter(|_| self.core.real_time).map(|at| at.since(shared.clock.now()));
        shared.wake.wait(limit);
        self.core.armed = false;
    }
}

impl<P: Processor> LoopThread<P> {
    /// A handle of the loop.
    #[must_use]
    pub fn handle(&self) -> Handle<P::Event> {
        self.handle.clone()
    }

    /// Waits until the loop ends, which somebody else must bring about, and returns the processor.
    ///
    /// # Errors
    /// [`JoinError`]; inside the loop itself nothing is waited for, and the loop goes on.
    pub fn join(mut self) -> Result<P, JoinError> {
        if inside::is_inside(self.handle.0.id) {
            self.thread = None;
            return Err(JoinError::WouldDeadlock);
        }
        let thread = self.thread.take().ok_or(JoinError::Died)?;
        thread.join().map_err(|_| JoinError::Died)
    }

    /// Closes the loop, as [`Handle::close`] does, and returns the processor.
    ///
    /// # Errors
    /// [`JoinError`]; inside the loop itself the close has begun.
    pub fn close(self) -> Result<P, JoinError> {
        self.handle.close();
        self.join()
    }
}

impl<P: Processor> Drop for LoopThread<P> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.handle.close();
        if !inside::is_inside(self.handle.0.id) {
            // Nobody is there to be told of a panic.
            drop(thread.join());
        }
    }
}

impl<P: Processor> std::fmt::Debug for LoopThread<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopThread").field("handle", &self.handle).finish_non_exhaustive()
    }
}
