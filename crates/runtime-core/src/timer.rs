//! A hierarchical timer wheel without I/O.
//!
//! Insert and cancel are O(1) whatever the number of timers, which a heap or a tree cannot offer; and cancelling takes
//! the entry out at once, so that churn leaves nothing behind. The wheel owns no clock and no task: its caller asks
//! [`TimerWheel::next_wakeup`], waits on a clock of its own, and calls [`TimerWheel::advance`].
//!
//! **How it is built** (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", scheme 7). Eleven levels of 64
//! slots; a slot of level 0 is one nanosecond, a slot of each higher level is 64 times as long, so that the eleven
//! cover all of [`Tick`]. A timer lies at the level of the highest bit in which its deadline differs from the present.
//! When the present enters a slot of a higher level, its timers move down.
//!
//! **What holds**
//! - The lowest occupied level holds the earliest deadlines, and on it the slot of the lowest number.
//! - Timers of one deadline are always in one slot, in the order of their insertion: that is the order they fire in.
//! - Nothing fires early: a deadline is due when `at <= now`, to the nanosecond.
//! - The wake-up never lies after the earliest deadline. It may lie before it once a timer was cancelled; then an
//!   `advance` fires nothing and the next wake-up is a better one.

mod slots;
#[cfg(test)]
mod tests;

use crate::time::Tick;
use slots::{Position, Slots};

/// Stands for "no entry" in the links between entries.
const NIL: usize = usize::MAX;

/// Names one timer of one wheel. It is good for one firing or one cancelling: afterwards it names nothing, also when
/// the place of its entry has been taken by another timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: usize,
    generation: u32,
}

#[derive(Debug)]
struct Entry<T> {
    /// Empty while the entry is on the free list.
    value: Option<T>,
    at: u64,
    prev: usize,
    /// The next entry of the slot, or of the free list.
    next: usize,
    position: Position,
    generation: u32,
}

/// Timers by deadline, each with a value that is handed back when it fires.
///
/// ```
/// use runtime_core::timer::TimerWheel;
/// use runtime_core::Tick;
///
/// let mut wheel = TimerWheel::new();
/// let retry = wheel.insert(Tick::from_millis(20), "retry");
/// wheel.insert(Tick::from_millis(10), "timeout");
/// assert_eq!(wheel.next_wakeup(), Some(Tick::from_millis(10)));
///
/// let mut fired = Vec::new();
/// wheel.advance(Tick::from_millis(10), |what| fired.push(what));
/// assert_eq!(fired, ["timeout"]);
/// assert_eq!(wheel.cancel(retry), Some("retry"));
/// assert_eq!(wheel.next_wakeup(), None);
/// ```
#[derive(Debug)]
pub struct TimerWheel<T> {
    entries: Vec<Entry<T>>,
    free: usize,
    len: usize,
    /// The present as far as the wheel knows it.
    elapsed: u64,
    slots: Slots,
}

