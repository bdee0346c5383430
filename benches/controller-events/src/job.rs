//! The events: each says to its producer that it has run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// A count with cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Seen(AtomicU64);

impl Seen {
    /// Leaked, so that no event touches a shared reference count.
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn one_more(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// An event of some kind.
pub(crate) trait Job: Send + 'static {
    /// One event of a producer, or its last one, which tells.
    fn new(seen: &'static Seen, last: Option<Sender<()>>) -> Self;
    fn run(self);
}

/// Carried by value.
pub(crate) enum Plain {
    One(&'static Seen),
    Last(&'static Seen, Box<Sender<()>>),
}

impl Job for Plain {
    fn new(seen: &'static Seen, last: Option<Sender<()>>) -> Self {
        match last {
            None => Self::One(seen),
            Some(last) => Self::Last(seen, Box::new(last)),
        }
    }

    fn run(self) {
        match self {
            Self::One(seen) => seen.one_more(),
            Self::Last(seen, last) => {
                seen.one_more();
                last.send(()).expect("somebody waits");
            }
        }
    }
}

/// A boxed closure, as an event of an object-oriented controller is.
pub(crate) struct Boxed(Box<dyn FnOnce() + Send>);

impl Boxed {
    pub(crate) fn of(run: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(run))
    }
}

impl Job for Boxed {
    fn new(seen: &'static Seen, last: Option<Sender<()>>) -> Self {
        match last {
            None => Self::of(move || seen.one_more()),
            Some(last) => Self::of(move || {
                seen.one_more();
                last.send(()).expect("somebody waits");
            }),
        }
    }

    fn run(self) {
        (self.0)();
    }
}
