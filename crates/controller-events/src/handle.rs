//! What the rest of a program holds of a loop.

use crate::event::{Event, NotRun};
use crate::event_loop::UNMEASURED;
use crate::inside;
use crate::put::{ClearScope, Cleared, Lane, PutError, PutOptions, When};
use crate::queue::{Extras, Queued};
use crate::shared::{ENDED, Shared};
use crate::spawn::Promised;
use crate::stats::Stats;
use crate::tag::Tag;
use crate::ticket::{Outcome, Ticket, TicketCell};
use runtime_core::metrics::{Observe, Visit};
use runtime_core::{Clock, Tick};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Reaches a loop from any thread, its own handlers and callbacks included. Cheap to clone. Dropping every handle does
/// not end the loop.
///
/// No method blocks, except [`close`](Self::close) on a loop with a thread of its own.
pub struct Handle<E: Event>(pub(crate) Arc<Shared<E>>);

/// Longer waits are cut: the operating system's timers do not know the end of time.
const A_LONG_TIME: Duration = Duration::from_secs(86_400);

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
        self.put_plain(self.queued(event, Some(cell)), Lane::Normal).map(|()| ticket)
    }

    /// As [`put`](Self::put), without a ticket: for events of which nobody asks what became of them.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn post(&self, event: E) -> Result<(), PutError<E>> {
        self.put_plain(self.queued(event, None), Lane::Normal)
    }

    /// Puts an event with a deadline, a tag, a lane or an epoch at the end of the line. The event that waited under the
    /// same tag, in line or scheduled, is told `NotRun(Replaced)` on this thread.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with(&self, event: E, options: PutOptions) -> Result<Ticket, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = self.queued(event, Some(cell));
        let PutOptions { deadline, tag, lane, epoch } = options;
        if deadline.is_none() && tag.is_none() && epoch.is_none() {
            return self.put_plain(queued, lane).map(|()| ticket);
        }
        let extras = Extras { deadline, tag, epoch };
        let replaced = self.counted(self.0.queue.put_with(queued, extras, self.lane(lane)))?;
        self.0.wake.call();
        self.replaced(replaced);
        Ok(ticket)
    }

    /// As [`put`](Self::put), but waits for room until a moment of the loop's clock. It blocks its thread: a task asks
    /// again later instead.
    ///
    /// # Errors
    /// As [`put`](Self::put), `Overloaded` only at that moment; [`PutError::WouldDeadlock`] at once if there is no room and
    /// the caller is inside the loop.
    pub fn put_wait(&self, event: E, until: Tick) -> Result<Ticket, PutError<E>> {
        let mut event = event;
        loop {
            let seen = self.0.room.seen();
            let (ticket, cell) = Ticket::new(self.0.id);
            let refused = match self.0.queue.put(self.queued(event, Some(cell)), Lane::Normal) {
                Ok(()) => {
                    self.0.wake.call();
                    return Ok(ticket);
                }
                Err(refused) => refused,
            };
            let now = self.0.clock.now();
            let can_wait = !inside::is_inside(self.0.id);
            if !refused.is_overloaded() || can_wait && now >= until {
                return self.counted(Err(refused));
            }
            event = refused.into_event();
            if !can_wait {
                return Err(PutError::WouldDeadlock(event));
            }
            if self.0.queue.want_room(Lane::Normal) {
                // A mocked clock calls when it is advanced.
                let limit = if self.0.real_time { until.since(now) } else { A_LONG_TIME };
                self.0.room.wait(seen, limit.min(A_LONG_TIME));
            }
        }
    }

    /// Puts an event at the head of the line: of two, the later one runs first. Due scheduled events still go before it.
    /// Not bound by the capacity. It does not wait its turn, so it leaves no time in the queue.
    ///
    /// # Errors
    /// The event comes back if the loop is ending or has ended.
    pub fn prepend(&self, event: E) -> Result<Ticket, PutError<E>> {
        let (ticket, cell) = Ticket::new(self.0.id);
        let queued = Queued { waiting_since: UNMEASURED, ..self.queued(event, Some(cell)) };
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
        let queued = self.queued(event, Some(cell));
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
        let (ticket, cell) = Ticket::new(self.0.id);
        self.schedule_with(tag, when, event, Some(cell)).map(|()| ticket)
    }

    /// As [`schedule`](Self::schedule), without a ticket: for events of which nobody asks what became of them.
    ///
    /// # Errors
    /// As [`schedule`](Self::schedule).
    ///
    /// # Panics
    /// As [`schedule`](Self::schedule).
    pub fn post_at(&self, tag: Option<Tag>, when: When, event: E) -> Result<(), PutError<E>> {
        self.schedule_with(tag, when, event, None)
    }

    fn schedule_with(
        &self,
        tag: Option<Tag>,
        when: When,
        event: E,
        cell: Option<Arc<TicketCell>>,
    ) -> Result<(), PutError<E>> {
        let when = match when {
            When::With(moment) => {
                When::At(moment(tag.as_ref().and_then(|tag| self.0.queue.deadline_of(tag))))
            }
            when => when,
        };
        let queued = self.queued(event, cell);
        let exempt = inside::is_processing(self.0.id);
        let scheduled = self.counted(self.0.queue.schedule(queued, &when, tag, None, exempt))?;
        self.scheduled(scheduled);
        Ok(())
    }

    /// Takes out the event that waits under a tag, in line or scheduled, and tells it `NotRun(Cancelled)` on this
    /// thread. Returns whether there was one: an event that has started is no longer found.
    pub fn cancel(&self, tag: &Tag) -> bool {
        let Some(cancelled) = self.0.queue.cancel(tag) else { return false };
        self.0.reject(cancelled, NotRun::Cancelled);
        true
    }

    /// Ends the loop after what waits: nothing more is accepted, the events in line and those already due still run, the
    /// rest is told `NotRun(ShuttingDown)` on this thread. A second call changes nothing. See
    /// [`LoopOptions::reject_deadlined_on_drain`](crate::LoopOptions::reject_deadlined_on_drain).
    pub fn begin_drain(&self) {
        let rejected = self.0.queue.begin_drain(self.0.clock.now(), self.0.reject_deadlined_on_drain);
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
        let due = || self.0.queue.next_timer().is_some_and(|at| at <= self.0.clock.now());
        depths.queued == 0 && !depths.in_flight && (depths.scheduled == 0 || !due())
    }

    /// When the next scheduled event is due, if nothing is in line and nothing in flight: how far a test may advance.
    #[must_use]
    pub fn next_timer_if_idle(&self) -> Option<Tick> {
        let depths = self.0.queue.depths();
        self.0.queue.next_timer().filter(|_| depths.queued == 0 && !depths.in_flight)
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

    /// Runs `work` elsewhere and puts what it gives as an event: see [`Cx::spawn_then`](crate::Cx::spawn_then).
    pub(crate) fn spawn_then<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        into_event: impl FnOnce(T) -> E + Send + 'static,
    ) -> Ticket {
        let (ticket, cell) = Ticket::new(self.0.id);
        let (promised, handle) = (Promised::new(cell), self.clone());
        (self.0.spawner)(Box::pin(async move {
            let event = into_event(work.await);
            handle.keep_promise(event, promised);
        }));
        ticket
    }

    fn keep_promise(&self, event: E, promised: Promised) {
        let cell = promised.into_cell();
        let put = self.put_plain(self.queued(event, Some(Arc::clone(&cell))), Lane::Control);
        let Err(refused) = put else { return };
        let why = match &refused {
            PutError::Dead(_) => NotRun::LoopDied,
            _ => NotRun::ShuttingDown,
        };
        // Nobody is there to take the event back, so it is told.
        if catch_unwind(AssertUnwindSafe(|| refused.into_event().not_run(why))).is_err() {
            self.0.metrics.callback_panics.increment();
        }
        cell.finished(Outcome::NotRun(why));
    }

    /// Puts the first tick of a chain.
    pub(crate) fn first_tick(&self, tag: Tag, at: Tick, event: E, chain: u64) -> Result<(), PutError<E>> {
        let queued = self.queued(event, None);
        let put = self.0.queue.schedule(queued, &When::At(at), Some(tag), Some(chain), true);
        self.scheduled(self.counted(put)?);
        Ok(())
    }

    /// Puts a further tick of a chain. A refused one is told: its loop is ending.
    pub(crate) fn put_tick(&self, tag: Tag, at: Tick, event: E, chain: u64) {
        if let Err(refused) = self.first_tick(tag, at, event, chain)
            && catch_unwind(AssertUnwindSafe(|| refused.into_event().not_run(NotRun::ShuttingDown))).is_err()
        {
            self.0.metrics.callback_panics.increment();
        }
    }

    fn queued(&self, event: E, ticket: Option<Arc<TicketCell>>) -> Queued<E> {
        Queued { event, ticket, waiting_since: self.0.clock.now() }
    }

    fn put_plain(&self, queued: Queued<E>, lane: Lane) -> Result<(), PutError<E>> {
        self.counted(self.0.queue.put(queued, self.lane(lane)))?;
        self.0.wake.call();
        Ok(())
    }

    /// A handler of the loop cannot be asked to try later.
    fn lane(&self, lane: Lane) -> Lane {
        if self.0.is_bounded && inside::is_processing(self.0.id) { Lane::Control } else { lane }
    }

    fn counted<T>(&self, put: Result<T, PutError<E>>) -> Result<T, PutError<E>> {
        put.inspect_err(|error| self.0.metrics.refused(error))
    }

    fn scheduled(&self, (replaced, is_next): (Option<Queued<E>>, bool)) {
        if is_next {
            self.0.wake.call();
        }
        self.replaced(replaced);
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
        self.0.metrics.observe(&self.0.stats(), self.0.state_value(), self.0.clock.now(), visit);
    }
}

impl<E: Event> std::fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("id", &self.0.id).field("len", &self.len()).finish_non_exhaustive()
    }
}
