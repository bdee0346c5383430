//! Which loops' code the current thread is running just now.
//!
//! A handler that waits for its own loop waits for ever. Whoever could wait asks here first. A `not_run` callback
//! counts as well, on whatever thread it runs: the loop starts nothing until it has returned.

use std::cell::RefCell;

/// Where in a loop's code a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the processor: the thread is driving the loop.
    Processor,
    /// In an event's `not_run`.
    Callback,
}

thread_local! {
    static INSIDE: RefCell<Vec<(u64, Place)>> = const { RefCell::new(Vec::new()) };
}

/// The thread is inside while this lives.
pub(crate) struct Inside(());

/// Marks the thread as running code of the loop `id`.
pub(crate) fn enter(id: u64, place: Place) -> Inside {
    INSIDE.with_borrow_mut(|stack| stack.push((id, place)));
    Inside(())
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|stack| {
            stack.pop();
        });
    }
}

/// Whether the thread runs any code of the loop `id`, so that waiting for that loop would be waiting for itself.
pub(crate) fn is_inside(id: u64) -> bool {
    INSIDE.with_borrow(|stack| stack.iter().any(|(inside, _)| *inside == id))
}

/// Whether the thread is the one that drives the loop `id`, in a handler of it.
pub(crate) fn is_processing(id: u64) -> bool {
    INSIDE.with_borrow(|stack| stack.contains(&(id, Place::Processor)))
}
