//! What a loop and its handles have in common.

use crate::event::{Event, EventState, NotRun};
use crate::inside::{self, Place};
use crate::metrics::Metrics;
use crate::options::LoopOptions;
use crate::queue::{Limits, Queue, Queued, Rejected};
use crate::room::Room;
use crate::signal::Signal;
use crate::spawn::Spawner;
use crate::stats::Stats;
use crate::sync::Apart;
use crate::ticket::Outcome;
use crate::wake::Wake;
use runtime_core::Clock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The level of [`Shared::ended`] at which the loop has ended.
pub(crate) const ENDED: u8 = 1;

pub(crate) struct Shared<E: Event> {
    /// Tells loops apart for whoever would wait inside one.
    pub(crate) id: u64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue: Queue<E>,
    pub(crate) metrics: Apart<Metrics>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) room: Arc<Room>,
    /// Whether the line has a capacity at all.
    pub(crate) is_bounded: bool,
    pub(crate) reject_deadlined_on_drain: bool,
    pub(crate) spawner: Spawner,
    /// Whether waits are limited in real time; a mocked clock calls instead.
    pub(crate) real_time: bool,
    pub(crate) ended: Signal,
    state: Apart<AtomicU8>,
}

impl<E: Event> Shared<E> {
    pub(crate) fn new(options: &LoopOptions) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let (wake, room) = (Arc::new(Wake::default()), Arc::new(Room::default()));
        if let Some(mock) = &options.mock {
            mock.subscribe(&wake, &room);
        }
        let limits = Limits {
            capacity: options.capacity,
            low: options.low_watermark,
            timer_capacity: options.timer_capacity,
        };
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            clock: Arc::clone(&options.clock),
            queue: Queue::new(limits, options.timer_burst, Arc::clone(&room)),
            metrics: Apart(Metrics::new::<E::State>(options, options.clock.now())),
            wake,
            room,
            reject_deadlined_on_drain: options.reject_deadlined_on_drain,
            is_bounded: options.capacity.is_some() || options.low_watermark.is_some(),
            spawner: Arc::clone(&options.spawner),
            real_time: options.mock.is_none(),
            ended: Signal::default(),
            state: Apart(AtomicU8::new(E::State::IDLE.value())),
        })
    }

    /// Tells an event that it will not run, and whoever holds its ticket. Called outside all locks.
    pub(crate) fn reject(&self, queued: Queued<E>, why: NotRun) {
        let Queued { event, ticket, .. } = queued;
        let told = {
            let _inside = inside::enter(self.id, Place::Callback);
            catch_unwind(AssertUnwindSafe(|| event.not_run(why)))
        };
        if told.is_err() {
            self.metrics.callback_panics.increment();
        }
        self.metrics.not_run(why);
        if let Some(ticket) = ticket {
            ticket.finished(Outcome::NotRun(why));
        }
    }

    /// Tells each event of a barrier, a drain or a close, then lets the loop go on.
    pub(crate) fn reject_and_release(&self, rejected: Vec<Rejected<E>>) {
        for (queued, why) in rejected {
            self.reject(queued, why);
        }
        self.queue.end_clear();
        self.wake.call();
    }

    pub(crate) fn set_state(&self, state: E::State) {
        self.state.store(state.value(), Ordering::Release);
    }

    pub(crate) fn state_value(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    pub(crate) fn state(&self) -> E::State {
        let value = self.state_value();
        E::State::ALL.iter().copied().find(|state| state.value() == value).unwrap_or(E::State::IDLE)
    }

    pub(crate) fn stats(&self) -> Stats {
        let depths = self.queue.depths();
        let now = self.clock.now();
        let mut stats = Stats {
            accepted: depths.accepted,
            queued: depths.queued,
            scheduled: depths.scheduled,
            in_flight: depths.in_flight,
            total: depths.queued + depths.scheduled + usize::from(depths.in_flight),
            oldest_age: depths.oldest.map(|since| now.since(since)).unwrap_or_default(),
            ..Stats::default()
        };
        self.metrics.stats(now, &mut stats);
        stats
    }
}
