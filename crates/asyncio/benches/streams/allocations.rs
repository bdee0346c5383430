//! Counts what is allocated, once switched on, except by the measurement itself.
//!
//! Until then an allocation costs one more load of a value that nobody writes, so that it may stand in the binary that
//! also measures time.

#![allow(unsafe_code)] // An allocator is an unsafe trait; this one hands every call on to the system's as it came.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// From now on. What was allocated before and is freed later counts as freed.
pub(crate) fn count() {
    COUNTS.store(true, Relaxed);
}

/// How often memory was asked for, growth of what was there included.
pub(crate) fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// The most bytes that were in use beyond those at the start of counting.
pub(crate) fn peak_bytes() -> u64 {
    u64::try_from(PEAK.load(Relaxed)).unwrap_or(0)
}

/// Does something that the measurement needs and no peer: what this thread allocates for it is not counted.
pub(crate) fn uncounted<T>(what: impl FnOnce() -> T) -> T {
    PAUSED.set(true);
    let done = what();
    PAUSED.set(false);
    done
}

fn counts() -> bool {
    COUNTS.load(Relaxed) && !PAUSED.get()
}

fn grown(bytes: usize) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

fn shrunk(bytes: usize) {
    LIVE.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
}

struct Counting;

// SAFETY: every call goes to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if counts() {
            CALLS.fetch_add(1, Relaxed);
            grown(layout.size());
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if counts() {
            shrunk(layout.size());
        }
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if counts() {
            CALLS.fetch_add(1, Relaxed);
            grown(layout.size());
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if counts() {
            CALLS.fetch_add(1, Relaxed);
            grown(bytes);
            shrunk(layout.size());
        }
        unsafe { System.realloc(place, layout, bytes) }
    }
}
