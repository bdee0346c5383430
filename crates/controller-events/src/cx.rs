//! What a handler can reach besides its own state.

use crate::commit_queue::OutOfOrder;
use crate::commits;
use crate::event::{Event, NotRun};
use crate::event_loop::Confined;
use crate::handle::Handle;
use crate::periodic::RETRY;
use crate::put::{PutError, PutOptions};
use crate::reply::Reply;
use crate::tag::Tag;
use crate::ticket::Ticket;
use runtime_core::{Clock, Epoch, Tick};
use std::future::Future;
use std::time::Duration;

/// The loop as seen from a handler.
pub struct Cx<'a, E: Event> {
    pub(crate) handle: &'a Handle<E>,
    pub(crate) now: Tick,
    pub(crate) confined: &'a mut Confined<E>,
}

impl<E: Event> Cx<'_, E> {
    /// The moment at which this event started. One event sees one time, so that what it decides does not depend on how
    /// long deciding takes.
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// The loop's handle, to put, schedule and cancel with and to give to what will come back with an event. What a
    /// handler puts is not bound by the capacity.
    #[must_use]
    pub const fn handle(&self) -> &Handle<E> {
        self.handle
    }

    /// [`Handle::put`].
    ///
    /// # Errors
    /// The event comes back if the loop is ending: it is not put behind what will still run.
    pub fn put(&self, event: E) -> Result<Ticket, PutError<E>> {
        self.handle.put(event)
    }

    /// [`Handle::put_with`].
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with(&self, event: E, options: PutOptions) -> Result<Ticket, PutError<E>> {
        self.handle.put_with(event, options)
    }

    /// The loop's epoch; [`Epoch::UNKNOWN`] until it is set.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.confined.epoch
    }

    /// From the next event on, events put for another epoch are not run. Another epoch than the present one also ends
    /// every [`periodic`](Self::periodic) chain and abandons what waits for a [commit](Self::complete_at): that was asked for
    /// in the old one.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        if epoch == self.confined.epoch {
            return;
        }
        self.confined.epoch = epoch;
        self.abandon_uncommitted();
        for (chain, tag) in self.confined.periodics.end_all() {
            if let Some(tick) = self.handle.0.queue.cancel_tick(&tag, chain) {
                self.handle.0.reject(tick, NotRun::Cancelled);
            }
        }
    }

    /// Puts an event every `period`, the first one after one period, until its tag is cancelled or taken by another
    /// event, the epoch changes, or the loop ends. The next tick is put when one starts, so that a failing handler does
    /// not end the chain; after a failure it comes a minute later. Moments are those of the schedule; missed ones are left
    /// out, and at most one tick waits.
    ///
    /// # Errors
    /// The first event comes back if the loop is ending.
    pub fn periodic(
        &mut self,
        tag: impl Into<Tag>,
        period: Duration,
        make_event: impl FnMut() -> E + Send + 'static,
    ) -> Result<(), PutError<E>> {
        self.periodic_with_retry(tag, period, RETRY, make_event)
    }

    /// As [`periodic`](Self::periodic): after a failed tick the next one comes `retry` later, if that is later than its
    /// turn.
    ///
    /// # Errors
    /// As [`periodic`](Self::periodic).
    pub fn periodic_with_retry(
        &mut self,
        tag: impl Into<Tag>,
        period: Duration,
        retry: Duration,
        mut make_event: impl FnMut() -> E + Send + 'static,
    ) -> Result<(), PutError<E>> {
        let (tag, due) = (tag.into(), self.now + period);
        let first = make_event();
        let chain = self.confined.periodics.begin(tag.clone(), due, period, retry, Box::new(make_event));
        self.handle.first_tick(tag, due, first, chain)
    }

    /// Runs `work` elsewhere, by [`LoopOptions::spawner`](crate::LoopOptions::spawner), and puts what it gives as an event:
    /// for what a handler would otherwise wait for. The ticket is that of the event; if the work is dropped unfinished
    /// (it panicked, or its runtime ended), the ticket tells `NotRun(Cancelled)`, and if the loop has ended before,
    /// `NotRun(ShuttingDown)`.
    pub fn spawn_then<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        into_event: impl FnOnce(T) -> E + Send + 'static,
    ) -> Ticket {
        self.handle.spawn_then(work, into_event)
    }

    /// Notes that what an event began that started at `started` is committed now (Kafka counts this as processing time of
    /// write events; here it is a series of its own).
    pub fn committed(&self, started: Tick) {
        self.handle.0.metrics.committed(self.handle.0.clock.now().since(started));
    }

    /// Answers with `value` when [`commit_up_to`](Self::commit_up_to) reaches `offset`: for a handler that has written at
    /// that offset of a log, so that many writes are under way though there is one thread.
    ///
    /// # Errors
    /// Reply and value come back if something waits for a higher offset: offsets never fall.
    pub fn complete_at<T: Send + 'static>(
        &mut self,
        offset: u64,
        reply: Reply<T>,
        value: T,
    ) -> Result<(), OutOfOrder<(Reply<T>, T)>> {
        commits::add(&mut self.confined.commits, self.now, offset, reply, value)
    }

    /// As [`complete_at`](Self::complete_at), for a handler that wrote nothing but has seen what is not committed yet:
    /// waits for all that was written before, and answers at once if nothing waits.
    pub fn complete_behind_all<T: Send + 'static>(&mut self, reply: Reply<T>, value: T) {
        commits::add_behind_all(&mut self.confined.commits, self.now, reply, value);
    }

    /// Answers everything that waits for an offset up to this one, by offset and then by age, and records the time since
    /// each was begun. Returns how many were answered.
    pub fn commit_up_to(&mut self, offset: u64) -> usize {
        let metrics = &self.handle.0.metrics;
        let now = self.handle.0.clock.now();
        let told = self.confined.commits.complete_up_to(offset, |_, uncommitted| {
            metrics.committed(now.since(uncommitted.started));
            (uncommitted.answer)();
        });
        (0..told.panics).for_each(|_| metrics.callback_panics.increment());
        told.items
    }

    /// Answers everything that waits for a commit with [`Abandoned`](crate::Abandoned), because there will be none:
    /// leadership is lost. Returns how many.
    pub fn abandon_uncommitted(&mut self) -> usize {
        self.confined.commits.fail_all(|_, uncommitted| drop(uncommitted)).items
    }

    /// Ends the loop after this event: the same as [`Handle::begin_close`].
    pub fn stop(&self) {
        self.handle.begin_close();
    }
}
