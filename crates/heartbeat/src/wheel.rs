//! One timer for each target, at sixteen bytes.
//!
//! The wheel of `runtime_core` serves any number of timers with any values, and a timer costs it about 64 bytes. Here each
//! target has exactly one, named by the target's place, so that an entry is a deadline and two links. It is hashed and
//! hierarchical like that one (Varghese and Lauck, scheme 7), with slots of a millisecond on the lowest level.
//!
//! **What holds**
//! - Nothing fires early: a deadline is rounded up to the millisecond, the present down.
//! - A timer lies at the level of the highest group of six bits in which its deadline differs from the present, so its slot
//!   follows from the two and is stored nowhere.
//! - Timers of one millisecond fire in the order in which they were armed.
//! - To disarm takes the entry out at once: churn leaves nothing behind.

use runtime_core::Tick;

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// 48 bits of milliseconds: more than a `Tick` can say.
const LEVELS: usize = 8;
const NIL: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    /// Milliseconds, or `UNARMED`.
    at: u64,
    prev: u32,
    next: u32,
}

const FREE: Link = Link { at: UNARMED, prev: NIL, next: NIL };

#[derive(Debug, Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
    /// No timer of the slot is earlier; after one was disarmed it may be too early.
    earliest: u64,
}

const EMPTY: Slot = Slot { head: NIL, tail: NIL, earliest: u64::MAX };

