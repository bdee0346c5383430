//! What a process says of its own liveness: the sending side of the frames.

use crate::frame::LivenessFrame;
use runtime_core::Tick;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Makes the frames of one life of a process, on the thread that reads from the network, and knows how long the main loop
/// keeps something waiting.
///
/// A loop that has nothing to do does not turn either and is well. So its age is that of the oldest thing that waits for
/// it, counted from its last turn, and zero while nothing does.
///
/// ```
/// use heartbeat::LivenessSource;
/// use runtime_core::Tick;
/// use std::{sync::Arc, time::Duration};
///
/// let at = |second: u64| Tick::from_millis(second * 1_000);
/// let source = Arc::new(LivenessSource::new(7));
/// source.turned(at(1));
/// assert_eq!(source.frame(at(60), None).main_loop_age, Duration::ZERO, "idle");
///
/// let waiting = source.wait(at(60)); // something was put for the loop
/// let frame = source.frame(at(72), None);
/// assert_eq!((frame.main_loop_age, frame.sequence), (Duration::from_secs(12), 2));
/// source.stood_still(Duration::from_secs(3));
/// assert_eq!(source.frame(at(72), None).stall, Duration::from_secs(3));
/// assert_eq!(source.frame(at(72), None).stall, Duration::ZERO, "told");
/// drop(waiting); // the loop has seen to it
/// assert_eq!(source.frame(at(72), None).main_loop_age, Duration::ZERO);
/// ```
#[derive(Debug)]
pub struct LivenessSource<N> {
    incarnation: N,
    sequence: AtomicU64,
    last_turn: AtomicU64,
    waiting: AtomicU64,
    waiting_since: AtomicU64,
    /// In milliseconds, not told yet.
    stood_still: AtomicU64,
}

/// Something waits for the main loop until this is dropped.
#[derive(Debug)]
pub struct Waiting<N>(Arc<LivenessSource<N>>);

impl<N> Drop for Waiting<N> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl<N: Clone> LivenessSource<N> {
    /// The source of this life.
    #[must_use]
    pub const fn new(incarnation: N) -> Self {
        Self {
            incarnation,
            sequence: AtomicU64::new(0),
            last_turn: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            waiting_since: AtomicU64::new(0),
            stood_still: AtomicU64::new(0),
        }
    }

    /// The main loop has turned: it has handled something.
    pub fn turned(&self, now: Tick) {
        self.last_turn.store(now.as_nanos(), Relaxed);
    }

    /// The process stood still for so long: its next frame says it.
    pub fn stood_still(&self, length: Duration) {
        self.stood_still.fetch_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Something is put for the main loop, and waits until what this returns is dropped.
    #[must_use = "it waits no longer than this lives"]
    pub fn wait(self: &Arc<Self>, now: Tick) -> Waiting<N> {
        if self.waiting.fetch_add(1, Relaxed) == 0 {
            self.waiting_since.store(now.as_nanos(), Relaxed);
        }
        Waiting(Arc::clone(self))
    }

    /// How long something has waited for the main loop since it turned last.
    #[must_use]
    pub fn main_loop_age(&self, now: Tick) -> Duration {
        if self.waiting.load(Relaxed) == 0 {
            return Duration::ZERO;
        }
        let since = self.last_turn.load(Relaxed).max(self.waiting_since.load(Relaxed));
        now.since(Tick::from_nanos(since))
    }

    /// The next frame. `echo` is the `sent_at` of the last one that came from whom it is for, if frames go both ways.
    pub fn frame(&self, now: Tick, echo: Option<Tick>) -> LivenessFrame<N> {
        LivenessFrame {
            incarnation: self.incarnation.clone(),
            sequence: self.sequence.fetch_add(1, Relaxed) + 1,
            sent_at: now,
            main_loop_age: self.main_loop_age(now),
            stall: Duration::from_millis(self.stood_still.swap(0, Relaxed)),
            echo,
        }
    }
}
