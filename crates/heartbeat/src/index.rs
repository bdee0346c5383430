//! Finds a target's place by its id.
//!
//! A map from the standard library would hold every id a second time, beside the one that stands with its target. This one
//! holds eight bytes a target: the place, and 32 bits of the id's hash, which also say where in the table the entry
//! belongs, so that neither growing nor removing has to look at an id.
//!
//! Eight entries fill a cache line. A look-up compares all hashes of a line at once, without a branch that could be
//! guessed wrong: at a hundred thousand targets each line is a cache miss, and a wrong guess would keep the processor from
//! waiting for the next one meanwhile. What finds its line full goes to the next. A removal moves such entries back (Knuth,
//! TAOCP 3, 6.4, algorithm R, with lines for places), so that churn leaves nothing behind.
//!
//! It is never walked, so that its seed, which is another in each process, has no effect that can be seen.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

/// The hash of an entry that is free.
const FREE: u32 = 0;
const LINE: usize = 8;
/// Grown when fuller than seven eighths: most entries are still in the line where they belong, and a target costs at most
/// eighteen bytes.
const FULL: (usize, usize) = (7, 8);

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    hashes: [u32; LINE],
    places: [u32; LINE],
}

impl Line {
    const EMPTY: Self = Self { hashes: [FREE; LINE], places: [0; LINE] };

    /// A bit for each entry that has this hash.
    #[inline]
    fn with(&self, hash: u32) -> u32 {
        let bits = self.hashes.iter().zip([1_u32, 2, 4, 8, 16, 32, 64, 128]);
        bits.fold(0, |found, (entry, bit)| found | if *entry == hash { bit } else { 0 })
    }

    #[inline]
    fn place(&self, at: u32) -> usize {
        self.places.get(at as usize & (LINE - 1)).map_or(0, |place| *place as usize)
    }

    fn set(&mut self, at: u32, (hash, place): (u32, u32)) {
        let at = at as usize & (LINE - 1);
        if let (Some(into), Some(of)) = (self.hashes.get_mut(at), self.places.get_mut(at)) {
            (*into, *of) = (hash, place);
        }
    }

    /// Puts an entry where one is free.
    fn put(&mut self, entry: (u32, u32)) -> bool {
        let free = self.with(FREE);
        if free != 0 {
            self.set(free.trailing_zeros(), entry);
        }
        free != 0
    }

    fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        self.hashes.into_iter().zip(self.places).filter(|(hash, _)| *hash != FREE)
    }
}

#[derive(Debug)]
pub(crate) struct Index {
    /// Their number is a power of two, or 0 at the start.
    lines: Vec<Line>,
    len: usize,
    seed: u64,
}

impl Index {
    pub(crate) fn new() -> Self {
        // Ids come from peers: with a seed that nobody knows, nobody can choose ids that collide.
        Self { lines: Vec::new(), len: 0, seed: RandomState::new().hash_one(0_u8) }
    }

    #[inline]
    pub(crate) fn hash<K: Hash>(&self, id: &K) -> u32 {
        let mut hasher = Folded(self.seed);
        id.hash(&mut hasher);
        // The upper half depends on all bits of the product.
        ((hasher.finish() >> 32) as u32).max(FREE + 1)
    }

    /// The place of the entry with this hash that `is` the one looked for.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is: impl Fn(usize) -> bool) -> Option<usize> {
        self.entry(hash, is).map(|(_, _, place)| place)
    }

    /// The number of its line, its number in the line, and its place.
    #[inline]
    fn entry(&self, hash: u32, is: impl Fn(usize) -> bool) -> Option<(usize, u32, usize)> {
        let mask = self.lines.len().wrapping_sub(1);
        let mut number = hash as usize & mask;
        // No more lines than there are, though one that is not full always comes before.
        for _ in 0..self.lines.len() {
            let line = self.lines.get(number)?;
            let mut found = line.with(hash);
            while found != 0 {
                let at = found.trailing_zeros();
                let place = line.place(at);
                if is(place) {
                    return Some((number, at, place));
                }
                found &= found - 1;
            }
            if line.with(FREE) != 0 {
                return None;
            }
            number = (number + 1) & mask;
        }
        None
    }

    /// Adds an entry that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, place: usize) {
        if (self.len + 1) * FULL.1 > self.lines.len() * LINE * FULL.0 {
            let larger = vec![Line::EMPTY; (self.lines.len() * 2).max(1)];
            for line in std::mem::replace(&mut self.lines, larger) {
                line.entries().for_each(|entry| self.put(entry));
            }
        }
        // Places are numbers of targets in memory: they fit.
        self.put((hash, place as u32));
        self.len += 1;
    }

    fn put(&mut self, entry: (u32, u32)) {
        let mask = self.lines.len().wrapping_sub(1);
        let mut number = entry.0 as usize & mask;
        while let Some(line) = self.lines.get_mut(number) {
            if line.put(entry) {
                return;
            }
            number = (number + 1) & mask;
        }
    }

    /// Takes out the entry with this hash and place.
    pub(crate) fn remove(&mut self, hash: u32, place: usize) {
        let Some((mut hole, mut at, _)) = self.entry(hash, |found| found == place) else { return };
        self.len -= 1;
        let mask = self.lines.len().wrapping_sub(1);
        let mut number = hole;
        loop {
            let was_full = self.lines.get(number).is_some_and(|line| line.with(FREE) == 0);
            if number == hole {
                self.set(hole, at, (FREE, 0));
            }
            number = (number + 1) & mask;
            // Nothing has gone past a line that was not full, nor once round.
            if !was_full || number == hole {
                return;
            }
            let Some(line) = self.lines.get(number) else { return };
            // It may move into the hole if it belongs there or before it, going round.
            let crosses = |entry: &(u32, u32)| {
                let belongs = entry.0 as usize & mask;
                number.wrapping_sub(belongs) & mask >= number.wrapping_sub(hole) & mask
            };
            let moved = line.hashes.into_iter().zip(line.places).enumerate();
            let moved = moved.filter(|(_, entry)| entry.0 != FREE).find(|(_, entry)| crosses(entry));
            if let Some((from, entry)) = moved {
                self.set(hole, at, entry);
                (hole, at) = (number, from as u32);
            }
        }
    }

    fn set(&mut self, number: usize, at: u32, entry: (u32, u32)) {
        if let Some(line) = self.lines.get_mut(number) {
            line.set(at, entry);
        }
    }
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

    /// Enough for some lines.
    const IDS: usize = 48;

    proptest! {
        /// Few hashes, so that most entries stand where others belong.
        #[test]
        fn it_finds_what_a_map_finds(steps in prop::collection::vec((0..IDS, any::<bool>()), 0..300)) {
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            let hash = |id: usize| (id % 5 + 1) as u32 * 0x2000_0003;
            for (id, insert) in steps {
                if insert && !model.contains_key(&id) {
                    index.insert(hash(id), id);
                    model.insert(id, id);
                } else if !insert && model.remove(&id).is_some() {
                    index.remove(hash(id), id);
                }
                for id in 0..IDS {
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
        for round in 1..100_000 {
            index.insert(round, 1);
            index.remove(round, 1);
        }
        assert_eq!((index.lines.len(), index.len), (1, 0));
    }
}
