//! Counts the bytes that are allocated: resident memory is too coarse for a thousand targets.
// An allocator cannot be written without: each method passes its arguments on to the system's, unchanged.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct Counting;

// SAFETY: every call is the system allocator's, which keeps the contract; the count is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

/// By how many bytes what `make` makes grows when it is filled. Empty, it is a fixed cost, ours and the peers' alike.
pub(crate) fn grown<T>(make: impl FnOnce() -> T, fill: impl FnOnce(&mut T)) -> f64 {
    let mut made = make();
    let before = LIVE.load(Relaxed);
    fill(&mut made);
    let after = LIVE.load(Relaxed);
    drop(made);
    after.saturating_sub(before) as f64
}
