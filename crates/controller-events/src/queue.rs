//! The queue that producers, barriers and the loop share.
//!
//! Two locks: producers push to an *inbox* under one, the loop takes from the [`Store`] under the other and fetches the
//! whole inbox at once when the store has run out, so that neither waits for the other event by event. A barrier takes
//! both, first the store's and then the inbox's, and so reaches what the loop has fetched but not started: between a
//! barrier and a put there are only before and after. No user code runs under either lock.

use crate::event::NotRun;
use crate::fifo::{Queued, Rejected, Slot};
use crate::processor::StopReason;
use crate::put::{ClearScope, Lane, PutError, PutOptions, When};
use crate::store::{Selected, Store};
use crate::sync::lock;
use crate::tag::Tag;
use runtime_core::Tick;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How far the loop is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more is accepted; what waits is run.
    Draining,
    Closed,
    Dead,
}

/// How much may wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) capacity: Option<usize>,
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
}

struct Inbox<E> {
    slots: VecDeque<Slot<E>>,
    /// A copy of the phase, changed under both locks.
    phase: Phase,
    accepted: u64,
}

pub(crate) struct Queue<E> {
    // Lock order: `guarded`, then `inbox`.
    guarded: Mutex<Guarded<E>>,
    inbox: Mutex<Inbox<E>>,
    /// Events in line, in the inbox and in the store. Grows under the inbox's lock, shrinks under the store's.
    depth: AtomicUsize,
    in_flight: AtomicBool,
    limits: Limits,
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
    pub(crate) next_timer: Option<Tick>,
}

/// What closing found.
pub(crate) struct Closing<E> {
    pub(crate) rejected: Vec<Rejected<E>>,
    /// Whether a thread of its own drives the loop and will end it.
    pub(crate) driven_by_thread: bool,
}

