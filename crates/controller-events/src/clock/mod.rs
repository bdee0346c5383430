//! Clocks for loops: one for threads without a runtime, one for tests.

mod stopwatch;

use crate::room::Room;
use crate::sync::lock;
use crate::wake::Wake;
use runtime_core::{Clock, EpochMillis, Tick};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use stopwatch::Stopwatch;

/// The machine's clock, for loops on a thread of their own. Programs on tokio have `runtime_core::time::TokioClock`.
///
/// Where the kernel keeps time by the processor's counter, so does this clock, because a loop asks for the time twice an
/// event: it may then differ from the kernel's by some hundred nanoseconds. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct MonotonicClock {
    watch: Arc<Stopwatch>,
    wall_at_start: EpochMillis,
}

impl MonotonicClock {
    /// A clock that starts now.
    #[must_use]
    // A shell: this is where a program without a runtime reads the machine's clocks.
    #[allow(clippy::disallowed_methods)]
    pub fn start() -> Self {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since_1970.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
        Self { watch: Arc::new(Stopwatch::start()), wall_at_start: EpochMillis(millis) }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.watch.nanos())
    }

    fn wall(&self) -> EpochMillis {
        let elapsed = i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX);
        EpochMillis(self.wall_at_start.0.saturating_add(elapsed))
    }
}

/// A clock that stands still until it is advanced. The loops that were made with it wake by themselves then; clones
/// are the same clock.
#[derive(Clone, Default)]
pub struct MockClock(Arc<Mocked>);

#[derive(Default)]
struct Mocked {
    nanos: AtomicU64,
    loops: Mutex<Vec<(Weak<Wake>, Weak<Room>)>>,
}

impl MockClock {
    /// A clock that stands at [`Tick::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward and wakes its loops.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Cannot fail: the closure always returns a value.
        let _ =
            self.0.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| Some(now.saturating_add(by)));
        let loops = {
            let mut loops = lock(&self.0.loops);
            loops.retain(|(wake, _)| wake.strong_count() > 0);
            loops.clone()
        };
        // A waker is foreign code: it is called outside the lock.
        for (wake, room) in loops {
            if let Some(wake) = wake.upgrade() {
                wake.call();
            }
            if let Some(room) = room.upgrade() {
                room.changed();
            }
        }
    }

    pub(crate) fn subscribe(&self, wake: &Arc<Wake>, room: &Arc<Room>) {
        lock(&self.0.loops).push((Arc::downgrade(wake), Arc::downgrade(room)));
    }
}

impl Clock for MockClock {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.0.nanos.load(Ordering::SeqCst))
    }

    fn wall(&self) -> EpochMillis {
        EpochMillis(i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX))
    }
}

impl std::fmt::Debug for MockClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MockClock").field(&self.now()).finish()
    }
}
