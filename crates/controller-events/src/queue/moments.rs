//! Keys by moment. A pure structure: the time is passed in.
//!
//! Buckets by the highest bit group in which a moment differs from the present (Varghese and Lauck, "Hashed and
//! Hierarchical Timing Wheels", scheme 7, with six bits a level): adding is appending to a bucket, and nothing is ever
//! searched or taken out of the middle. What was cancelled is found to be stale when its turn comes, and swept out
//! when half of everything is stale. `runtime_core::timer::TimerWheel` links its entries instead, to take each out at
//! once: with a million timers that is three more cache misses a change, which here is most of the cost.
//!
//! Equal moments share a bucket on every level, in the order of their adding, and leave in it. (Kafka bumps colliding
//! deadlines by a nanosecond each, so that n of them cost n² steps and run late.)

use super::kept::Key;
use runtime_core::Tick;
use std::collections::{BTreeSet, VecDeque};

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Eleven times six bits are all of a moment.
const LEVELS: usize = 11;
/// Fewer stale keys are not worth a sweep.
const SWEEP_ABOVE: usize = 64;
/// A bucket that once held more gives its memory back.
const KEPT_ITEMS: usize = 1024;

#[derive(Clone, Copy)]
struct Item {
    at: u64,
    key: Key,
}

#[derive(Default)]
struct Bucket {
    items: VecDeque<Item>,
    /// No item lies before it.
    earliest: u64,
}

#[derive(Default)]
pub(super) struct Moments {
    /// Empty until the first key comes.
    buckets: Vec<Bucket>,
    occupied: [u64; LEVELS],
    /// Everything before this has left, apart from `overdue`.
    elapsed: u64,
    /// Keys that were added for a moment before `elapsed`.
    overdue: BTreeSet<(u64, Key)>,
    items: usize,
    stale: usize,
}

impl Moments {
    pub(super) const fn live(&self) -> usize {
        self.items - self.stale
    }

    pub(super) fn insert(&mut self, at: Tick, key: Key) {
        let at = at.as_nanos();
        self.items += 1;
        if at < self.elapsed {
            self.overdue.insert((at, key));
        } else {
            self.append(Item { at, key });
        }
    }

    /// A key has become stale. Sweeps when that is due.
    pub(super) fn forget(&mut self, is_live: impl Fn(Key) -> bool) {
        self.stale += 1;
        if self.stale == self.items {
            self.clear();
        } else if self.stale > SWEEP_ABOVE && self.stale * 2 > self.items {
            self.sweep(is_live);
        }
    }

    pub(super) fn clear(&mut self) {
        let in_use = |level: usize, bits: u64| {
            (0..SLOTS).filter(move |s| bits >> s & 1 == 1).map(move |s| level * SLOTS + s)
        };
        for index in self.occupied.into_iter().enumerate().flat_map(|(level, bits)| in_use(level, bits)) {
            if let Some(bucket) = self.buckets.get_mut(index) {
                bucket.items.clear();
                bucket.items.shrink_to(KEPT_ITEMS);
            }
        }
        self.overdue.clear();
        (self.occupied, self.items, self.stale) = ([0; LEVELS], 0, 0);
    }