/// The timers of all targets, by place.
#[derive(Debug)]
pub(crate) struct Wheel {
    links: Vec<Link>,
    slots: Box<[Slot]>,
    /// A bit for each slot that has timers.
    occupied: [u64; LEVELS],
    /// The present in milliseconds.
    elapsed: u64,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        let slots = vec![EMPTY; LEVELS * SLOTS].into_boxed_slice();
        Self { links: Vec::new(), slots, occupied: [0; LEVELS], elapsed: 0 }
    }

    /// Makes room for the place.
    pub(crate) fn reach(&mut self, place: usize) {
        if self.links.len() <= place {
            crate::slab::grow(&mut self.links);
            self.links.resize(place + 1, FREE);
        }
    }

    /// Arms the timer of this place, which has room; it had none, or that one moves.
    pub(crate) fn arm(&mut self, place: usize, at: Tick) {
        self.disarm(place);
        self.link(place as u32, up(at).max(self.elapsed));
    }

    pub(crate) fn disarm(&mut self, place: usize) {
        let Some(link) = self.links.get_mut(place).filter(|link| link.at != UNARMED) else { return };
        let Link { at, prev, next } = std::mem::replace(link, FREE);
        let position = position(at, self.elapsed);
        match self.links.get_mut(prev as usize) {
            Some(before) => before.next = next,
            None => self.set_head(position, next),
        }
        match self.links.get_mut(next as usize) {
            Some(after) => after.prev = prev,
            None if prev != NIL => {
                if let Some(slot) = self.slots.get_mut(position) {
                    slot.tail = prev;
                }
            }
            None => {}
        }
    }

    /// Moves the present to `now` and takes out one timer that is due, the first.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<usize> {
        let now = now.as_millis();
        while let Some((level, slot)) = self.first() {
            let begins = begin(level, slot, self.elapsed);
            if begins > now {
                break;
            }
            let position = level * SLOTS + slot;
            if level == 0 {
                self.elapsed = self.elapsed.max(begins);
                let head = self.slots.get(position)?.head as usize;
                self.disarm(head);
                return Some(head);
            }
            // Its timers move down. They leave by the slot that they were in before the present enters it.
            let mut place = self.clear(position);
            self.elapsed = self.elapsed.max(begins);
            while let Some(Link { at, next, .. }) = self.links.get(place as usize).copied() {
                self.link(place, at);
                place = next;
            }
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    /// Never after the earliest deadline, and at it, to the millisecond above, if none was disarmed.
    pub(crate) fn next_wakeup(&self) -> Option<Tick> {
        let (level, slot) = self.first()?;
        let earliest = self.slots.get(level * SLOTS + slot)?.earliest;
        Some(Tick::from_millis(earliest.max(self.elapsed)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    fn first(&self) -> Option<(usize, usize)> {
        let (level, bits) = self.occupied.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        Some((level, bits.trailing_zeros() as usize))
    }

    fn link(&mut self, place: u32, at: u64) {
        let position = position(at, self.elapsed);
        let Some(slot) = self.slots.get_mut(position) else { return };
        let prev = std::mem::replace(&mut slot.tail, place);
        slot.earliest = slot.earliest.min(at);
        if prev == NIL {
            slot.head = place;
        }
        if let Some(bits) = self.occupied.get_mut(position / SLOTS) {
            *bits |= 1 << (position % SLOTS);
        }
        if let Some(before) = self.links.get_mut(prev as usize) {
            before.next = place;
        }
        if let Some(link) = self.links.get_mut(place as usize) {
            *link = Link { at, prev, next: NIL };
        }
    }

    fn set_head(&mut self, position: usize, head: u32) {
        if head == NIL {
            self.clear(position);
        } else if let Some(slot) = self.slots.get_mut(position) {
            slot.head = head;
        }
    }

    fn clear(&mut self, position: usize) -> u32 {
        if let Some(bits) = self.occupied.get_mut(position / SLOTS) {
            *bits &= !(1 << (position % SLOTS));
        }
        self.slots.get_mut(position).map_or(NIL, |slot| std::mem::replace(slot, EMPTY).head)
    }
}

/// The slot of a deadline that is not before the present.
fn position(at: u64, elapsed: u64) -> usize {
    // Level 0 also for equal ones: the lowest six bits alone never tell levels apart.
    let highest = 63 - ((at ^ elapsed) | (SLOTS as u64 - 1)).leading_zeros();
    let level = (highest / SLOT_BITS) as usize;
    level * SLOTS + ((at >> (level as u32 * SLOT_BITS)) as usize & (SLOTS - 1))
}

/// The first millisecond of a slot that lies ahead.
fn begin(level: usize, slot: usize, elapsed: u64) -> u64 {
    let shift = level as u32 * SLOT_BITS;
    (elapsed >> (shift + SLOT_BITS) << (shift + SLOT_BITS)) | (slot as u64) << shift
}

fn up(at: Tick) -> u64 {
    // The last millisecond of all is not whole; what is due in it has to fire in it.
    at.as_nanos().div_ceil(1_000_000).min(Tick::MAX.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn step() -> impl Strategy<Value = (usize, u64, u64)> {
        let far = prop_oneof![0..70_u64, 0..5_000_u64, 0..300_000_u64, 0..u64::MAX / 2_000_000];
        (0..12_usize, far, prop_oneof![0..3_u64, 0..100_u64, 0..400_000_u64])
    }

    proptest! {
        #[test]
        fn it_fires_what_a_sorted_list_fires(steps in prop::collection::vec((step(), 0..4_u8), 0..200)) {
            let mut wheel = Wheel::new();
            wheel.reach(11);
            let mut model: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
            let (mut now, mut order) = (0_u64, 0);
            for ((place, ahead, pass), what) in steps {
                if what == 0 {
                    wheel.disarm(place);
                    model.remove(&place);
                } else {
                    order += 1;
                    wheel.arm(place, Tick::from_millis(now + ahead));
                    model.insert(place, (now + ahead, order));
                }
                let earliest = model.values().map(|(at, _)| *at).min();
                prop_assert!(wheel.next_wakeup().map(Tick::as_millis) <= earliest, "{:?} {:?}", wheel.next_wakeup(), earliest);
                prop_assert_eq!(wheel.next_wakeup().is_some(), earliest.is_some());
                now += pass;
                let mut due: Vec<(u64, usize, usize)> =
                    model.iter().filter(|(_, (at, _))| *at <= now).map(|(p, (at, o))| (*at, *o, *p)).collect();
                due.sort_unstable();
                for (_, _, place) in due {
                    prop_assert_eq!(wheel.pop_due(Tick::from_millis(now)), Some(place));
                    model.remove(&place);
                }
                prop_assert_eq!(wheel.pop_due(Tick::from_millis(now)), None);
            }
        }
    }

    #[test]
    fn nothing_fires_early_by_a_nanosecond() {
        let mut wheel = Wheel::new();
        wheel.reach(0);
        let at = Tick::from_millis(10) + Duration::from_nanos(1);
        wheel.arm(0, at);
        assert_eq!(wheel.pop_due(Tick::from_millis(10)), None);
        assert!(wheel.next_wakeup().is_some_and(|wakeup| wakeup >= at));
        assert_eq!(wheel.pop_due(Tick::from_millis(11)), Some(0));
    }

    #[test]
    fn an_entry_is_sixteen_bytes() {
        assert_eq!(size_of::<Link>(), 16);
    }
}
