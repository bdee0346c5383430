//! Results that wait for a commit.
//!
//! A handler that writes to a log answers when its last record is committed, not when it returns; so many writes are
//! under way though there is one thread. What they will answer waits here, by offset. Confined to the loop, as the
//! rest of its processor's state.
//!
//! Kafka: `DeferredEventQueue` of the `QuorumController`.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Items by offset, completed or failed in order.
///
/// ```
/// use controller_events::CommitQueue;
/// let mut waiting = CommitQueue::new();
/// waiting.add(1, "a")?;
/// waiting.add(1, "b")?;
/// waiting.add(3, "c")?;
/// let mut done = Vec::new();
/// waiting.complete_up_to(2, |_, item| done.push(item));
/// assert_eq!(done, ["a", "b"]);
/// assert_eq!(waiting.highest(), Some(3));
/// # Ok::<(), controller_events::OutOfOrder<&str>>(())
/// ```
#[derive(Debug)]
pub struct CommitQueue<T> {
    /// Offsets never fall.
    pending: VecDeque<(u64, T)>,
}

/// The item was not added and comes back: something waits for a higher offset already.
#[derive(PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} was not added: offset {highest} waits already, and offsets never fall")]
pub struct OutOfOrder<T> {
    /// The refused item.
    pub item: T,
    /// Its offset.
    pub offset: u64,
    /// The highest offset that something waits for.
    pub highest: u64,
}

// Not derived, so that items need no `Debug`.
impl<T> fmt::Debug for OutOfOrder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutOfOrder")
            .field("offset", &self.offset)
            .field("highest", &self.highest)
            .finish_non_exhaustive()
    }
}

/// What a completion or a failure of many did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Told {
    /// How many items were handed out.
    pub items: usize,
    /// For how many of them the function panicked, which did not stop the others.
    pub panics: usize,
}

impl<T> Default for CommitQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> CommitQueue<T> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { pending: VecDeque::new() }
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The highest offset that something waits for.
    #[must_use]
    pub fn highest(&self) -> Option<u64> {
        self.pending.back().map(|(offset, _)| *offset)
    }

    /// Adds what waits for an offset.
    ///
    /// # Errors
    /// The item comes back if something waits for a higher offset; nothing has changed then.
    pub fn add(&mut self, offset: u64, item: T) -> Result<(), OutOfOrder<T>> {
        match self.highest() {
            Some(highest) if highest > offset => Err(OutOfOrder { item, offset, highest }),
            _ => {
                self.pending.push_back((offset, item));
                Ok(())
            }
        }
    }

    /// Adds what wrote nothing but has read what is not committed yet: it waits for the highest offset. It comes back if
    /// nothing waits, and can be answered at once.
    pub fn add_behind_all(&mut self, item: T) -> Option<T> {
        match self.highest() {
            None => Some(item),
            Some(highest) => {
                self.pending.push_back((highest, item));
                None
            }
        }
    }

    /// Hands out everything up to and with an offset, by offset and then by age. The function may add: what it adds at or
    /// below the offset is handed out by the same call. A panic in it is caught and counted.
    pub fn complete_up_to(&mut self, offset: u64, mut complete: impl FnMut(&mut Self, T)) -> Told {
        self.hand_out(|first| first <= offset, &mut complete)
    }

    /// Hands out everything, because it will not be committed: leadership is lost. What the function adds meanwhile is
    /// handed out as well.
    pub fn fail_all(&mut self, mut fail: impl FnMut(&mut Self, T)) -> Told {
        self.hand_out(|_| true, &mut fail)
    }

    fn hand_out(&mut self, wanted: impl Fn(u64) -> bool, tell: &mut impl FnMut(&mut Self, T)) -> Told {
        let mut told = Told::default();
        while self.pending.front().is_some_and(|(offset, _)| wanted(*offset))
            && let Some((_, item)) = self.pending.pop_front()
        {
            told.items += 1;
            if catch_unwind(AssertUnwindSafe(|| tell(self, item))).is_err() {
                told.panics += 1;
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(u64, &'static str)]) -> CommitQueue<&'static str> {
        let mut queue = CommitQueue::new();
        items.iter().for_each(|(offset, item)| queue.add(*offset, *item).unwrap());
        queue
    }

    #[test]
    fn j01_what_waits_is_done_when_its_offset_is_committed() {
        let mut queue = queue(&[(1, "a"), (1, "b"), (3, "c")]);
        assert_eq!(queue.highest(), Some(3));
        let mut done = Vec::new();
        queue.complete_up_to(2, |_, item| done.push(item));
        assert_eq!(done, ["a", "b"]);
        queue.complete_up_to(4, |_, item| done.push(item));
        assert_eq!(done, ["a", "b", "c"]);
        assert_eq!((queue.highest(), queue.is_empty()), (None, true));
    }

    #[test]
    fn j02_offsets_never_fall_and_a_refused_item_changes_nothing() {
        let mut queue = queue(&[(2, "a")]);
        let refused = queue.add(1, "b").unwrap_err();
        assert_eq!((refused.item, refused.offset, refused.highest), ("b", 1, 2));
        assert_eq!((queue.len(), queue.highest()), (1, Some(2)));
    }

    #[test]
    fn j03_everything_that_is_left_fails() {
        let mut queue = queue(&[(1, "a"), (3, "b"), (3, "c")]);
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        queue.complete_up_to(2, |_, item| done.push(item));
        assert_eq!(queue.fail_all(|_, item| failed.push(item)), Told { items: 2, panics: 0 });
        assert_eq!((done, failed), (vec!["a"], vec!["b", "c"]));
        assert!(queue.is_empty());
    }

    #[test]
    fn j04_a_read_waits_for_what_it_may_have_seen_and_for_nothing_else() {
        let mut queue = queue(&[(7, "write")]);
        assert_eq!(queue.add_behind_all("read"), None);
        let mut done = Vec::new();
        queue.complete_up_to(6, |_, item| done.push(item));
        assert!(done.is_empty());
        queue.complete_up_to(7, |_, item| done.push(item));
        assert_eq!(done, ["write", "read"]);
        assert_eq!(queue.add_behind_all("second read"), Some("second read"));
    }

    #[test]
    fn s8_3_what_a_completion_adds_within_the_bound_is_completed_by_the_same_call() {
        let mut queue = queue(&[(1, "a"), (2, "b")]);
        let mut done = Vec::new();
        queue.complete_up_to(2, |queue, item| {
            done.push(item);
            if item == "a" {
                queue.add(2, "within").unwrap();
                queue.add(3, "beyond").unwrap();
            }
        });
        assert_eq!(done, ["a", "b", "within"]);
        assert_eq!(queue.highest(), Some(3));
    }

    #[test]
    fn s8_3_a_completion_that_panics_does_not_stop_the_others() {
        let mut queue = queue(&[(1, "a"), (1, "b"), (1, "c")]);
        let mut done = Vec::new();
        let told = queue.complete_up_to(1, |_, item| {
            assert!(item != "b", "on purpose");
            done.push(item);
        });
        assert_eq!((told, done), (Told { items: 3, panics: 1 }, vec!["a", "c"]));
    }
}
