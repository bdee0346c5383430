//! The queue that producers, barriers and the loop share.
//!
//! Two locks: producers push to an *inbox* under one, the loop takes from the [`Store`] under the other and fetches the
//! whole inbox at once when the store has run out, so that neither waits for the other event by event. A barrier takes
//! both, first the store's and then the inbox's, and so reaches what the loop has fetched but not started: between a
//! barrier and a put there are only before and after. No user code runs under either lock.
//!
//! A lock and not a lock-free list: a push under an uncontended lock is ten nanoseconds, the same as without, and the
//! barrier needs puts to be excluded anyway.

mod kept;
mod line;
#[cfg(test)]
#[cfg(feature = "model")]
mod model;
mod moments;
mod store;
mod tag_index;

use crate::event::NotRun;
use crate::processor::StopReason;
use crate::put::{ClearScope, Lane, PutError, When};
use crate::room::Room;
use crate::sync::{Apart, AtomicBool, AtomicUsize, Mutex, MutexGuard};
use crate::tag::Tag;
use crate::ticket::TicketCell;
use kept::Key;
use line::Line;
use runtime_core::Tick;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use store::Store;
pub(crate) use store::{Extras, Ready, Selected};

/// An accepted event and what belongs to it.
pub(crate) struct Queued<E> {
    pub(crate) event: E,
    pub(crate) ticket: Option<Arc<TicketCell>>,
    /// Since when it could have run.
    pub(crate) waiting_since: Tick,
}

/// An event that is not to run, and why.
pub(crate) type Rejected<E> = (Queued<E>, NotRun);

/// A place in the line.
enum Slot<E> {
    Plain(Queued<E>),
    Kept(Key),
}

/// How far the loop is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more is accepted; what waits is run.
    Draining,
    Closed,
    Dead,
}

/// Between two looks: about a microsecond.
const PAUSES: u32 = 24;
/// How often to look before waiting, and from when on to give the thread away in between.
const ROUNDS: u32 = 8;
const ROUNDS_ALONE: u32 = 4;

/// How often a producer tries to get the lock, and how long it looks away in between, before it waits for it.
const TRIES: u32 = 16;
const PAUSES_OF_PRODUCERS: u32 = 4;

/// How much may wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) capacity: Option<usize>,
    pub(crate) low: Option<usize>,
    pub(crate) timer_capacity: Option<usize>,
}

struct Guarded<E> {
    store: Store<E>,
    phase: Phase,
    /// Barriers whose callbacks have not all returned: the loop starts nothing meanwhile.
    clears: usize,
    /// Events accepted under this lock alone.
    accepted: u64,
    driven_by_thread: bool,
    /// Until when the loop waits, if it waits: whoever schedules something for later need not wake it.
    waits_until: Tick,
    /// Somebody waits for room in the line, and is to be told when there is some.
    room_wanted: bool,
}

struct Inbox<E> {
    line: Line<Slot<E>>,
    /// A copy of the phase, changed under both locks.
    phase: Phase,
    accepted: u64,
}

pub(crate) struct Queue<E> {
    // Lock order: `guarded`, then `inbox`.
    guarded: Apart<Mutex<Guarded<E>>>,
    inbox: Apart<(Mutex<Inbox<E>>, AtomicUsize)>,
    /// Events in the store's line, written under its lock, and whether one is in flight.
    by_the_loop: Apart<(AtomicUsize, AtomicBool)>,
    limits: Limits,
    room: Arc<Room>,
}

/// What the loop finds when it looks for work.
pub(crate) enum Taken<E> {
    Event(Selected<E>),
    Idle {
        next_wakeup: Option<Tick>,
    },
    /// A barrier's callbacks are running.
    Held,
    End(StopReason),
}

/// What waits, at one moment.
pub(crate) struct Depths {
    pub(crate) accepted: u64,
    pub(crate) queued: usize,
    pub(crate) scheduled: usize,
    pub(crate) in_flight: bool,
    pub(crate) oldest: Option<Tick>,
}

