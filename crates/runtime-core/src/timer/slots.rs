//! The slots of the wheel: where a deadline belongs, and the ends of each slot's list of entries.

use super::NIL;

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Six bits a level: eleven levels hold all 64 bits of a deadline.
const LEVELS: usize = 11;

/// One slot of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) level: u8,
    pub(super) slot: u8,
}

impl Position {
    /// Where a deadline belongs that is not before `elapsed`.
    pub(super) fn of(at: u64, elapsed: u64) -> Self {
        // Level 0 also for equal ones: the lowest six bits alone never tell levels apart.
        let highest_difference = 63 - ((at ^ elapsed) | 63).leading_zeros();
        let level = highest_difference / SLOT_BITS;
        let slot = (at >> (level * SLOT_BITS)) & 63;
        // Both fit: at most 10 and 63.
        Self { level: level as u8, slot: slot as u8 }
    }

    fn index(self) -> usize {
        usize::from(self.level) * SLOTS + usize::from(self.slot)
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    head: usize,
    tail: usize,
    /// No entry of the slot is earlier. Cancelling leaves it as it is, because to find the next one costs a walk.
    earliest: u64,
}

const EMPTY: Slot = Slot { head: NIL, tail: NIL, earliest: u64::MAX };

/// All slots, with a bit for each that has entries.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    occupied: [u64; LEVELS],
}

impl Slots {
    pub(super) fn new() -> Self {
        Self { slots: vec![EMPTY; LEVELS * SLOTS].into_boxed_slice(), occupied: [0; LEVELS] }
    }

    /// The slot with the earliest entries.
    pub(super) fn first(&self) -> Option<Position> {
        let (level, bits) = self.occupied.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        // Both fit: at most 10 and 63.
        Some(Position { level: level as u8, slot: bits.trailing_zeros() as u8 })
    }

    /// The first moment of a slot that lies ahead of `elapsed`.
    pub(super) fn begin(&self, position: Position, elapsed: u64) -> u64 {
        let shift = u32::from(position.level) * SLOT_BITS;
        let above =
            elapsed.checked_shr(shift + SLOT_BITS).and_then(|high| high.checked_shl(shift + SLOT_BITS));
        above.unwrap_or(0) | (u64::from(position.slot) << shift)
    }

    pub(super) fn head(&self, position: Position) -> usize {
        self.slots.get(position.index()).map_or(NIL, |slot| slot.head)
    }

    /// A moment that no entry of the slot lies before.
    pub(super) fn earliest(&self, position: Position) -> u64 {
        self.slots.get(position.index()).map_or(u64::MAX, |slot| slot.earliest)
    }

    /// Makes `entry` the last of the slot and says which one was the last before it.
    pub(super) fn append(&mut self, position: Position, entry: usize, at: u64) -> usize {
        let Some(slot) = self.slots.get_mut(position.index()) else { return NIL };
        let before = std::mem::replace(&mut slot.tail, entry);
        if before == NIL {
            slot.head = entry;
        }
        slot.earliest = slot.earliest.min(at);
        self.mark(position, true);
        before
    }

    pub(super) fn set_head(&mut self, position: Position, entry: usize) {
        if entry == NIL {
            self.clear(position);
        } else if let Some(slot) = self.slots.get_mut(position.index()) {
            slot.head = entry;
        }
    }

    pub(super) fn set_tail(&mut self, position: Position, entry: usize) {
        if let Some(slot) = self.slots.get_mut(position.index()) {
            slot.tail = entry;
        }
    }

    /// Forgets the entries of a slot and names the first of them, from which their links lead on.
    pub(super) fn clear(&mut self, position: Position) -> usize {
        self.mark(position, false);
        self.slots.get_mut(position.index()).map_or(NIL, |slot| std::mem::replace(slot, EMPTY).head)
    }

    fn mark(&mut self, position: Position, occupied: bool) {
        let Some(bits) = self.occupied.get_mut(usize::from(position.level)) else { return };
        let bit = 1_u64 << position.slot;
        *bits = if occupied { *bits | bit } else { *bits & !bit };
    }
}