impl<T> Default for TimerWheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TimerWheel<T> {
    /// An empty wheel whose present is [`Tick::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self { entries: Vec::new(), free: NIL, len: 0, elapsed: 0, slots: Slots::new() }
    }

    /// How many timers wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a timer. A deadline that has passed counts as the present: it fires at the next [`advance`](Self::advance),
    /// in the order of insertion among its like. [`Tick::MAX`] is a deadline as any other.
    pub fn insert(&mut self, at: Tick, value: T) -> TimerKey {
        let at = at.as_nanos().max(self.elapsed);
        let index = self.take_free(at, value);
        self.len += 1;
        self.link(index, at);
        TimerKey { index, generation: self.entries.get(index).map_or(0, |entry| entry.generation) }
    }

    /// Removes a timer and hands its value back; `None` if it has fired or was cancelled.
    ///
    /// ```
    /// # use runtime_core::{timer::TimerWheel, Tick};
    /// let mut wheel = TimerWheel::new();
    /// let key = wheel.insert(Tick::from_millis(1), 'a');
    /// assert_eq!(wheel.cancel(key), Some('a'));
    /// wheel.insert(Tick::from_millis(1), 'b');
    /// assert_eq!(wheel.cancel(key), None, "the key of one timer never reaches another");
    /// ```
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        self.entry(key)?;
        self.unlink(key.index);
        self.release(key.index)
    }

    /// The value of a timer that waits.
    #[must_use]
    pub fn get(&self, key: TimerKey) -> Option<&T> {
        self.entry(key)?.value.as_ref()
    }

    /// The deadline of a timer that waits.
    #[must_use]
    pub fn deadline(&self, key: TimerKey) -> Option<Tick> {
        self.entry(key).map(|entry| Tick::from_nanos(entry.at))
    }

    /// Moves the present to `now` and fires every timer whose deadline is `now` or earlier: by deadline, equal ones in
    /// the order of insertion. A `now` before the present changes nothing but still fires what is due by then.
    pub fn advance(&mut self, now: Tick, mut fire: impl FnMut(T)) {
        while let Some(value) = self.pop_due(now) {
            fire(value);
        }
    }

    /// Fires one timer: the first that [`advance`](Self::advance) would fire. For a caller that inserts while it
    /// fires; what it inserts at or before `now` is due in the same round.
    ///
    /// ```
    /// # use runtime_core::{timer::TimerWheel, Tick};
    /// # use std::time::Duration;
    /// let mut wheel = TimerWheel::new();
    /// wheel.insert(Tick::from_millis(5), 3);
    /// let now = Tick::from_millis(7);
    /// while let Some(left) = wheel.pop_due(now) {
    ///     if left > 0 {
    ///         wheel.insert(now + Duration::from_millis(5), left - 1);
    ///     }
    /// }
    /// assert_eq!(wheel.next_wakeup(), Some(Tick::from_millis(12)));
    /// ```
    pub fn pop_due(&mut self, now: Tick) -> Option<T> {
        let now = now.as_nanos();
        while let Some(first) = self.slots.first() {
            let begins = self.slots.begin(first, self.elapsed);
            if begins > now {
                break;
            }
            self.elapsed = self.elapsed.max(begins);
            if first.level == 0 {
                let index = self.slots.head(first);
                self.unlink(index);
                return self.release(index);
            }
            self.move_down(first);
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    /// When to call [`advance`](Self::advance) next: never after the earliest deadline, and at it if no timer was
    /// cancelled. `None` without timers.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        self.slots.first().map(|first| Tick::from_nanos(self.slots.earliest(first).max(self.elapsed)))
    }

    fn entry(&self, key: TimerKey) -> Option<&Entry<T>> {
        self.entries.get(key.index).filter(|e| e.generation == key.generation && e.value.is_some())
    }

    fn take_free(&mut self, at: u64, value: T) -> usize {
        let index = self.free;
        if let Some(entry) = self.entries.get_mut(index) {
            self.free = entry.next;
            entry.value = Some(value);
            entry.at = at;
            return index;
        }
        let position = Position { level: 0, slot: 0 };
        self.entries.push(Entry { value: Some(value), at, prev: NIL, next: NIL, position, generation: 0 });
        self.entries.len() - 1
    }

    /// Gives an unlinked entry's place back. From here on its key names nothing.
    fn release(&mut self, index: usize) -> Option<T> {
        let entry = self.entries.get_mut(index)?;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free;
        self.free = index;
        self.len -= 1;
        entry.value.take()
    }

    /// Appends an entry to the slot of its deadline.
    fn link(&mut self, index: usize, at: u64) {
        let position = Position::of(at, self.elapsed);
        let before = self.slots.append(position, index, at);
        if let Some(entry) = self.entries.get_mut(index) {
            entry.position = position;
            entry.prev = before;
            entry.next = NIL;
        }
        if let Some(entry) = self.entries.get_mut(before) {
            entry.next = index;
        }
    }

    fn unlink(&mut self, index: usize) {
        let Some(entry) = self.entries.get(index) else { return };
        let (prev, next, position) = (entry.prev, entry.next, entry.position);
        match self.entries.get_mut(prev) {
            Some(before) => before.next = next,
            None => self.slots.set_head(position, next),
        }
        match self.entries.get_mut(next) {
            Some(after) => after.prev = prev,
            None => self.slots.set_tail(position, prev),
        }
    }

    /// Empties a slot that the present has entered into the levels below it, keeping the order.
    fn move_down(&mut self, position: Position) {
        let mut index = self.slots.clear(position);
        while let Some(entry) = self.entries.get(index) {
            let (next, at) = (entry.next, entry.at);
            self.link(index, at);
            index = next;
        }
    }
}
