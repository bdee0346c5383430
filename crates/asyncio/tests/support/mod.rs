//! An allocator that counts what each thread allocates, for the tests of memory.
#![allow(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one only counts and hands on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What one thread has allocated, so that tests beside each other do not count each other's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Allocations, growing ones included.
    pub(crate) allocations: u64,
    /// Bytes allocated and not freed; below zero where others' are freed.
    pub(crate) live: i64,
    /// The most that were ever live since the last [`reset_peak`].
    pub(crate) peak: i64,
}

thread_local! {
    // No destructor and no lazy state: it may be looked at from within an allocation.
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { allocations: 0, live: 0, peak: 0 }) };
}

/// What this thread has allocated so far.
pub(crate) fn memory() -> Memory {
    MEMORY.with(Cell::get)
}

/// How many allocations this makes on this thread.
#[allow(dead_code, reason = "not every test binary counts")]
pub(crate) fn allocations_of(run: impl FnOnce()) -> u64 {
    let before = memory().allocations;
    run();
    memory().allocations - before
}

/// Forgets the peak so far.
#[allow(dead_code, reason = "not every test binary looks at the peak")]
pub(crate) fn reset_peak() {
    MEMORY.with(|memory| {
        let now = memory.get();
        memory.set(Memory { peak: now.live, ..now });
    });
}

fn count(allocations: u64, bytes: i64) {
    // A thread that ends may free when its counts are gone.
    let _ = MEMORY.try_with(|memory| {
        let now = memory.get();
        let live = now.live + bytes;
        memory.set(Memory { allocations: now.allocations + allocations, live, peak: now.peak.max(live) });
    });
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
