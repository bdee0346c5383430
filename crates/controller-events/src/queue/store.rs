//! What waits and what comes next: the decisions of the queue, with the time passed in and no lock.

use super::kept::{Kept, Key, Place, Shelf};
use super::line::Line;
use super::moments::Moments;
use super::tag_index::TagIndex;
use super::{Queued, Rejected, Slot};
use crate::event::NotRun;
use crate::put::{ClearScope, When};
use crate::tag::Tag;
use runtime_core::{Epoch, Tick};

/// What the loop does next.
pub(crate) enum Selected<E> {
    Run(Queued<E>),
    RunKept(Ready<E>),
    TimedOut(Queued<E>),
}

/// An event that may run, with what only kept ones have.
pub(crate) struct Ready<E> {
    pub(crate) queued: Queued<E>,
    /// Its latest start, which had not come when it was selected.
    pub(crate) deadline: Option<Tick>,
    pub(crate) epoch: Option<Epoch>,
    /// The chain of ticks that it belongs to.
    pub(crate) chain: Option<u64>,
}

/// What an event that is put in line may have besides.
pub(crate) struct Extras {
    pub(crate) deadline: Option<Tick>,
    pub(crate) tag: Option<Tag>,
    pub(crate) epoch: Option<Epoch>,
}

pub(super) struct Store<E> {
    line: Line<Slot<E>>,
    /// Places in the line whose event has left.
    vacant: usize,
    kept: Shelf<E>,
    /// Latest starts of events in line.
    deadlines: Moments,
    /// Moments of scheduled events.
    timers: Moments,
    tags: TagIndex,
    /// How many scheduled events have run in a row.
    burst: u32,
    timer_burst: u32,
}

