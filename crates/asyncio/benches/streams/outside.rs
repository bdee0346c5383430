//! The other thread: takes calls and completes them, at once or on a wheel of 1 ms ticks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::allocations;
use crate::machine::now;
use crate::meter::Stamps;
use crate::work::Delays;

const TICK: u64 = 1_000_000;

/// Longer delays than this many ticks, less two, are cut.
const SLOTS: u64 = 8192;

/// By what a call is completed.
pub(crate) trait Answer: Send + 'static {
    /// The call's result.
    fn answer(self, value: u64);
}

impl Answer for oneshot::Sender<u64> {
    fn answer(self, value: u64) {
        // Whoever asked may be gone: then it counts as lost.
        let _ = self.send(value);
    }
}

/// Where calls are handed over.
pub(crate) enum Outside<A> {
    Thread(crossbeam_channel::Sender<(A, u64)>),
    Wheel(Arc<Wheel<A>>, Delays),
}

impl<A: Answer> Outside<A> {
    /// Completes calls in the order in which they come.
    pub(crate) fn thread(stamps: Arc<Stamps>) -> Self {
        let (sender, calls) = crossbeam_channel::unbounded::<(A, u64)>();
        std::thread::spawn(move || {
            for (answer, value) in calls {
                stamps.complete(value);
                answer.answer(value);
            }
        });
        Self::Thread(sender)
    }

    /// Completes each call after its delay, rounded up to the next tick.
    pub(crate) fn wheel(delays: Delays, stamps: Arc<Stamps>) -> Self {
        let wheel = Arc::new(Wheel::new());
        let turning = Arc::downgrade(&wheel);
        std::thread::spawn(move || {
            let mut due = Vec::new();
            while let Some(wheel) = turning.upgrade() {
                wheel.turn(&mut due);
                for (answer, value) in due.drain(..) {
                    stamps.complete(value);
                    Answer::answer(answer, value);
                }
            }
        });
        Self::Wheel(wheel, delays)
    }

    /// Hands a call over.
    pub(crate) fn begin(&mut self, value: u64, answer: A) {
        match self {
            // The thread ends only after the sender has.
            Self::Thread(calls) => drop(calls.send((answer, value))),
            Self::Wheel(wheel, delays) => wheel.schedule(delays.next_ms(), answer, value),
        }
    }
}

/// Calls by the tick at which they complete.
pub(crate) struct Wheel<A> {
    slots: Vec<Mutex<Vec<(A, u64)>>>,
    /// The last tick that was taken out.
    tick: AtomicU64,
    begun: u64,
}

impl<A> Wheel<A> {
    fn new() -> Self {
        let slots = (0..SLOTS).map(|_| Mutex::default()).collect();
        Self { slots, tick: AtomicU64::new(0), begun: now() }
    }

    fn slot(&self, tick: u64) -> Option<MutexGuard<'_, Vec<(A, u64)>>> {
        let slot = self.slots.get((tick % SLOTS) as usize)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn schedule(&self, ms: f64, answer: A, value: u64) {
        let since = (now() - self.begun) as f64 / TICK as f64;
        let due = (since + ms.min((SLOTS - 2) as f64)).ceil() as u64;
        loop {
            let tick = due.max(self.tick.load(Ordering::Relaxed) + 1);
            let Some(mut slot) = self.slot(tick) else { return };
            // Taken out in the meantime: then it is due at the next.
            if tick > self.tick.load(Ordering::Relaxed) {
                allocations::uncounted(|| slot.push((answer, value)));
                return;
            }
        }
    }

    /// Waits for the next tick and takes out what is due.
    // A peer of the measurement that waits in real time.
    #[allow(clippy::disallowed_methods)]
    fn turn(&self, due: &mut Vec<(A, u64)>) {
        let next = self.tick.load(Ordering::Relaxed) + 1;
        let wait = (self.begun + next * TICK).saturating_sub(now());
        if wait > 0 {
            std::thread::sleep(Duration::from_nanos(wait));
            return;
        }
        let Some(mut slot) = self.slot(next) else { return };
        self.tick.store(next, Ordering::Relaxed);
        std::mem::swap(&mut *slot, due);
    }
}
