//! Equal records in flight share one call.
//!
//! The first record of a key is its *leader*; one of the same key that would start while the leader is in flight
//! *follows*: no call is made for it, and it gets a copy of the leader's outcome. Everything else about a follower is its
//! own: its place, its order, its budget, its part in a snapshot. When the leader's budget ends, which says nothing about
//! the followers', the first of them leads on with a call of its own.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::entry::EntryId;
use crate::key::KeySelector;
use crate::output::Outcome;

/// Who leads, by key. Behind a trait object, so that the key is no further parameter of the operator.
pub(crate) trait Leaders<I, R, E>: Send {
    /// The leader that this record follows. Without one it leads from now on.
    fn follow(&mut self, input: &I, slot: u32) -> Option<u32>;

    /// This record leads no longer.
    fn resign(&mut self, input: &I, slot: u32);

    fn copy(&self, outcome: &Outcome<R, E>) -> Outcome<R, E>;

    fn clear(&mut self);
}

struct ByKey<S, K> {
    selector: S,
    leaders: HashMap<K, u32>,
}

impl<I, R: Clone, E: Clone, S> Leaders<I, R, E> for ByKey<S, S::Key>
where
    S: KeySelector<I> + Send,
    S::Key: Send,
{
    fn follow(&mut self, input: &I, slot: u32) -> Option<u32> {
        let key = self.selector.key_of(input)?;
        let leader = *self.leaders.entry(key).or_insert(slot);
        (leader != slot).then_some(leader)
    }

    fn resign(&mut self, input: &I, slot: u32) {
        if let Some(key) = self.selector.key_of(input)
            && self.leaders.get(&key) == Some(&slot)
        {
            self.leaders.remove(&key);
        }
    }

    fn copy(&self, outcome: &Outcome<R, E>) -> Outcome<R, E> {
        outcome.clone()
    }

    fn clear(&mut self) {
        self.leaders.clear();
    }
}

/// Leaders and who follows them.
pub(crate) struct Coalescing<I, R, E> {
    leaders: Box<dyn Leaders<I, R, E>>,
    followers: HashMap<u32, VecDeque<EntryId>>,
}

impl<I, R: Clone, E: Clone> Coalescing<I, R, E> {
    pub(crate) fn by<S>(selector: S) -> Self
    where
        S: KeySelector<I> + Send + 'static,
        S::Key: Send + 'static,
    {
        let leaders = ByKey { selector, leaders: HashMap::new() };
        Self { leaders: Box::new(leaders), followers: HashMap::new() }
    }
}

impl<I, R, E> Coalescing<I, R, E> {
    /// Whether the record follows one in flight.
    pub(crate) fn follows(&mut self, input: &I, id: EntryId) -> bool {
        let Some(leader) = self.leaders.follow(input, id.slot) else { return false };
        self.followers.entry(leader).or_default().push_back(id);
        true
    }

    /// The record in this place leads no longer: who has followed it, oldest first.
    pub(crate) fn resign(&mut self, input: &I, slot: u32) -> VecDeque<EntryId> {
        self.leaders.resign(input, slot);
        self.followers.remove(&slot).unwrap_or_default()
    }

    /// These follow the record in this place from now on, before all others.
    pub(crate) fn lead(&mut self, slot: u32, followers: VecDeque<EntryId>) {
        if !followers.is_empty() {
            self.followers.insert(slot, followers);
        }
    }

    pub(crate) fn copy(&self, outcome: &Outcome<R, E>) -> Outcome<R, E> {
        self.leaders.copy(outcome)
    }

    pub(crate) fn clear(&mut self) {
        self.leaders.clear();
        self.followers.clear();
    }
}
