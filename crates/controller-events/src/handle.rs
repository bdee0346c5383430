//! What the rest of a program holds of a loop.

use crate::event::{Event, NotRun};
use crate::fifo::Queued;
use crate::inside;
use crate::put::{ClearScope, Cleared, Lane, PutError, PutOptions, When};
use crate::shared::{ENDED, Shared};
use crate::stats::Stats;
use crate::tag::Tag;
use crate::ticket::{Ticket, TicketCell};
use runtime_core::metrics::{Observe, Visit};
use runtime_core::{Clock, Epoch, Tick};
use std::future::poll_fn;
use std::sync::Arc;

/// Reaches a loop from any thread, its own handlers and callbacks included. Cheap to clone. Dropping every handle does
/// not end the loop.
///
/// No method blocks, except [`close`](Self::close) on a loop with a thread of its own.
pub struct Handle<E: Event>(pub(crate) Arc<Shared<E>>);

/// What [`Handle::close`] has achieved when it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseOutcome {
    /// The loop has ended.
    Ended,
    /// The loop ends as soon as whoever drives it lets it: the close came from inside the loop, or the loop has no thread
    /// of its own (or has not been started).
    Begun,
}

impl<E: Event> Handle<E> {
    /// Puts an event at the end of the line.
    ///
    /// # Errors
    /// The event comes back if the queue is full or the loop is ending or has ended. Nothing has changed then.
    pub fn put(&self, event: E) -> Result<Ticket, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell), None);
        self.put_plain(queued, Lane::Normal).map(|()| ticket)
    }

    /// As [`put`](Self::put), without a ticket: for events of which nobody asks what became of them.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn post(&self, event: E) -> Result<(), PutError<E>> {
        self.put_plain(self.queued(event, None, None), Lane::Normal)
    }

    /// Puts an event with a deadline, a tag, a lane or an epoch at the end of the line. The event that waited under the
    /// same tag, in line or scheduled, is told `NotRun(Replaced)` on this thread.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with(&self, event: E, options: PutOptions) -> Result<Ticket, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell), options.epoch);
        if options.deadline.is_none() && options.tag.is_none() {
            return self.put_plain(queued, options.lane).map(|()| ticket);
        }
        let options = PutOptions { lane: self.lane(options.lane), ..options };
        let replaced = self.counted(self.0.queue.put_indexed(queued, options))?;
        self.0.wake.call();
        self.replaced(replaced);
        Ok(ticket)
    }

    /// Puts an event at the head of the line: of two, the later one runs first. Due scheduled events still go before it.
    /// Not bound by the capacity.
    ///
    /// # Errors
    /// The event comes back if the loop is ending or has ended.
    pub fn prepend(&self, event: E) -> Result<Ticket, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell), None);
        self.counted(self.0.queue.prepend(queued))?;
        self.0.wake.call();
        Ok(ticket)
    }

    /// The barrier (Kafka: `clearAndPut`). Takes out everything that waits and puts `event`, in one step: any other put
    /// is either before it, and has started or is told `NotRun(Preempted)`, or after it, and runs behind `event`. The
    /// cleared events are told in order, on this thread, and have all been told before the loop starts anything else.
    /// The event that is just being handled is not touched. Not bound by the capacity.
    ///
    /// # Errors
    /// The event comes back, and nothing is cleared, if the loop is ending or has ended.
    pub fn clear_and_put(&self, event: E, scope: ClearScope) -> Result<Cleared, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell), None);
        let cleared = self.counted(self.0.queue.begin_clear(queued, scope))?;
        let count = cleared.len();
        self.0.reject_and_release(cleared);
        Ok(Cleared { ticket, count })
    }

    /// Schedules an event for a moment. The event that waited under the same tag is told `NotRun(Replaced)` on this thread.
    ///
    /// # Errors
    /// The event comes back if too many are scheduled or the loop is ending or has ended.
    ///
    /// # Panics
    /// If the function of [`When::With`] does; nothing has changed then.
    pub fn schedule(&self, tag: Option<Tag>, when: When, event: E) -> Result<Ticket, PutError<E>> {
        let when = match when {
            When::With(moment) => {
                When::At(moment(tag.as_ref().and_then(|tag| self.0.queue.deadline_of(tag))))
            }
            when => when,
        };
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell), None);
        let exempt = inside::is_processing(self.0.id);
        let replaced = self.counted(self.0.queue.schedule(queued, &when, tag, exempt))?;
        self.0.wake.call();
        self.replaced(replaced);
        Ok(ticket)
    }

    /// Takes out the event that waits under a tag, in line or scheduled, and tells it `NotRun(Cancelled)` on this
    /// thread. Returns whether there was one: an event that has started is no longer found.
    pub fn cancel(&self, tag: &Tag) -> bool {
        let Some(cancelled) = self.0.queue.cancel(tag) else { return false };
        self.0.reject(cancelled, NotRun::Cancelled);
        true
    }

    /// Ends the loop after what waits: nothing more is accepted, the events in line and those already due still run, the
    /// rest is told `NotRun(ShuttingDown)` on this thread. A second call changes nothing.
    pub fn begin_drain(&self) {
        let rejected = self.0.queue.begin_drain(self.0.clock.now());
        self.0.reject_and_release(rejected);
    }

    /// Ends the loop: nothing more is accepted; on this thread every event in line is told `NotRun(Preempted)` and every
    /// scheduled one `NotRun(ShuttingDown)`; the event that is just being handled is finished. Then waits for the end of a
    /// loop that has a thread of its own, except from inside it. Any number of calls is fine. A task, which must not
    /// block, calls [`begin_close`](Self::begin_close) and awaits [`ended`](Self::ended).
    pub fn close(&self) -> CloseOutcome {
        let driven_by_thread = self.reject_all();
        if !self.has_ended() && (!driven_by_thread || inside::is_inside(self.0.id)) {
            return CloseOutcome::Begun;
        }
        self.0.ended.wait(ENDED);
        CloseOutcome::Ended
    }

    /// As [`close`](Self::close), without waiting for the end.
    pub fn begin_close(&self) {
        self.reject_all();
    }

    /// Waits until the loop has ended and its processor has been told, whatever the reason.
    pub async fn ended(&self) {
        poll_fn(|cx| self.0.ended.poll(ENDED, cx)).await;
    }

    /// Whether the loop has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.ended.level() >= ENDED
    }

    /// What the loop is doing.
    #[must_use]
    pub fn state(&self) -> E::State {
        self.0.state()
    }

    /// How many events wait in line, without the one being handled and without scheduled ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.queue.depth()
    }

    /// Whether nothing waits in line; see [`is_idle`](Self::is_idle) for whether all is done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is in line, nothing in flight (the hook after the event included) and nothing scheduled is due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let depths = self.0.queue.depths();
        let due = depths.next_timer.is_some_and(|at| at <= self.0.clock.now());
        depths.queued == 0 && !depths.in_flight && !due
    }

    /// When the next scheduled event is due, if nothing is in line and nothing in flight: how far a test may advance.
    #[must_use]
    pub fn next_timer_if_idle(&self) -> Option<Tick> {
        let depths = self.0.queue.depths();
        depths.next_timer.filter(|_| depths.queued == 0 && !depths.in_flight)
    }

    /// The figures of the loop.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// The loop's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// Closes the queue and tells everything in it. Returns whether a thread of its own ends the loop.
    fn reject_all(&self) -> bool {
        let closing = self.0.queue.close();
        self.0.reject_and_release(closing.rejected);
        closing.driven_by_thread
    }

    fn queued(&self, event: E, ticket: Option<Arc<TicketCell>>, epoch: Option<Epoch>) -> Queued<E> {
        Queued { event, ticket, waiting_since: self.0.clock.now(), epoch }
    }

    fn put_plain(&self, queued: Queued<E>, lane: Lane) -> Result<(), PutError<E>> {
        self.counted(self.0.queue.put(queued, self.lane(lane)))?;
        self.0.wake.call();
        Ok(())
    }

    /// A handler of the loop cannot be asked to try later.
    fn lane(&self, lane: Lane) -> Lane {
        if inside::is_processing(self.0.id) { Lane::Control } else { lane }
    }

    fn counted<T>(&self, put: Result<T, PutError<E>>) -> Result<T, PutError<E>> {
        put.inspect_err(|error| self.0.metrics.refused(error))
    }

    fn replaced(&self, replaced: Option<Queued<E>>) {
        if let Some(replaced) = replaced {
            self.0.reject(replaced, NotRun::Replaced);
        }
    }
}

impl<E: Event> Clone for Handle<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: Event> Observe for Handle<E> {
    fn observe(&self, visit: &mut dyn Visit) {
        self.0.metrics.observe(&self.0.stats(), self.0.state_value(), visit);
    }
}

impl<E: Event> std::fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("id", &self.0.id).field("len", &self.len()).finish_non_exhaustive()
    }
}
