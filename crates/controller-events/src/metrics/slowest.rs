//! The slowest event by name: a percentile says that something is slow, and not what.
//!
//! Kafka: `EventPerformanceMonitor`. An event beyond the limit is logged at once; of every window the number, the mean and the
//! slowest event are.

use crate::stats::SlowestEvent;
use crate::sync::lock;
use runtime_core::Tick;
use runtime_core::metrics::Counter;
use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Window {
    begun: Tick,
    slowest: Option<SlowestEvent>,
    /// Events before it, and their nanoseconds in all.
    events_before: u64,
    nanos_before: u64,
}

pub(crate) struct Slowest {
    loop_name: Cow<'static, str>,
    /// From when on an event is slow.
    limit: Duration,
    /// How long the slowest one is remembered.
    length: Duration,
    slow: Counter,
    /// The time of the slowest event of the window, and the end of the window: what every event looks at.
    at_least: AtomicU64,
    ends: AtomicU64,
    window: Mutex<Window>,
}

impl Slowest {
    pub(super) fn new(loop_name: Cow<'static, str>, limit: Duration, length: Duration, now: Tick) -> Self {
        Self {
            loop_name,
            limit,
            length,
            slow: Counter::new(),
            at_least: AtomicU64::new(0),
            ends: AtomicU64::new((now + length).as_nanos()),
            window: Mutex::new(Window { begun: now, slowest: None, events_before: 0, nanos_before: 0 }),
        }
    }

    /// Whether the window has ended, so that a new one has to begin.
    #[inline]
    pub(super) fn is_over(&self, now: Tick) -> bool {
        now.as_nanos() >= self.ends.load(Ordering::Relaxed)
    }

    /// An event has ended that took so many nanoseconds.
    #[inline]
    pub(super) fn ended(&self, name: &'static str, nanos: u64) {
        if nanos >= self.at_least.load(Ordering::Relaxed) {
            self.is_slowest(name, nanos);
        }
    }

    #[cold]
    fn is_slowest(&self, name: &'static str, nanos: u64) {
        let took = Duration::from_nanos(nanos);
        let mut window = lock(&self.window);
        if window.slowest.is_none_or(|slowest| slowest.took <= took) {
            window.slowest = Some(SlowestEvent { name, took });
        }
        drop(window);
        // No event beyond the limit may pass by unseen.
        self.at_least.store((nanos + 1).min(super::nanos(self.limit)), Ordering::Relaxed);
        if took >= self.limit {
            self.slow.increment();
            tracing::error!(event_loop = %self.loop_name, event = name, ?took, "slow event");
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.slow.get()
    }

    /// The slowest event of the window that `now` lies in.
    pub(super) fn of_window(&self, now: Tick) -> Option<SlowestEvent> {
        let window = lock(&self.window);
        window.slowest.filter(|_| now.since(window.begun) < self.length)
    }

    /// Begins a window, given how many events there have been so far and how long they took in all.
    #[cold]
    pub(super) fn roll(&self, now: Tick, events: u64, nanos: u64) {
        self.ends.store((now + self.length).as_nanos(), Ordering::Relaxed);
        self.at_least.store(0, Ordering::Relaxed);
        let new = Window { begun: now, slowest: None, events_before: events, nanos_before: nanos };
        let old = std::mem::replace(&mut *lock(&self.window), new);
        let events = events.saturating_sub(old.events_before);
        let mean = Duration::from_nanos(nanos.saturating_sub(old.nanos_before) / events.max(1));
        if let Some(SlowestEvent { name, took }) = old.slowest {
            tracing::debug!(event_loop = %self.loop_name, events, ?mean, slowest = name, ?took, "events of the last window");
        }
    }
}