/// What closing found.
pub(crate) struct Closing<E> {
    pub(crate) rejected: Vec<Rejected<E>>,
    /// Whether a thread of its own drives the loop and will end it.
    pub(crate) driven_by_thread: bool,
}

impl<E> Queue<E> {
    pub(crate) fn new(limits: Limits, timer_burst: u32, room: Arc<Room>) -> Self {
        let guarded = Guarded {
            store: Store::new(timer_burst),
            phase: Phase::Open,
            clears: 0,
            accepted: 0,
            driven_by_thread: false,
            waits_until: Tick::MAX,
            room_wanted: false,
        };
        let inbox = Inbox { line: Line::default(), phase: Phase::Open, accepted: 0 };
        Self {
            guarded: Apart(Mutex::new(guarded)),
            inbox: Apart((Mutex::new(inbox), AtomicUsize::new(0))),
            by_the_loop: Apart((AtomicUsize::new(0), AtomicBool::new(false))),
            limits,
            room,
        }
    }

    /// How many events wait in line.
    pub(crate) fn depth(&self) -> usize {
        self.depth_with(&self.lock_inbox())
    }

    /// Whether producers have pushed something that the loop has not fetched. A hint: only [`take`](Self::take) knows.
    pub(crate) fn has_news(&self) -> bool {
        self.inbox.0.1.load(Ordering::Relaxed) > 0
    }

    /// Looks for news for a little while. To wake a thread that waits costs its waker as much as a hundred puts; but to
    /// look costs the producer who writes there as much as a put, so that is done seldom.
    pub(crate) fn expects_news(&self) -> bool {
        for round in 0..ROUNDS {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            if self.has_news() {
                return true;
            }
            if round >= ROUNDS_ALONE {
                std::thread::yield_now();
            }
        }
        false
    }

