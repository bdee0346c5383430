//! Work that runs beside a loop and comes back as an event.

use crate::event::NotRun;
use crate::ticket::{Outcome, TicketCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// Work that a spawner is given.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts work and returns at once.
pub type Spawner = Arc<dyn Fn(Work) + Send + Sync>;

/// The ticket of an event that is not there yet. Dropped, it tells `NotRun(Cancelled)`.
pub(crate) struct Promised(Option<Arc<TicketCell>>);

impl Promised {
    pub(crate) const fn new(cell: Arc<TicketCell>) -> Self {
        Self(Some(cell))
    }

    pub(crate) fn into_cell(mut self) -> Arc<TicketCell> {
        // There until it is dropped.
        self.0.take().unwrap_or_default()
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        if let Some(cell) = &self.0 {
            cell.finished(Outcome::NotRun(NotRun::Cancelled));
        }
    }
}

/// Gives work a thread of its own. If there is no thread, the work is dropped, which its ticket tells.
pub(crate) fn on_a_thread(work: Work) {
    let name = "controller-event-work".to_owned();
    if let Err(error) = std::thread::Builder::new().name(name).spawn(move || block_on(work)) {
        tracing::error!(%error, "no thread for the work of a handler");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_with(future, || None)
}

/// As [`block_on`]; `limit` says after each poll how long to wait for a wake-up at most.
pub(crate) fn block_on_with<T>(future: impl Future<Output = T>, limit: impl Fn() -> Option<Duration>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => match limit() {
                Some(limit) => std::thread::park_timeout(limit),
                None => std::thread::park(),
            },
        }
    }
}
