//! The figures of a loop at one moment.

use std::time::Duration;

/// The figures of a loop. At every moment at which nothing is being decided, [`accounted`](Self::accounted) equals
/// `accepted`: no event is lost and none counts twice.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Stats {
    /// Events taken on; refused ones are not among them.
    pub accepted: u64,
    /// Events in line.
    pub queued: usize,
    /// Events that wait for their time.
    pub scheduled: usize,
    /// Whether an event is being handled.
    pub in_flight: bool,
    /// In line, scheduled and in flight (Kafka: `EventQueue.size`).
    pub total: usize,
    /// How long the first event in line has been waiting; zero if none is.
    pub oldest_age: Duration,
    /// Handlers called.
    pub started: u64,
    /// Handlers that succeeded.
    pub done: u64,
    /// Handlers that failed or panicked.
    pub failed: u64,
    /// Handlers that panicked; these are among the failed.
    pub panicked: u64,
    /// Events cleared by a barrier, a close or a newer epoch.
    pub preempted: u64,
    /// Events whose deadline passed.
    pub timed_out: u64,
    /// Events whose tag was taken by another.
    pub replaced: u64,
    /// Events cancelled by their tag.
    pub cancelled: u64,
    /// Scheduled events that the loop's end overtook.
    pub shut_down: u64,
    /// Events that waited when the loop died.
    pub loop_died: u64,
    /// Events of a past epoch; these are among the preempted.
    pub stale: u64,
    /// Puts refused because the queue was full.
    pub rejected_overload: u64,
    /// Puts refused because the loop had ended or was ending.
    pub rejected_closed: u64,
    /// Panics in `not_run`.
    pub preempt_panics: u64,
    /// Panics in the processor's hooks.
    pub hook_panics: u64,
    /// Handlers that took longer than the limit.
    pub slow_events: u64,
    /// The slowest event of the present window, [`LoopOptions::slow_window`](crate::LoopOptions::slow_window).
    pub slowest: Option<SlowestEvent>,
    /// All the time in which there was nothing to do.
    pub idle: Duration,
    /// The share of it in the last minute or two, 0 to 1. For another interval, take two readings of `idle`.
    pub idle_ratio: f64,
}

/// The event that took longest, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowestEvent {
    /// [`Event::name`](crate::Event::name).
    pub name: &'static str,
    /// The time in its handler.
    pub took: Duration,
}

impl Stats {
    /// The events that have an outcome or still wait for one.
    #[must_use]
    pub const fn accounted(&self) -> u64 {
        self.done
            + self.failed
            + self.preempted
            + self.timed_out
            + self.replaced
            + self.cancelled
            + self.shut_down
            + self.loop_died
            + self.total as u64
    }

    /// Whether every accepted event is accounted for. True at every moment at which nothing is being decided.
    ///
    /// Kafka has no such check, and lost callbacks for years.
    #[must_use]
    pub const fn is_conserved(&self) -> bool {
        self.accounted() == self.accepted
    }
}