    /// Takes out the first key that is due: by moment, equal ones in the order of their adding.
    pub(super) fn pop_due(&mut self, now: Tick, is_live: impl Fn(Key) -> bool) -> Option<Key> {
        let now = now.as_nanos();
        while let Some((_, key)) = self.overdue.pop_first() {
            if let Some(key) = self.took(key, &is_live) {
                return Some(key);
            }
        }
        while let Some((level, slot)) = self.first() {
            let begins = begin(level, slot, self.elapsed);
            if begins > now {
                break;
            }
            self.elapsed = self.elapsed.max(begins);
            if level > 0 {
                self.move_down(level, slot, &is_live);
                continue;
            }
            let Some(bucket) = self.buckets.get_mut(slot) else { break };
            let item = bucket.items.pop_front();
            if bucket.items.is_empty() {
                self.vacate(level, slot);
            }
            if let Some(item) = item
                && let Some(key) = self.took(item.key, &is_live)
            {
                return Some(key);
            }
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    /// A moment before which nothing is due; the earliest one itself if nothing was cancelled.
    pub(super) fn next_wakeup(&self) -> Option<Tick> {
        if let Some((at, _)) = self.overdue.first() {
            return Some(Tick::from_nanos(*at));
        }
        let (level, slot) = self.first()?;
        self.bucket(level, slot).map(|bucket| Tick::from_nanos(bucket.earliest))
    }

    /// The earliest moment. Looks at everything in a bucket, so not for every turn.
    pub(super) fn earliest(&self, is_live: impl Fn(Key) -> bool) -> Option<Tick> {
        let overdue = self.overdue.iter().find(|(_, key)| is_live(*key)).map(|(at, _)| *at);
        let positions = (0..LEVELS).flat_map(|level| (0..SLOTS).map(move |slot| (level, slot)));
        // The lowest level holds the earliest moments, and on it the lowest slot.
        let in_bucket = |(level, slot): (usize, usize)| {
            let items = self.bucket(level, slot)?.items.iter();
            items.filter(|item| is_live(item.key)).map(|item| item.at).min()
        };
        overdue
            .or_else(|| positions.filter(|(level, _)| self.any(*level)).find_map(in_bucket))
            .map(Tick::from_nanos)
    }

    fn took(&mut self, key: Key, is_live: impl Fn(Key) -> bool) -> Option<Key> {
        self.items -= 1;
        if !is_live(key) {
            self.stale -= 1;
            return None;
        }
        if self.items == self.stale {
            self.clear();
        }
        Some(key)
    }

    fn append(&mut self, item: Item) {
        if self.buckets.is_empty() {
            self.buckets.resize_with(LEVELS * SLOTS, Bucket::default);
        }
        // Level 0 for equal ones too: the lowest six bits alone never tell levels apart.
        let level = ((63 - ((item.at ^ self.elapsed) | 63).leading_zeros()) / BITS) as usize;
        let slot = (item.at >> (level as u32 * BITS)) as usize & (SLOTS - 1);
        let Some(bucket) = self.buckets.get_mut(level * SLOTS + slot) else { return };
        bucket.earliest = if bucket.items.is_empty() { item.at } else { bucket.earliest.min(item.at) };
        bucket.items.push_back(item);
        if let Some(bits) = self.occupied.get_mut(level) {
            *bits |= 1 << slot;
        }
    }

    /// Empties a slot that the present has entered into the levels below it, keeping the order.
    fn move_down(&mut self, level: usize, slot: usize, is_live: impl Fn(Key) -> bool) {
        let items = self.vacate(level, slot);
        for item in items {
            if is_live(item.key) {
                self.append(item);
            } else {
                self.items -= 1;
                self.stale -= 1;
            }
        }
    }

    fn sweep(&mut self, is_live: impl Fn(Key) -> bool) {
        self.overdue.retain(|(_, key)| is_live(*key));
        let mut left = self.overdue.len();
        for (index, bucket) in self.buckets.iter_mut().enumerate().filter(|(_, b)| !b.items.is_empty()) {
            bucket.items.retain(|item| is_live(item.key));
            bucket.earliest = bucket.items.iter().map(|item| item.at).min().unwrap_or_default();
            left += bucket.items.len();
            if bucket.items.is_empty()
                && let Some(bits) = self.occupied.get_mut(index / SLOTS)
            {
                *bits &= !(1 << (index % SLOTS));
            }
        }
        (self.items, self.stale) = (left, 0);
    }

    /// The slot with the earliest keys.
    fn first(&self) -> Option<(usize, usize)> {
        let (level, bits) = self.occupied.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        Some((level, bits.trailing_zeros() as usize))
    }

    fn any(&self, level: usize) -> bool {
        self.occupied.get(level).is_some_and(|bits| *bits != 0)
    }

    fn bucket(&self, level: usize, slot: usize) -> Option<&Bucket> {
        self.buckets.get(level * SLOTS + slot)
    }

    /// Marks a slot as empty and takes what is in it.
    fn vacate(&mut self, level: usize, slot: usize) -> VecDeque<Item> {
        if let Some(bits) = self.occupied.get_mut(level) {
            *bits &= !(1 << slot);
        }
        let Some(bucket) = self.buckets.get_mut(level * SLOTS + slot) else { return VecDeque::new() };
        if bucket.items.is_empty() && bucket.items.capacity() <= KEPT_ITEMS {
            return VecDeque::new();
        }
        std::mem::take(&mut bucket.items)
    }
}

/// The first moment of a slot that lies ahead of `elapsed`.
fn begin(level: usize, slot: usize, elapsed: u64) -> u64 {
    let shift = level as u32 * BITS;
    let above = elapsed.checked_shr(shift + BITS).and_then(|high| high.checked_shl(shift + BITS));
    above.unwrap_or(0) | ((slot as u64) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Forget(usize),
        Pop(u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let moment =
            || prop_oneof![0..200_u64, 0..1_000_000_000_000_u64, Just(u64::MAX), (u64::MAX - 200)..u64::MAX];
        let op = prop_oneof![
            6 => moment().prop_map(Op::Insert),
            3 => (0..1_000_usize).prop_map(Op::Forget),
            4 => prop_oneof![0..300_u64, moment()].prop_map(Op::Pop),
        ];
        proptest::collection::vec(op, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn keys_leave_by_moment_and_then_by_age_as_from_a_sorted_list(ops in ops()) {
            let mut moments = Moments::default();
            let mut model: BTreeSet<(u64, Key)> = BTreeSet::new();
            let mut live = HashSet::new();
            let (mut serial, mut present) = (0, 0_u64);
            for op in ops {
                match op {
                    Op::Insert(at) => {
                        serial += 1;
                        let key = Key { serial, index: 0 };
                        live.insert(serial);
                        model.insert((at, key));
                        moments.insert(Tick::from_nanos(at), key);
                    }
                    Op::Forget(n) => {
                        let Some(gone) = model.iter().nth(n).copied() else { continue };
                        model.remove(&gone);
                        live.remove(&gone.1.serial);
                        moments.forget(|key| live.contains(&key.serial));
                    }
                    Op::Pop(by) => {
                        present = present.max(by);
                        let due = model.first().copied().filter(|(at, _)| *at <= present);
                        if let Some(due) = due {
                            model.remove(&due);
                        }
                        let is_live = |key: Key| live.contains(&key.serial);
                        let popped = moments.pop_due(Tick::from_nanos(present), is_live);
                        prop_assert_eq!(popped, due.map(|(_, key)| key));
                    }
                }
                prop_assert_eq!(moments.live(), model.len());
                let earliest = model.first().map(|(at, _)| Tick::from_nanos(*at));
                prop_assert_eq!(moments.earliest(|key| live.contains(&key.serial)), earliest);
                prop_assert_eq!(moments.next_wakeup().is_none(), earliest.is_none());
                prop_assert!(moments.next_wakeup() <= earliest);
            }
        }
    }

    #[test]
    fn changing_one_moment_again_and_again_does_not_grow() {
        let mut moments = Moments::default();
        for serial in 1..=100_000 {
            moments.insert(Tick::from_nanos(1_000_000 + serial), Key { serial, index: 0 });
            if serial > 1 {
                moments.forget(|key| key.serial == serial);
            }
        }
        assert_eq!(moments.live(), 1);
        assert!(moments.items <= 2 * SWEEP_ABOVE, "{}", moments.items);
    }
}
