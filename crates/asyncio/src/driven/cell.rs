//! The room that a call is polled in.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::waiting::Waiting;
use crate::entry::EntryId;
use crate::panics::text_of;

/// Which attempt a call is.
pub(super) type Attempt = (EntryId, u32);

/// Room for one call after the other: what costs an allocation is made once.
pub(super) struct Cell<Fut> {
    /// Where it is put while its call waits.
    pub(super) place: u32,
    /// The attempt that was begun in it last.
    pub(super) attempt: Attempt,
    waker: Waker,
    call: Pin<Box<Option<Fut>>>,
}

/// Wakes whatever call is in a cell: a waker that a former call has left somewhere costs the present one a poll.
struct WakeCell<Fut> {
    waiting: Arc<Waiting<Fut>>,
    place: u32,
}

impl<Fut: Send + 'static> Wake for WakeCell<Fut> {
    fn wake(self: Arc<Self>) {
        self.waiting.wake(self.place);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waiting.wake(self.place);
    }
}

impl<Fut: Future + Send + 'static> Cell<Fut> {
    pub(super) fn new(waiting: &Arc<Waiting<Fut>>, attempt: Attempt) -> Self {
        let place = waiting.another_place();
        let waker = Waker::from(Arc::new(WakeCell { waiting: Arc::clone(waiting), place }));
        Self { place, attempt, waker, call: Box::pin(None) }
    }

    /// Makes a call and polls it.
    pub(super) fn begin(&mut self, attempt: Attempt, make: impl FnOnce() -> Fut) -> Poll<Ended<Fut>> {
        self.attempt = attempt;
        self.poll_after(|call| call.set(Some(make())))
    }

    /// Polls the call that is in it. It is empty when the call has ended.
    pub(super) fn poll(&mut self) -> Poll<Ended<Fut>> {
        self.poll_after(|_| ())
    }

    #[inline]
    fn poll_after(&mut self, first: impl FnOnce(&mut Pin<Box<Option<Fut>>>)) -> Poll<Ended<Fut>> {
        let Self { waker, call, .. } = self;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            first(call);
            // Nobody polls an empty cell.
            let polled = call
                .as_mut()
                .as_pin_mut()
                .map_or(Poll::Pending, |call| call.poll(&mut Context::from_waker(waker)));
            if polled.is_ready() {
                call.set(None);
            }
            polled
        }));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => {
                self.clear();
                Poll::Ready(Err(text_of(&*panic)))
            }
        }
    }
}

/// What a call has come to, or what its panic said.
pub(super) type Ended<Fut> = Result<<Fut as Future>::Output, String>;

impl<Fut> Cell<Fut> {
    /// Drops the call that is in it. What a call does that panics when it is dropped is nobody else's business.
    pub(super) fn clear(&mut self) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.call.set(None)));
    }
}
