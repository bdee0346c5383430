//! The queue that producers, barriers and the loop share.
//!
//! Two locks: producers push to an *inbox* under one, the loop takes from the [`Store`] under the other and fetches the
//! whole inbox at once when the store has run out, so that neither waits for the other event by event. A barrier takes
//! both, first the store's and then the inbox's, and so reaches what the loop has fetched but not started: between a
//! barrier and a put there are only before and after. No user code runs under either lock.
//!
//! A lock and not a lock-free list: a push under an uncontended lock of one locked instruction costs what a push without
//! costs, and the barrier needs puts to be excluded anyway.

mod admission;
mod barriers;
mod kept;
mod line;
#[cfg(test)]
#[cfg(feature = "model")]
mod model;
mod moments;
mod news;
mod scheduled;
mod store;
mod tag_index;

use crate::event::NotRun;
use crate::processor::StopReason;
use crate::put::{Lane, PutError};
use crate::room::Room;
use crate::sync::{Apart, AtomicBool, AtomicUsize, Brief, BriefGuard};
use crate::ticket::TicketCell;
pub(crate) use admission::Limits;
use admission::refusal;
use kept::Key;
use line::Line;
use runtime_core::Tick;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    guarded: Apart<Brief<Guarded<E>>>,
    inbox: Apart<(Brief<Inbox<E>>, AtomicUsize)>,
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
            guarded: Apart(Brief::new(guarded)),
            inbox: Apart((Brief::new(inbox), AtomicUsize::new(0))),
            by_the_loop: Apart((AtomicUsize::new(0), AtomicBool::new(false))),
            limits,
            room,
        }
    }

    /// How many events wait in line.
    pub(crate) fn depth(&self) -> usize {
        self.depth_with(&self.lock_inbox())
    }

    /// Puts a plain event at the end.
    pub(crate) fn put(&self, queued: Queued<E>, lane: Lane) -> Result<(), PutError<E>> {
        let mut inbox = self.lock_inbox();
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
            self.fetch(&mut guarded, &mut self.lock_inbox());
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

    fn lock_guarded(&self) -> BriefGuard<'_, Guarded<E>> {
        self.guarded.0.lock()
    }

    fn lock_inbox(&self) -> BriefGuard<'_, Inbox<E>> {
        self.inbox.0.0.lock()
    }
}
