//! Which kept event waits under a tag.
//!
//! Open addressing with the index of the event's entry and a part of the hash in eight bytes, so that a million tags are
//! sixteen megabytes and looking one up touches one line of memory here and the event itself. The tags themselves stay
//! with their events; a general map would hold each a second time.

use crate::tag::Tag;
use std::hash::{BuildHasher as _, RandomState};

/// The upper half is a hash, the lower an index plus one.
type Slot = u64;
const VACANT: Slot = 0;
const LEAST: usize = 16;
/// An empty index of more slots gives its memory back.
const WORTH_KEEPING: usize = 32_768;

pub(super) struct TagIndex {
    /// A power of two, at most half of it taken; or none.
    slots: Vec<Slot>,
    len: usize,
    /// Another one in every index: nobody can choose tags that collide.
    seed: u64,
}

impl Default for TagIndex {
    fn default() -> Self {
        Self { slots: Vec::new(), len: 0, seed: RandomState::new().hash_one(0_u8) }
    }
}

impl TagIndex {
    pub(super) fn hash(&self, tag: &Tag) -> u32 {
        tag.hash_with(self.seed)
    }

    /// The index under a hash whose tag is the right one.
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.position(hash, is_it).map(|(_, index)| index)
    }

    /// Adds an index that is not here yet.
    pub(super) fn insert(&mut self, hash: u32, index: u32) {
        if (self.len + 1) * 2 > self.slots.len() {
            self.resize((self.slots.len() * 2).max(LEAST));
        }
        self.len += 1;
        self.place(slot(hash, index));
    }

    /// Gives the entry of a hash another index.
    pub(super) fn change(&mut self, hash: u32, from: u32, to: u32) -> bool {
        let Some((position, _)) = self.position(hash, |index| index == from) else { return false };
        if let Some(place) = self.slots.get_mut(position) {
            *place = slot(hash, to);
        }
        true
    }

    pub(super) fn remove(&mut self, hash: u32, index: u32) {
        let Some((mut hole, _)) = self.position(hash, |found| found == index) else { return };
        self.len -= 1;
        if self.len == 0 && self.slots.len() > WORTH_KEEPING {
            self.slots = Vec::new();
            return;
        }
        // Moves later ones back over the hole, so that no search ends too early.
        let mask = self.slots.len() - 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let moved = self.slots.get(next).copied().unwrap_or(VACANT);
            if moved == VACANT {
                break;
            }
            let home = (moved >> 32) as usize & mask;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                if let Some(place) = self.slots.get_mut(hole) {
                    *place = moved;
                }
                hole = next;
            }
        }
        if let Some(place) = self.slots.get_mut(hole) {
            *place = VACANT;
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        if self.slots.len() > WORTH_KEEPING {
            self.slots = Vec::new();
        } else {
            self.slots.fill(VACANT);
        }
    }

    fn position(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut position = hash as usize & mask;
        loop {
            let found = *self.slots.get(position)?;
            if found == VACANT {
                return None;
            }
            if (found >> 32) as u32 == hash {
                // The lower half: an index plus one.
                let index = (found as u32).wrapping_sub(1);
                if is_it(index) {
                    return Some((position, index));
                }
            }
            position = (position + 1) & mask;
        }
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut position = (slot >> 32) as usize & mask;
        while self.slots.get(position).is_some_and(|taken| *taken != VACANT) {
            position = (position + 1) & mask;
        }
        if let Some(place) = self.slots.get_mut(position) {
            *place = slot;
        }
    }

    fn resize(&mut self, to: usize) {
        let old = std::mem::replace(&mut self.slots, vec![VACANT; to]);
        for slot in old.into_iter().filter(|slot| *slot != VACANT) {
            self.place(slot);
        }
    }
}

fn slot(hash: u32, index: u32) -> Slot {
    u64::from(hash) << 32 | (u64::from(index) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn finds_what_a_map_finds(ops in proptest::collection::vec((0..40_u32, any::<bool>()), 0..400)) {
            // Few hashes, so that everything collides.
            let hash = |n: u32| n % 7 * 0x1000_0001;
            let mut index = TagIndex::default();
            let mut model = HashMap::new();
            for (n, add) in ops {
                if add && !model.contains_key(&n) {
                    index.insert(hash(n), n);
                    model.insert(n, ());
                } else if !add {
                    index.remove(hash(n), n);
                    model.remove(&n);
                }
                for n in 0..40 {
                    prop_assert_eq!(index.find(hash(n), |i| i == n).is_some(), model.contains_key(&n));
                }
            }
        }
    }
}