impl<E> Store<E> {
    /// An empty store that runs at most `timer_burst` scheduled events in a row while others wait.
    pub(super) fn new(timer_burst: u32) -> Self {
        Self {
            line: Line::default(),
            vacant: 0,
            kept: Shelf::default(),
            deadlines: Moments::default(),
            timers: Moments::default(),
            tags: TagIndex::default(),
            burst: 0,
            timer_burst,
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.line.len() - self.vacant
    }

    pub(super) fn scheduled(&self) -> usize {
        self.timers.live()
    }

    pub(super) fn next_timer(&self) -> Option<Tick> {
        self.timers.earliest(|key| self.kept.is_live(key))
    }

    /// Since when the first event in line waits.
    pub(super) fn oldest(&self) -> Option<Tick> {
        self.line.iter().find_map(|slot| match slot {
            Slot::Plain(queued) => Some(queued.waiting_since),
            Slot::Kept(key) => self.kept.get(*key).map(|kept| kept.queued.waiting_since),
        })
    }

    /// A moment before which nothing has to be looked at unless somebody puts something.
    pub(super) fn next_wakeup(&self) -> Option<Tick> {
        [self.timers.next_wakeup(), self.deadlines.next_wakeup()].into_iter().flatten().min()
    }

    /// Takes over what producers have pushed meanwhile, behind what is here.
    pub(super) fn take_over(&mut self, inbox: &mut Line<Slot<E>>) {
        self.line.take_over(inbox);
    }

    pub(super) fn prepend(&mut self, queued: Queued<E>) {
        self.line.push_front(Slot::Plain(queued));
    }

    /// Puts an event at the end. Returns the one that had its tag.
    pub(super) fn append(&mut self, queued: Queued<E>, extras: Extras) -> Option<Queued<E>> {
        let Extras { deadline, tag, epoch } = extras;
        if deadline.is_none() && tag.is_none() && epoch.is_none() {
            self.line.push_back(Slot::Plain(queued));
            return None;
        }
        let at = deadline.unwrap_or(Tick::MAX);
        let (key, replaced) = self.keep(Kept { queued, place: Place::Line { epoch }, at, tag })?;
        if let Some(deadline) = deadline.filter(|deadline| *deadline != Tick::MAX) {
            self.deadlines.insert(deadline, key);
        }
        self.line.push_back(Slot::Kept(key));
        replaced
    }

    /// Schedules an event. Returns the one that had its tag.
    pub(super) fn schedule(
        &mut self,
        queued: Queued<E>,
        at: Tick,
        tag: Option<Tag>,
        chain: Option<u64>,
    ) -> Option<Queued<E>> {
        let kept = Kept { queued, place: Place::Timer { chain }, at, tag };
        let (key, replaced) = self.keep(kept)?;
        self.timers.insert(at, key);
        replaced
    }

    /// The moment that `when` means for an event of this tag. `When::With` has been resolved before.
    pub(super) fn moment(&self, tag: Option<&Tag>, when: &When) -> Tick {
        let previous = || tag.and_then(|tag| self.deadline_of(tag));
        match *when {
            When::At(at) => at,
            When::Earliest(at) => previous().map_or(at, |previous| previous.min(at)),
            When::Latest(at) => previous().map_or(at, |previous| previous.max(at)),
            When::With(_) => Tick::MAX,
        }
    }

    /// The moment of the event under a tag: when it is due, or its latest start.
    pub(super) fn deadline_of(&self, tag: &Tag) -> Option<Tick> {
        self.tagged(tag).and_then(|(_, kept)| kept.moment())
    }

    pub(super) fn is_tagged(&self, tag: &Tag) -> bool {
        self.tagged(tag).is_some()
    }

    pub(super) fn cancel(&mut self, tag: &Tag) -> Option<Queued<E>> {
        let (key, _) = self.tagged(tag)?;
        let kept = self.kept.remove(key)?;
        self.forget_tag(key, &kept);
        self.left_early(&kept);
        Some(kept.queued)
    }

    /// Whether the event under a tag is a tick of a chain.
    pub(super) fn is_tick_of(&self, tag: &Tag, chain: u64) -> bool {
        self.tagged(tag).is_some_and(|(_, kept)| kept.place == Place::Timer { chain: Some(chain) })
    }

    /// The first event in line, if there are only plain ones.
    #[inline]
    pub(super) fn pop_plain(&mut self) -> Option<Queued<E>> {
        if self.kept.len() > 0 || self.vacant > 0 {
            return None;
        }
        self.burst = 0;
        match self.line.pop_front()? {
            Slot::Plain(queued) => Some(queued),
            // Cannot be: all of those are kept.
            Slot::Kept(_) => None,
        }
    }

    /// What comes next: events whose deadline has come, then due scheduled events, then the line; after
    /// `timer_burst` scheduled events one of the line, if any waits there.
    pub(super) fn select(&mut self, now: Tick) -> Option<Selected<E>> {
        if self.kept.len() > 0
            && let Some(selected) = self.select_by_time(now)
        {
            return Some(selected);
        }
        self.burst = 0;
        loop {
            match self.line.pop_front()? {
                Slot::Plain(queued) => return Some(Selected::Run(queued)),
                Slot::Kept(key) => match self.kept.remove(key) {
                    None => self.vacant -= 1,
                    Some(entry) => {
                        self.forget_tag(key, &entry);
                        let deadline = entry.moment();
                        if deadline.is_some() {
                            let Self { deadlines, kept, .. } = self;
                            deadlines.forget(|key| kept.is_live(key));
                        }
                        let epoch = match entry.place {
                            Place::Line { epoch } => epoch,
                            Place::Timer { .. } => None,
                        };
                        let ready = Ready { queued: entry.queued, deadline, epoch, chain: None };
                        return Some(Selected::RunKept(ready));
                    }
                },
            }
        }
    }

    fn select_by_time(&mut self, now: Tick) -> Option<Selected<E>> {
        if let Some(expired) = self.pop_expired(now) {
            return Some(Selected::TimedOut(expired));
        }
        self.pop_timer(now).map(Selected::RunKept)
    }

    fn pop_expired(&mut self, now: Tick) -> Option<Queued<E>> {
        let key = self.deadlines.pop_due(now, |key| self.kept.is_live(key))?;
        let kept = self.kept.remove(key)?;
        self.forget_tag(key, &kept);
        self.left_the_line();
        Some(kept.queued)
    }

    fn pop_timer(&mut self, now: Tick) -> Option<Ready<E>> {
        if self.burst >= self.timer_burst && self.queued() > 0 {
            return None;
        }
        let key = self.timers.pop_due(now, |key| self.kept.is_live(key))?;
        let kept = self.kept.remove(key)?;
        self.burst = self.burst.saturating_add(1);
        self.forget_tag(key, &kept);
        let chain = match kept.place {
            Place::Timer { chain } => chain,
            Place::Line { .. } => None,
        };
        Some(Ready { queued: kept.queued, deadline: None, epoch: None, chain })
    }

    /// Takes out what a barrier clears: the line in order, then the scheduled events by their time.
    pub(super) fn clear(&mut self, scope: ClearScope, timers_because: NotRun) -> Vec<Rejected<E>> {
        let mut cleared = Vec::with_capacity(self.queued());
        for slot in self.line.drain() {
            let queued = match slot {
                Slot::Plain(queued) => Some(queued),
                Slot::Kept(key) => self.unkeep(key),
            };
            cleared.extend(queued.map(|queued| (queued, NotRun::Preempted)));
        }
        self.vacant = 0;
        self.deadlines.clear();
        if scope == ClearScope::All {
            let timers = self.keys_by_moment(Kept::is_scheduled);
            cleared.extend(timers.into_iter().filter_map(|key| Some((self.unkeep(key)?, timers_because))));
            self.timers.clear();
            self.tags.clear();
        }
        cleared
    }

    /// Takes out the scheduled events that are not due, and with `deadlined` the events in line whose latest start has
    /// not come.
    pub(super) fn clear_for_drain(&mut self, now: Tick, deadlined: bool) -> Vec<Rejected<E>> {
        let mut cleared = Vec::new();
        let is_out = |kept: &Kept<E>| {
            (deadlined || kept.is_scheduled()) && kept.moment().is_some_and(|moment| moment > now)
        };
        for key in self.keys_by_moment(is_out) {
            if let Some(kept) = self.kept.remove(key) {
                self.forget_tag(key, &kept);
                self.left_early(&kept);
                cleared.push((kept.queued, NotRun::ShuttingDown));
            }
        }
        cleared
    }

    /// Those of the kept events that are wanted, by moment and then by age.
    fn keys_by_moment(&self, wanted: impl Fn(&Kept<E>) -> bool) -> Vec<Key> {
        let those = self.kept.keys().filter(|(_, kept)| wanted(kept));
        let mut keys: Vec<(Tick, Key)> = those.map(|(key, kept)| (kept.at, key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// Puts an event on the shelf, in the place of the one that had its tag, which is returned.
    fn keep(&mut self, kept: Kept<E>) -> Option<(Key, Option<Queued<E>>)> {
        let Some(tag) = &kept.tag else { return Some((self.kept.insert(kept)?, None)) };
        let hash = self.tags.hash(tag);
        let old = self.tagged(tag).map(|(key, _)| key);
        let replaced = old.and_then(|key| self.kept.remove(key));
        if let Some(replaced) = &replaced {
            self.left_early(replaced);
        }
        let key = self.kept.insert(kept)?;
        if !old.is_some_and(|old| self.tags.change(hash, old.index, key.index)) {
            self.tags.insert(hash, key.index);
        }
        Some((key, replaced.map(|replaced| replaced.queued)))
    }

    fn tagged(&self, tag: &Tag) -> Option<(Key, &Kept<E>)> {
        let is_it = |index| self.kept.at(index).is_some_and(|(_, kept)| kept.tag.as_ref() == Some(tag));
        self.kept.at(self.tags.find(self.tags.hash(tag), is_it)?)
    }

    fn unkeep(&mut self, key: Key) -> Option<Queued<E>> {
        let kept = self.kept.remove(key)?;
        self.forget_tag(key, &kept);
        Some(kept.queued)
    }

    fn forget_tag(&mut self, key: Key, kept: &Kept<E>) {
        if let Some(tag) = &kept.tag {
            self.tags.remove(self.tags.hash(tag), key.index);
        }
    }

    /// An event was cancelled or replaced: its keys elsewhere have become stale.
    fn left_early(&mut self, left: &Kept<E>) {
        let Self { deadlines, timers, kept, .. } = self;
        if left.is_scheduled() {
            timers.forget(|key| kept.is_live(key));
            return;
        }
        if left.moment().is_some() {
            deadlines.forget(|key| kept.is_live(key));
        }
        self.left_the_line();
    }

    /// An event has left the line from the middle.
    fn left_the_line(&mut self) {
        self.vacant += 1;
        // Cancelling and putting again behind a long handler must not grow the line.
        if self.vacant > 64 && self.vacant > self.line.len() / 2 {
            let Self { line, kept, .. } = self;
            line.retain(|slot| match slot {
                Slot::Plain(_) => true,
                Slot::Kept(key) => kept.is_live(*key),
            });
            self.vacant = 0;
        }
    }
}
