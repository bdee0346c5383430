//! What waits and what comes next: the decisions of the queue, with the time passed in and no lock.

use crate::event::NotRun;
use crate::fifo::{Fifo, Indexed, Queued, Rejected, Slot};
use crate::put::{ClearScope, When};
use crate::tag::Tag;
use crate::timers::{Timer, TimerKey, Timers};
use runtime_core::Tick;
use std::collections::{HashMap, VecDeque};

/// Where the event of a tag waits.
#[derive(Clone, Copy)]
enum Place {
    Fifo(u64),
    Timer(TimerKey),
}

/// What the loop does next.
pub(crate) enum Selected<E> {
    Run(Queued<E>),
    TimedOut(Queued<E>),
}

pub(crate) struct Store<E> {
    fifo: Fifo<E>,
    timers: Timers<E>,
    tags: HashMap<Tag, Place>,
    sequence: u64,
    /// How many scheduled events have run in a row.
    burst: u32,
    timer_burst: u32,
}

impl<E> Store<E> {
    /// An empty store that runs at most `timer_burst` scheduled events in a row while others wait.
    pub(crate) fn new(timer_burst: u32) -> Self {
        Self {
            fifo: Fifo::default(),
            timers: Timers::default(),
            tags: HashMap::new(),
            sequence: 0,
            burst: 0,
            timer_burst,
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.fifo.len()
    }

    pub(crate) fn scheduled(&self) -> usize {
        self.timers.len()
    }

    pub(crate) fn next_timer(&self) -> Option<Tick> {
        self.timers.next()
    }

    pub(crate) fn oldest(&self) -> Option<Tick> {
        self.fifo.oldest()
    }

    /// When something has to be looked at though nobody puts anything.
    pub(crate) fn next_wakeup(&self) -> Option<Tick> {
        [self.timers.next(), self.fifo.next_deadline()].into_iter().flatten().min()
    }

    pub(crate) fn take_over(&mut self, inbox: &mut VecDeque<Slot<E>>) {
        self.fifo.take_over(inbox);
    }

    pub(crate) fn prepend(&mut self, queued: Queued<E>) {
        self.fifo.push_front(queued);
    }

    /// Puts an event at the end. Returns the one that had its tag.
    pub(crate) fn append(
        &mut self,
        queued: Queued<E>,
        deadline: Option<Tick>,
        tag: Option<Tag>,
    ) -> Option<Queued<E>> {
        let replaced = tag.as_ref().and_then(|tag| self.cancel(tag));
        if deadline.is_none() && tag.is_none() {
            self.fifo.push_back(queued);
        } else {
            let id = self.next_sequence();
            if let Some(tag) = &tag {
                self.tags.insert(tag.clone(), Place::Fifo(id));
            }
            self.fifo.push_back_indexed(id, Indexed { queued, deadline, tag });
        }
        replaced
    }

    /// The moment that `when` means for an event of this tag. `When::With` has been resolved before.
    pub(crate) fn moment(&self, tag: Option<&Tag>, when: &When) -> Tick {
        let previous = tag.and_then(|tag| self.deadline_of(tag));
        match *when {
            When::At(at) => at,
            When::Earliest(at) => previous.map_or(at, |previous| previous.min(at)),
            When::Latest(at) => previous.map_or(at, |previous| previous.max(at)),
            When::With(_) => Tick::MAX,
        }
    }

    /// The moment of the event that waits under a tag.
    pub(crate) fn deadline_of(&self, tag: &Tag) -> Option<Tick> {
        match *self.tags.get(tag)? {
            Place::Fifo(id) => self.fifo.deadline_of(id),
            Place::Timer((at, _)) => Some(at),
        }
    }

    pub(crate) fn is_tagged(&self, tag: &Tag) -> bool {
        self.tags.contains_key(tag)
    }

    /// Schedules an event. Returns the one that had its tag. Time in the queue counts from the moment it is due.
    pub(crate) fn schedule(
        &mut self,
        mut queued: Queued<E>,
        at: Tick,
        tag: Option<Tag>,
    ) -> Option<Queued<E>> {
        let replaced = tag.as_ref().and_then(|tag| self.cancel(tag));
        let key = (at, self.next_sequence());
        if let Some(tag) = &tag {
            self.tags.insert(tag.clone(), Place::Timer(key));
        }
        queued.waiting_since = queued.waiting_since.max(at);
        self.timers.insert(key, Timer { queued, tag });
        replaced
    }

    /// Takes out the event that waits under a tag.
    pub(crate) fn cancel(&mut self, tag: &Tag) -> Option<Queued<E>> {
        match self.tags.remove(tag)? {
            Place::Fifo(id) => self.fifo.remove(id).map(|entry| entry.queued),
            Place::Timer(key) => self.timers.remove(key).map(|timer| timer.queued),
        }
    }

    /// What comes next: events whose deadline has come, then due scheduled events, then the line; after
    /// `timer_burst` scheduled events one of the line, if any waits there.
    pub(crate) fn select(&mut self, now: Tick) -> Option<Selected<E>> {
        if let Some(expired) = self.fifo.pop_expired(now) {
            self.forget(expired.tag.as_ref());
            return Some(Selected::TimedOut(expired.queued));
        }
        if (self.burst < self.timer_burst || self.fifo.len() == 0)
            && let Some(timer) = self.timers.pop_due(now)
        {
            self.burst = self.burst.saturating_add(1);
            self.forget(timer.tag.as_ref());
            return Some(Selected::Run(timer.queued));
        }
        self.burst = 0;
        let (queued, tag) = self.fifo.pop()?;
        self.forget(tag.as_ref());
        Some(Selected::Run(queued))
    }

    /// Takes out what a barrier clears: the line in order, then the scheduled events by their time.
    pub(crate) fn clear(&mut self, scope: ClearScope, timers_because: NotRun) -> Vec<Rejected<E>> {
        let mut cleared: Vec<_> =
            self.fifo.drain().into_iter().map(|queued| (queued, NotRun::Preempted)).collect();
        if scope == ClearScope::All {
            cleared.extend(self.timers.drain_after(None).into_iter().map(|t| (t.queued, timers_because)));
            self.tags.clear();
        } else {
            self.tags.retain(|_, place| matches!(place, Place::Timer(_)));
        }
        cleared
    }

    /// Takes out the scheduled events that are not due.
    pub(crate) fn clear_not_due(&mut self, now: Tick) -> Vec<Rejected<E>> {
        let timers = self.timers.drain_after(Some(now));
        let reject = |timer: Timer<E>| {
            self.forget(timer.tag.as_ref());
            (timer.queued, NotRun::ShuttingDown)
        };
        timers.into_iter().map(reject).collect()
    }

    fn forget(&mut self, tag: Option<&Tag>) {
        if let Some(tag) = tag {
            self.tags.remove(tag);
        }
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
