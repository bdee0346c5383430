//! Finds a target's place by its id.
//!
//! A map from the standard library would hold every id a second time, beside the one that stands with its target. This one
//! holds eight bytes a target: the place, and 32 bits of the id's hash, which also say where in the table the entry
//! belongs, so that neither growing nor removing has to look at an id. Open addressing with linear probing; a removal moves
//! the entries behind it up (Knuth, TAOCP 3, 6.4, algorithm R), so that churn leaves nothing behind.
//!
//! It is never walked, so that its seed, which is another in each process, has no effect that can be seen.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

const EMPTY: u64 = 0;
/// Grown when fuller than seven eighths: probes are still short, and a target costs at most eighteen bytes.
const FULL: (usize, usize) = (7, 8);

#[derive(Debug)]
pub(crate) struct Index {
    /// The hash above, the place plus one below. The length is a power of two, or 0 at the start.
    slots: Vec<u64>,
    len: usize,
    seed: u64,
}

impl Index {
    pub(crate) fn new() -> Self {
        // Ids come from peers: with a seed that nobody knows, nobody can choose ids that collide.
        Self { slots: Vec::new(), len: 0, seed: RandomState::new().hash_one(0_u8) }
    }

    #[inline]
    pub(crate) fn hash<K: Hash>(&self, id: &K) -> u32 {
        let mut hasher = Folded(self.seed);
        id.hash(&mut hasher);
        // The upper half depends on all bits of the product.
        (hasher.finish() >> 32) as u32
    }

    /// The place of the entry with this hash that `is` the one looked for.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is: impl Fn(usize) -> bool) -> Option<usize> {
        self.slot(hash, is).map(|(_, place)| place)
    }

    #[inline]
    fn slot(&self, hash: u32, is: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let entry = *self.slots.get(at)?;
            if entry == EMPTY {
                return None;
            }
            if hash_of(entry) == hash && is(place_of(entry)) {
                return Some((at, place_of(entry)));
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, place: usize) {
        if (self.len + 1) * FULL.1 > self.slots.len() * FULL.0 {
            let larger = vec![EMPTY; (self.slots.len() * 2).max(8)];
            for entry in std::mem::replace(&mut self.slots, larger) {
                if entry != EMPTY {
                    self.put(entry);
                }
            }
        }
        // Places are numbers of targets in memory: they fit.
        self.put(u64::from(hash) << 32 | (place as u64 + 1));
        self.len += 1;
    }

    fn put(&mut self, entry: u64) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash_of(entry) as usize & mask;
        while let Some(slot) = self.slots.get_mut(at) {
            if *slot == EMPTY {
                *slot = entry;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes out the entry with this hash and place.
    pub(crate) fn remove(&mut self, hash: u32, place: usize) {
        let Some((mut hole, _)) = self.slot(hash, |found| found == place) else { return };
        self.len -= 1;
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.slots.get(at).copied().unwrap_or(EMPTY);
            if entry == EMPTY {
                break;
            }
            // It may move into the hole if it belongs there or before it, going round.
            let belongs = hash_of(entry) as usize & mask;
            if at.wrapping_sub(belongs) & mask >= at.wrapping_sub(hole) & mask {
                self.set(hole, entry);
                hole = at;
            }
        }
        self.set(hole, EMPTY);
    }

    fn set(&mut self, at: usize, entry: u64) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = entry;
        }
    }
}

const fn hash_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

const fn place_of(entry: u64) -> usize {
    // The lower half alone, which is at least 1.
    (entry as u32 as usize).wrapping_sub(1)
}

/// Multiplies to 128 bits and folds the halves together, eight bytes at a step: a few nanoseconds for a name, where the
/// standard library's keyed hash takes about twenty.
struct Folded(u64);

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Folded {
    #[inline]
    fn step(&mut self, bits: u64) {
        let product = u128::from(self.0 ^ bits) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ (product >> 64) as u64 ^ self.0.rotate_left(23);
    }
}

impl Hasher for Folded {
    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * u128::from(MULTIPLIER);
        (product as u64) ^ (product >> 64) as u64
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64) << 56;
        // The last eight bytes are read whole, though they overlap those before: no loop over single bytes.
        if let Some(last) = bytes.last_chunk::<8>() {
            let (words, _) = bytes.as_chunks::<8>();
            for word in words {
                self.step(u64::from_le_bytes(*word));
            }
            self.step(u64::from_le_bytes(*last) ^ length);
        } else {
            let tail = bytes.iter().rev().fold(0, |tail, byte| tail << 8 | u64::from(*byte));
            // With the length, so that a name is not the same as one with a zero behind it.
            self.step(tail ^ length);
        }
    }

    #[inline]
    fn write_u8(&mut self, bits: u8) {
        self.step(u64::from(bits));
    }

    #[inline]
    fn write_u32(&mut self, bits: u32) {
        self.step(u64::from(bits));
    }

    #[inline]
    fn write_u64(&mut self, bits: u64) {
        self.step(bits);
    }

    #[inline]
    fn write_u128(&mut self, bits: u128) {
        self.step(bits as u64);
        self.step((bits >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, bits: usize) {
        self.step(bits as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Few hashes, so that most entries stand where others belong.
        #[test]
        fn it_finds_what_a_map_finds(steps in prop::collection::vec((0..24_usize, any::<bool>()), 0..300)) {
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            let hash = |id: usize| (id % 5) as u32 * 0x2000_0003;
            for (id, insert) in steps {
                if insert && !model.contains_key(&id) {
                    index.insert(hash(id), id);
                    model.insert(id, id);
                } else if !insert && model.remove(&id).is_some() {
                    index.remove(hash(id), id);
                }
                for id in 0..24 {
                    prop_assert_eq!(index.find(hash(id), |found| found == id), model.get(&id).copied());
                }
            }
        }
    }

    #[test]
    fn names_and_numbers_in_a_row_hardly_collide() {
        let index = Index::new();
        let mut hashes: Vec<u32> = (0..10_000).map(|n| index.hash(&format!("worker-{n}"))).collect();
        hashes.extend((0..10_000_u64).map(|n| index.hash(&n)));
        hashes.sort_unstable();
        let colliding = hashes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        // By chance 20,000^2 / 2^33, 0.05 of a pair.
        assert!(colliding <= 3, "{colliding}");
    }

    #[test]
    fn churn_does_not_make_it_grow() {
        let mut index = Index::new();
        for round in 0..100_000 {
            index.insert(round, 1);
            index.remove(round, 1);
        }
        assert_eq!((index.slots.len(), index.len), (8, 0));
    }
}