impl<E> Queue<E> {
    pub(crate) fn new(limits: Limits, timer_burst: u32) -> Self {
        Self {
            guarded: Mutex::new(Guarded {
                store: Store::new(timer_burst),
                phase: Phase::Open,
                clears: 0,
                accepted: 0,
                driven_by_thread: false,
            }),
            inbox: Mutex::new(Inbox { slots: VecDeque::new(), phase: Phase::Open, accepted: 0 }),
            depth: AtomicUsize::new(0),
            in_flight: AtomicBool::new(false),
            limits,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.load(Ordering::Acquire)
    }

    /// Puts a plain event at the end.
    pub(crate) fn put(&self, queued: Queued<E>, lane: Lane) -> Result<(), PutError<E>> {
        let mut inbox = lock(&self.inbox);
        let queued = admit(inbox.phase, queued)?;
        let queued = self.has_room(queued, lane)?;
        inbox.slots.push_back(Slot::Plain(queued));
        inbox.accepted += 1;
        self.depth.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Puts an event with a deadline or a tag at the end. Returns the one that had its tag.
    pub(crate) fn put_indexed(
        &self,
        queued: Queued<E>,
        options: PutOptions,
    ) -> Result<Option<Queued<E>>, PutError<E>> {
        let mut guarded = lock(&self.guarded);
        let mut inbox = lock(&self.inbox);
        let mut queued = admit(inbox.phase, queued)?;
        let before = guarded.store.queued() + inbox.slots.len();
        // Taking the place of another event needs no room.
        if !options.tag.as_ref().is_some_and(|tag| guarded.store.is_tagged(tag)) {
            queued = self.has_room(queued, options.lane)?;
        }
        guarded.store.take_over(&mut inbox.slots);
        let replaced = guarded.store.append(queued, options.deadline, options.tag);
        inbox.accepted += 1;
        self.adjust(before, guarded.store.queued());
        Ok(replaced)
    }

    /// Puts an event at the head, whatever the capacity.
    pub(crate) fn prepend(&self, queued: Queued<E>) -> Result<(), PutError<E>> {
        let mut guarded = lock(&self.guarded);
        let queued = admit(guarded.phase, queued)?;
        guarded.store.prepend(queued);
        guarded.accepted += 1;
        self.depth.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Schedules an event. Returns the one that had its tag.
    pub(crate) fn schedule(
        &self,
        queued: Queued<E>,
        when: &When,
        tag: Option<Tag>,
        exempt: bool,
    ) -> Result<Option<Queued<E>>, PutError<E>> {
        let mut guarded = lock(&self.guarded);
        let queued = admit(guarded.phase, queued)?;
        let replaces = tag.as_ref().is_some_and(|tag| guarded.store.is_tagged(tag));
        let depth = guarded.store.scheduled();
        if let Some(capacity) = self.limits.timer_capacity
            && depth >= capacity
            && !replaces
            && !exempt
        {
            return Err(PutError::Overloaded { event: queued.event, depth, capacity });
        }
        let before = guarded.store.queued();
        let at = guarded.store.moment(tag.as_ref(), when);
        let replaced = guarded.store.schedule(queued, at, tag);
        guarded.accepted += 1;
        self.adjust(before, guarded.store.queued());
        Ok(replaced)
    }

    /// The moment of the event that waits under a tag.
    pub(crate) fn deadline_of(&self, tag: &Tag) -> Option<Tick> {
        lock(&self.guarded).store.deadline_of(tag)
    }

    pub(crate) fn cancel(&self, tag: &Tag) -> Option<Queued<E>> {
        let mut guarded = lock(&self.guarded);
        let before = guarded.store.queued();
        let cancelled = guarded.store.cancel(tag);
        self.adjust(before, guarded.store.queued());
        cancelled
    }

    /// The barrier's critical section: takes out everything in scope and puts `queued` behind it. The loop starts
    /// nothing until [`end_clear`](Self::end_clear).
    pub(crate) fn begin_clear(
        &self,
        queued: Queued<E>,
        scope: ClearScope,
    ) -> Result<Vec<Rejected<E>>, PutError<E>> {
        let mut guarded = lock(&self.guarded);
        let mut inbox = lock(&self.inbox);
        let queued = admit(guarded.phase, queued)?;
        guarded.store.take_over(&mut inbox.slots);
        let cleared = guarded.store.clear(scope, NotRun::Preempted);
        guarded.store.append(queued, None, None);
        inbox.accepted += 1;
        guarded.clears += 1;
        self.depth.store(1, Ordering::Release);
        Ok(cleared)
    }

    pub(crate) fn end_clear(&self) {
        lock(&self.guarded).clears -= 1;
    }

    /// Accepts nothing more, and takes out what would only be due later. To be followed by
    /// [`end_clear`](Self::end_clear).
    pub(crate) fn begin_drain(&self, now: Tick) -> Vec<Rejected<E>> {
        let mut guarded = lock(&self.guarded);
        guarded.clears += 1;
        if guarded.phase != Phase::Open {
            return Vec::new();
        }
        guarded.phase = Phase::Draining;
        lock(&self.inbox).phase = Phase::Draining;
        guarded.store.clear_not_due(now)
    }

    /// Accepts nothing more and takes out everything. To be followed by [`end_clear`](Self::end_clear).
    pub(crate) fn close(&self) -> Closing<E> {
        let mut guarded = lock(&self.guarded);
        let rejected = self.finish(&mut guarded, Phase::Closed);
        Closing { rejected, driven_by_thread: guarded.driven_by_thread }
    }

    /// As [`close`](Self::close), because the loop ends of a fault.
    pub(crate) fn die(&self) -> Vec<Rejected<E>> {
        let mut rejected = self.finish(&mut lock(&self.guarded), Phase::Dead);
        rejected.iter_mut().for_each(|(_, why)| *why = NotRun::LoopDied);
        rejected
    }

    fn finish(&self, guarded: &mut Guarded<E>, phase: Phase) -> Vec<Rejected<E>> {
        let mut inbox = lock(&self.inbox);
        guarded.clears += 1;
        if matches!(guarded.phase, Phase::Open | Phase::Draining) {
            guarded.phase = phase;
            inbox.phase = phase;
        }
        guarded.store.take_over(&mut inbox.slots);
        self.depth.store(0, Ordering::Release);
        guarded.store.clear(ClearScope::All, NotRun::ShuttingDown)
    }

    /// Notes that a thread of its own will drive the loop; `false` if it has been closed already.
    pub(crate) fn claim_for_thread(&self) -> bool {
        let mut guarded = lock(&self.guarded);
        guarded.driven_by_thread = matches!(guarded.phase, Phase::Open | Phase::Draining);
        guarded.driven_by_thread
    }

    /// What the loop is to do now. An event that is taken is in flight until [`landed`](Self::landed).
    pub(crate) fn take(&self, now: Tick) -> Taken<E> {
        let mut guarded = lock(&self.guarded);
        if guarded.clears > 0 {
            return Taken::Held;
        }
        match guarded.phase {
            Phase::Closed => return Taken::End(StopReason::Closed),
            Phase::Dead => return Taken::End(StopReason::Died),
            Phase::Open | Phase::Draining => {}
        }
        let Guarded { store, phase, .. } = &mut *guarded;
        if store.queued() == 0 {
            store.take_over(&mut lock(&self.inbox).slots);
        }
        let before = store.queued();
        match store.select(now) {
            Some(selected) => {
                self.in_flight.store(true, Ordering::Release);
                self.adjust(before, store.queued());
                Taken::Event(selected)
            }
            None if *phase == Phase::Draining => {
                *phase = Phase::Closed;
                lock(&self.inbox).phase = Phase::Closed;
                Taken::End(StopReason::Drained)
            }
            None => Taken::Idle { next_wakeup: store.next_wakeup() },
        }
    }

    /// The event that was taken has its outcome.
    pub(crate) fn landed(&self) {
        self.in_flight.store(false, Ordering::Release);
    }

    pub(crate) fn depths(&self) -> Depths {
        let guarded = lock(&self.guarded);
        let inbox = lock(&self.inbox);
        let first_in_inbox = inbox.slots.front().and_then(|slot| match slot {
            Slot::Plain(queued) => Some(queued.waiting_since),
            Slot::Indexed(_) => None,
        });
        Depths {
            accepted: guarded.accepted + inbox.accepted,
            queued: guarded.store.queued() + inbox.slots.len(),
            scheduled: guarded.store.scheduled(),
            in_flight: self.in_flight.load(Ordering::Acquire),
            oldest: guarded.store.oldest().or(first_in_inbox),
            next_timer: guarded.store.next_timer(),
        }
    }

    fn has_room(&self, queued: Queued<E>, lane: Lane) -> Result<Queued<E>, PutError<E>> {
        let Some(capacity) = self.limits.capacity else { return Ok(queued) };
        let limit = match lane {
            Lane::Control => return Ok(queued),
            Lane::Normal => capacity,
            Lane::Low => capacity / 2,
        };
        let depth = self.depth();
        if depth < limit {
            return Ok(queued);
        }
        Err(PutError::Overloaded { event: queued.event, depth, capacity: limit })
    }

    fn adjust(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            Some(more) => {
                self.depth.fetch_add(more, Ordering::AcqRel);
            }
            None => {
                self.depth.fetch_sub(before - after, Ordering::AcqRel);
            }
        }
    }
}

fn admit<E>(phase: Phase, queued: Queued<E>) -> Result<Queued<E>, PutError<E>> {
    match phase {
        Phase::Open => Ok(queued),
        Phase::Draining | Phase::Closed => Err(PutError::Closed(queued.event)),
        Phase::Dead => Err(PutError::Dead(queued.event)),
    }
}