    /// Puts a plain event at the end.
    pub(crate) fn put(&self, queued: Queued<E>, lane: Lane) -> Result<(), PutError<E>> {
        let mut inbox = self.lock_inbox_patiently();
        if inbox.phase != Phase::Open {
            return Err(refusal(inbox.phase, queued.event));
        }
        if let Some(full) = self.is_full(&inbox, lane) {
            return Err(full.refusal(queued.event));
        }
        inbox.line.push_back(Slot::Plain(queued));
        inbox.accepted += 1;
        self.inbox.0.1.store(inbox.line.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Puts an event with a deadline, a tag or an epoch at the end. Returns the one that had its tag.
    pub(crate) fn put_with(
        &self,
        queued: Queued<E>,
        extras: Extras,
        lane: Lane,
    ) -> Result<Option<Queued<E>>, PutError<E>> {
        let mut guarded = self.lock_guarded();
        let mut inbox = self.lock_inbox();
        if inbox.phase != Phase::Open {
            return Err(refusal(inbox.phase, queued.event));
        }
        // Taking the place of another event needs no room.
        if let Some(full) = self.is_full(&inbox, lane)
            && !extras.tag.as_ref().is_some_and(|tag| guarded.store.is_tagged(tag))
        {
            return Err(full.refusal(queued.event));
        }
        self.fetch(&mut guarded, &mut inbox);
        let replaced = guarded.store.append(queued, extras);
        guarded.accepted += 1;
        self.note_store(&mut guarded);
        Ok(replaced)
    }

    /// Puts an event at the head, whatever the capacity.
    pub(crate) fn prepend(&self, queued: Queued<E>) -> Result<(), PutError<E>> {
        let mut guarded = self.lock_guarded();
        if guarded.phase != Phase::Open {
            return Err(refusal(guarded.phase, queued.event));
        }
        guarded.store.prepend(queued);
        guarded.accepted += 1;
        self.note_store(&mut guarded);
        Ok(())
    }

    /// Schedules an event, as the tick of a chain if it is one. Returns the one that had its tag, and whether the loop has
    /// to hear of it now.
    pub(crate) fn schedule(
        &self,
        mut queued: Queued<E>,
        when: &When,
        tag: Option<Tag>,
        chain: Option<u64>,
        exempt: bool,
    ) -> Result<(Option<Queued<E>>, bool), PutError<E>> {
        let mut guarded = self.lock_guarded();
        if guarded.phase != Phase::Open {
            return Err(refusal(guarded.phase, queued.event));
        }
        if let Some(capacity) = self.limits.timer_capacity
            && let depth = guarded.store.scheduled()
            && depth >= capacity
            && !exempt
            && !tag.as_ref().is_some_and(|tag| guarded.store.is_tagged(tag))
        {
            return Err(Full { depth, capacity }.refusal(queued.event));
        }
        let at = guarded.store.moment(tag.as_ref(), when);
        queued.waiting_since = queued.waiting_since.max(at);
        let replaced = guarded.store.schedule(queued, at, tag, chain);
        guarded.accepted += 1;
        self.note_store(&mut guarded);
        Ok((replaced, at < guarded.waits_until))
    }

    /// The moment of the event that waits under a tag.
    pub(crate) fn deadline_of(&self, tag: &Tag) -> Option<Tick> {
        self.lock_guarded().store.deadline_of(tag)
    }

    pub(crate) fn cancel(&self, tag: &Tag) -> Option<Queued<E>> {
        let mut guarded = self.lock_guarded();
        let cancelled = guarded.store.cancel(tag);
        self.note_store(&mut guarded);
        cancelled
    }

    /// Takes out the waiting tick of a chain.
    pub(crate) fn cancel_tick(&self, tag: &Tag, chain: u64) -> Option<Queued<E>> {
        let mut guarded = self.lock_guarded();
        if !guarded.store.is_tick_of(tag, chain) {
            return None;
        }
        guarded.store.cancel(tag)
    }

    /// Gives the waiting tick of a chain another moment.
    pub(crate) fn postpone(&self, tag: &Tag, at: Tick, chain: u64) {
        let mut guarded = self.lock_guarded();
        if guarded.store.is_tick_of(tag, chain)
            && let Some(mut tick) = guarded.store.cancel(tag)
        {
            tick.waiting_since = at;
            guarded.store.schedule(tick, at, Some(tag.clone()), Some(chain));
        }
    }

    /// The barrier's critical section: takes out everything in scope and puts `queued` behind it. The loop starts
    /// nothing until [`end_clear`](Self::end_clear).
    pub(crate) fn begin_clear(
        &self,
        queued: Queued<E>,
        scope: ClearScope,
    ) -> Result<Vec<Rejected<E>>, PutError<E>> {
        let mut guarded = self.lock_guarded();
        let mut inbox = self.lock_inbox();
        if guarded.phase != Phase::Open {
            return Err(refusal(guarded.phase, queued.event));
        }
        self.fetch(&mut guarded, &mut inbox);
        let cleared = guarded.store.clear(scope, NotRun::Preempted);
        guarded.store.prepend(queued);
        guarded.accepted += 1;
        guarded.clears += 1;
        self.note_store(&mut guarded);
        Ok(cleared)
    }

    pub(crate) fn end_clear(&self) {
        self.lock_guarded().clears -= 1;
    }

    /// Accepts nothing more, and takes out what would only be due later. To be followed by
    /// [`end_clear`](Self::end_clear).
    pub(crate) fn begin_drain(&self, now: Tick) -> Vec<Rejected<E>> {
        let mut guarded = self.lock_guarded();
        guarded.clears += 1;
        if guarded.phase != Phase::Open {
            return Vec::new();
        }
        guarded.phase = Phase::Draining;
        self.lock_inbox().phase = Phase::Draining;
        let rejected = guarded.store.clear_not_due(now);
        self.note_store(&mut guarded);
        rejected
    }

    /// Accepts nothing more and takes out everything. To be followed by [`end_clear`](Self::end_clear).
    pub(crate) fn close(&self) -> Closing<E> {
        let mut guarded = self.lock_guarded();
        let rejected = self.finish(&mut guarded, Phase::Closed);
        Closing { rejected, driven_by_thread: guarded.driven_by_thread }
    }

    /// As [`close`](Self::close), because the loop ends of a fault.
    pub(crate) fn die(&self) -> Vec<Rejected<E>> {
        let mut rejected = self.finish(&mut self.lock_guarded(), Phase::Dead);
        rejected.iter_mut().for_each(|(_, why)| *why = NotRun::LoopDied);
        rejected
    }

    fn finish(&self, guarded: &mut Guarded<E>, phase: Phase) -> Vec<Rejected<E>> {
        let mut inbox = self.lock_inbox();
        guarded.clears += 1;
        if matches!(guarded.phase, Phase::Open | Phase::Draining) {
            guarded.phase = phase;
            inbox.phase = phase;
        }
        self.fetch(guarded, &mut inbox);
        let rejected = guarded.store.clear(ClearScope::All, NotRun::ShuttingDown);
        self.note_store(guarded);
        rejected
    }

    /// Asks for [`Room::changed`] when the line gets shorter or the loop ends. `false` if a put has a chance at once.
    pub(crate) fn want_room(&self, lane: Lane) -> bool {
        let mut guarded = self.lock_guarded();
        let inbox = self.lock_inbox();
        // Under both locks: whatever makes room comes before this and is seen, or after it and sees the wish.
        let full = self.limit(lane).is_some_and(|limit| self.depth_with(&inbox) >= limit);
        let wanted = full && inbox.phase == Phase::Open;
        guarded.room_wanted |= wanted;
        wanted
    }

    /// Notes that a thread of its own will drive the loop; `false` if it has been closed already.
    pub(crate) fn claim_for_thread(&self) -> bool {
        let mut guarded = self.lock_guarded();
        guarded.driven_by_thread = matches!(guarded.phase, Phase::Open | Phase::Draining);
        guarded.driven_by_thread
    }

    /// What the loop is to do now if that is the first event in line and nothing but its turn decides about it: by far
    /// the most. As [`take`](Self::take), in fewer steps.
    #[inline]
    pub(crate) fn take_plain(&self) -> Option<Queued<E>> {
        let mut guarded = self.lock_guarded();
        if guarded.clears > 0 || guarded.phase != Phase::Open {
            return None;
        }
        let queued = guarded.store.pop_plain()?;
        self.by_the_loop.0.1.store(true, Ordering::Release);
        self.note_store(&mut guarded);
        Some(queued)
    }

    /// What the loop is to do now. An event that is taken is in flight until [`landed`](Self::landed). If it is `armed`,
    /// everything is seen whose producer may not have seen that.
    pub(crate) fn take(&self, now: Tick, armed: bool) -> Taken<E> {
        let mut guarded = self.lock_guarded();
        if guarded.clears > 0 {
            return Taken::Held;
        }
        match guarded.phase {
            Phase::Closed => return Taken::End(StopReason::Closed),
            Phase::Dead => return Taken::End(StopReason::Died),
            Phase::Open | Phase::Draining => {}
        }
        if guarded.store.queued() == 0 && (armed || self.has_news()) {
            self.fetch(&mut guarded, &mut self.lock_inbox_patiently());
        }
        match guarded.store.select(now) {
            Some(selected) => {
                self.by_the_loop.0.1.store(true, Ordering::Release);
                self.note_store(&mut guarded);
                Taken::Event(selected)
            }
            // What is scheduled yet was due when the drain began.
            None if guarded.phase == Phase::Draining && guarded.store.scheduled() == 0 => {
                guarded.phase = Phase::Closed;
                self.lock_inbox().phase = Phase::Closed;
                Taken::End(StopReason::Drained)
            }
            None => {
                let next_wakeup = guarded.store.next_wakeup();
                guarded.waits_until = next_wakeup.unwrap_or(Tick::MAX);
                Taken::Idle { next_wakeup }
            }
        }
    }

    /// The event that was taken has its outcome.
    pub(crate) fn landed(&self) {
        self.by_the_loop.0.1.store(false, Ordering::Release);
    }

    pub(crate) fn depths(&self) -> Depths {
        let guarded = self.lock_guarded();
        let inbox = self.lock_inbox();
        let first_in_inbox = || match inbox.line.iter().next()? {
            Slot::Plain(queued) => Some(queued.waiting_since),
            Slot::Kept(_) => None,
        };
        Depths {
            accepted: guarded.accepted + inbox.accepted,
            queued: guarded.store.queued() + inbox.line.len(),
            scheduled: guarded.store.scheduled(),
            in_flight: self.by_the_loop.0.1.load(Ordering::Acquire),
            oldest: guarded.store.oldest().or_else(first_in_inbox),
        }
    }

    /// When the earliest scheduled event is due. Looks at many of them: not for every turn.
    pub(crate) fn next_timer(&self) -> Option<Tick> {
        self.lock_guarded().store.next_timer()
    }

    /// Moves the inbox behind what the store has.
    fn fetch(&self, guarded: &mut Guarded<E>, inbox: &mut Inbox<E>) {
        guarded.store.take_over(&mut inbox.line);
        self.inbox.0.1.store(0, Ordering::Relaxed);
        self.note_store(guarded);
    }

    /// Publishes how many events the store's line has.
    fn note_store(&self, guarded: &mut Guarded<E>) {
        self.by_the_loop.0.0.store(guarded.store.queued(), Ordering::Release);
        if std::mem::take(&mut guarded.room_wanted) {
            self.room.changed();
        }
    }

    fn depth_with(&self, inbox: &Inbox<E>) -> usize {
        // Exact as far as producers go: the inbox changes hands only under its lock, and the store shrinks by itself.
        inbox.line.len() + self.by_the_loop.0.0.load(Ordering::Acquire)
    }

    fn is_full(&self, inbox: &Inbox<E>, lane: Lane) -> Option<Full> {
        let capacity = self.limit(lane)?;
        let depth = self.depth_with(inbox);
        (depth >= capacity).then_some(Full { depth, capacity })
    }

    fn limit(&self, lane: Lane) -> Option<usize> {
        match lane {
            Lane::Control => None,
            Lane::Normal => self.limits.capacity,
            Lane::Low => self.limits.low.or(self.limits.capacity.map(|capacity| capacity / 2)),
        }
    }

    fn lock_guarded(&self) -> MutexGuard<'_, Guarded<E>> {
        self.guarded.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`lock_inbox`](Self::lock_inbox), for one of many producers. Whoever finds the lock taken looks away for a while:
    /// the owner puts ten events in that time without its cache line being taken away, where two that take turns
    /// would put two.
    #[inline]
    fn lock_inbox_patiently(&self) -> MutexGuard<'_, Inbox<E>> {
        match self.inbox.0.0.try_lock() {
            Ok(inbox) => inbox,
            Err(_) => self.lock_inbox_later(),
        }
    }

    #[cold]
    fn lock_inbox_later(&self) -> MutexGuard<'_, Inbox<E>> {
        for _ in 0..TRIES {
            (0..PAUSES_OF_PRODUCERS).for_each(|_| std::hint::spin_loop());
            if let Ok(inbox) = self.inbox.0.0.try_lock() {
                return inbox;
            }
            std::thread::yield_now();
        }
        self.lock_inbox()
    }

    fn lock_inbox(&self) -> MutexGuard<'_, Inbox<E>> {
        self.inbox.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// There is no room.
struct Full {
    depth: usize,
    capacity: usize,
}

impl Full {
    #[cold]
    fn refusal<E>(self, event: E) -> PutError<E> {
        PutError::Overloaded { event, depth: self.depth, capacity: self.capacity }
    }
}

#[cold]
fn refusal<E>(phase: Phase, event: E) -> PutError<E> {
    if phase == Phase::Dead { PutError::Dead(event) } else { PutError::Closed(event) }
}
