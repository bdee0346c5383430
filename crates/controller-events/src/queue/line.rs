//! A first-in-first-out line in chunks. A pure structure: no lock, no clock.
//!
//! A plain ring doubles by copying, which for a long line is milliseconds under the producers' lock, and keeps its
//! greatest size. Chunks are never copied, go back to the allocator as the line gets shorter, and change hands whole:
//! the loop takes over everything that producers have put by moving a few pointers.

use std::collections::VecDeque;

/// Bytes in a chunk, whatever the size of an event.
const CHUNK_BYTES: usize = 16 * 1024;
const MOST_ITEMS: usize = 512;
const LEAST_ITEMS: usize = 16;
/// Emptied chunks that are kept for the next items: half a megabyte after a burst.
const SPARE: usize = 32;

pub(super) struct Line<T> {
    /// Where items leave.
    head: VecDeque<T>,
    /// Chunks between the two ends, none of them empty.
    middle: VecDeque<VecDeque<T>>,
    /// Where items come in. With nothing in between it may be that all are here, or all in the head.
    tail: VecDeque<T>,
    len: usize,
    spare: Vec<VecDeque<T>>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            head: VecDeque::new(),
            middle: VecDeque::new(),
            tail: VecDeque::new(),
            len: 0,
            spare: Vec::new(),
        }
    }
}

impl<T> Line<T> {
    /// Items in a chunk.
    const CHUNK: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let items = CHUNK_BYTES / size;
        if items > MOST_ITEMS {
            MOST_ITEMS
        } else if items < LEAST_ITEMS {
            LEAST_ITEMS
        } else {
            items
        }
    };

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn push_back(&mut self, item: T) {
        self.len += 1;
        if self.tail.len() == self.tail.capacity() {
            self.begin_tail();
        }
        self.tail.push_back(item);
    }

    #[cold]
    fn begin_tail(&mut self) {
        let chunk = self.empty_chunk();
        let full = std::mem::replace(&mut self.tail, chunk);
        self.push_chunk(full);
    }

    pub(super) fn push_front(&mut self, item: T) {
        self.len += 1;
        if self.head.len() == self.head.capacity() {
            let chunk = self.empty_chunk();
            let full = std::mem::replace(&mut self.head, chunk);
            if !full.is_empty() {
                self.middle.push_front(full);
            }
        }
        self.head.push_front(item);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        if self.head.is_empty() {
            self.begin_head()?;
        }
        self.len -= 1;
        self.head.pop_front()
    }

    /// Makes the next chunk the head. `None` if there is no item at all.
    #[cold]
    fn begin_head(&mut self) -> Option<()> {
        if self.len == 0 {
            return None;
        }
        match self.middle.pop_front() {
            Some(next) => {
                let emptied = std::mem::replace(&mut self.head, next);
                self.keep_spare(emptied);
            }
            None => std::mem::swap(&mut self.head, &mut self.tail),
        }
        Some(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.head.iter().chain(self.middle.iter().flatten()).chain(&self.tail)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for chunk in [&mut self.head].into_iter().chain(&mut self.middle).chain([&mut self.tail]) {
            chunk.retain(&mut keep);
        }
        self.middle.retain(|chunk| !chunk.is_empty());
        let between: usize = self.middle.iter().map(VecDeque::len).sum();
        self.len = self.head.len() + between + self.tail.len();
    }

    /// Moves everything in `other` behind what is here. Emptied chunks go the other way.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        if self.len == 0 {
            // Nothing is in order here, so whole ends change sides.
            std::mem::swap(&mut self.head, &mut other.head);
            std::mem::swap(&mut self.middle, &mut other.middle);
            std::mem::swap(&mut self.tail, &mut other.tail);
        } else if other.len > 0 {
            let tail = std::mem::replace(&mut self.tail, std::mem::take(&mut other.tail));
            self.push_chunk(tail);
            self.push_chunk(std::mem::take(&mut other.head));
            self.middle.append(&mut other.middle);
        }
        self.len += std::mem::take(&mut other.len);
        if other.spare.len() < self.spare.len() {
            std::mem::swap(&mut self.spare, &mut other.spare);
        }
    }

    /// Takes out everything, in order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let Self { head, middle, tail, .. } = std::mem::take(self);
        head.into_iter().chain(middle.into_iter().flatten()).chain(tail)
    }

    fn push_chunk(&mut self, chunk: VecDeque<T>) {
        if chunk.is_empty() {
            self.keep_spare(chunk);
        } else {
            self.middle.push_back(chunk);
        }
    }

    fn keep_spare(&mut self, chunk: VecDeque<T>) {
        if chunk.capacity() > 0 && self.spare.len() < SPARE {
            self.spare.push(chunk);
        }
    }

    fn empty_chunk(&mut self) -> VecDeque<T> {
        self.spare.pop().unwrap_or_else(|| VecDeque::with_capacity(Self::CHUNK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_order_whatever_side_they_came_from() {
        let mut line = Line::default();
        for n in 0..1_000 {
            line.push_back(n);
            line.push_front(-n);
        }
        let all: Vec<i32> = std::iter::from_fn(|| line.pop_front()).collect();
        let expected: Vec<i32> = (0..1_000).rev().map(|n| -n).chain(0..1_000).collect();
        assert_eq!(all, expected);
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn what_is_taken_over_comes_behind_and_leaves_nothing() {
        let (mut line, mut other) = (Line::default(), Line::default());
        (0..300).for_each(|n| line.push_back(n));
        (300..900).for_each(|n| other.push_back(n));
        line.pop_front();
        line.take_over(&mut other);
        assert_eq!((line.len(), other.len()), (899, 0));
        assert!(line.iter().copied().eq(1..900));
        assert!(line.drain().eq(1..900));
        assert_eq!((line.len(), line.pop_front()), (0, None));
    }

    #[test]
    fn what_is_not_kept_is_gone_and_the_rest_in_order() {
        let mut line = Line::default();
        (0..1_000).for_each(|n| line.push_back(n));
        line.retain(|n| *n >= 600 && n % 2 == 0);
        assert_eq!(line.len(), 200);
        line.push_back(1_000);
        assert!(line.drain().eq((600..=1_000).step_by(2)));
    }

    #[test]
    fn k04_an_emptied_line_keeps_less_than_a_tenth_of_its_memory() {
        let mut line = Line::default();
        (0..1_000_000_u64).for_each(|n| line.push_back([n; 4]));
        let peak = line.middle.len();
        while line.pop_front().is_some() {}
        assert_eq!((line.middle.len(), line.spare.len()), (0, SPARE));
        assert!(SPARE * 10 < peak, "{peak} chunks at the peak");
    }
}
