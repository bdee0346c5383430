//! A loop that has nothing to do looks for news for a while before it waits.
//!
//! To wake a thread that waits costs its waker as much as a hundred puts. But to look costs the producer who writes there
//! as much as a put, so it is done seldom: by the clock, because how long a processor's pause takes differs tenfold.

use super::Queue;
use crate::sync::look_away;
use runtime_core::Clock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Between two looks. Some ten events come in meanwhile where many come, and are fetched together.
const BETWEEN_LOOKS: Duration = Duration::from_nanos(700);
/// The processor's pauses between two looks at the clock, and how many of those at most: a mocked clock stands still.
const PAUSES: u32 = 8;
const MOST: u32 = 32;
/// How often to look before waiting, and from when on to give the thread away in between.
const ROUNDS: u32 = 10;
const ROUNDS_ALONE: u32 = 5;

impl<E> Queue<E> {
    /// Whether producers have pushed something that the loop has not fetched. A hint: only [`take`](Self::take) knows.
    pub(crate) fn has_news(&self) -> bool {
        self.inbox.0.1.load(Ordering::Relaxed) > 0
    }

    /// Looks for news for a little while.
    pub(crate) fn expects_news(&self, clock: &dyn Clock) -> bool {
        for round in 0..ROUNDS {
            let until = clock.now() + BETWEEN_LOOKS;
            for _ in 0..MOST {
                look_away(PAUSES);
                if clock.now() >= until {
                    break;
                }
            }
            if self.has_news() {
                return true;
            }
            if round >= ROUNDS_ALONE {
                std::thread::yield_now();
            }
        }
        false
    }
}
