//! Where a task stands in the checkpoint that it was told of.
//!
//! A source takes part at once. Any other task waits for the barrier from all its inputs, and meanwhile *parks*: when its
//! first asynchronous step is full, what stands before the barrier is taken in without room, or a service that hangs
//! would hold up every checkpoint (Flink: FLINK-34704).

use std::time::Duration;

use runtime_core::{Barrier, EpochMillis, JobId, Tick};

/// How long after the word of a checkpoint a full task waits before it parks. Everybody is told at the same time, so by
/// then the producers have put their barrier into their channels, and what stands before it is bounded by credits. A task
/// that is not stuck has used the time to make room.
const PARK_AFTER: Duration = Duration::from_millis(50);

/// Batches that are taken in without room, for each channel: twice what a channel holds from its producer's writer to
/// its consumer's buffer. A producer that is told of a checkpoint far too late fills no memory with it.
const PARKED_BATCHES: u64 = 16;

#[derive(Debug, Clone, Copy)]
struct Pending {
    barrier: Barrier,
    since: Tick,
    park_from: Tick,
    /// How many batches had been taken when parking became possible.
    batches_before: u64,
    /// Whether a barrier has been seen.
    seen: bool,
}

/// Which checkpoint a task takes part in, and how.
#[derive(Debug)]
pub(crate) struct Checkpointing {
    job: JobId,
    pending: Option<Pending>,
    /// No checkpoint up to this one is taken part in any more.
    done: u64,
}

impl Checkpointing {
    pub(crate) fn new(job: JobId) -> Self {
        Self { job, pending: None, done: 0 }
    }

    /// The checkpoint that waits for its barrier.
    pub(crate) fn pending(&self) -> Option<Barrier> {
        self.pending.map(|pending| pending.barrier)
    }

    /// A checkpoint has begun. False: it is an old one, or known.
    pub(crate) fn trigger(
        &mut self,
        checkpoint: u64,
        begun_at: EpochMillis,
        batches: u64,
        now: Tick,
    ) -> bool {
        let known = self.pending.map_or(0, |pending| pending.barrier.checkpoint);
        if checkpoint <= self.done || checkpoint <= known {
            return false;
        }
        let barrier = Barrier { job: self.job, checkpoint, begun_at };
        let park_from = now + PARK_AFTER;
        self.pending = Some(Pending { barrier, since: now, park_from, batches_before: batches, seen: false });
        true
    }

    /// A barrier has come from some inputs and not from all: whoever sends them knows of the checkpoint. True: nothing was
    /// known of it before.
    pub(crate) fn seen(&mut self, barrier: Barrier, batches: u64, now: Tick) -> bool {
        let new = self.trigger(barrier.checkpoint, barrier.begun_at, batches, now);
        if let Some(pending) = &mut self.pending
            && pending.barrier.checkpoint == barrier.checkpoint
            && !pending.seen
        {
            (pending.seen, pending.park_from, pending.batches_before) = (true, now, batches);
        }
        new
    }

    /// Whether an element is taken in without room.
    pub(crate) fn parks(&self, batches: u64, channels: usize, now: Tick) -> bool {
        self.pending.is_some_and(|pending| {
            let allowed = PARKED_BATCHES.saturating_mul(channels as u64);
            now >= pending.park_from && batches.saturating_sub(pending.batches_before) < allowed
        })
    }

    /// When parking begins.
    pub(crate) fn next_wakeup(&self, now: Tick) -> Option<Tick> {
        self.pending.map(|pending| pending.park_from).filter(|at| *at > now)
    }

    /// Whether a checkpoint was taken part in, or given up.
    pub(crate) fn is_over(&self, checkpoint: u64) -> bool {
        checkpoint <= self.done
    }

    /// The snapshot of a checkpoint is taken. Yields how long it was waited for.
    pub(crate) fn taken(&mut self, checkpoint: u64, now: Tick) -> Duration {
        let pending = self.pending.take_if(|pending| pending.barrier.checkpoint <= checkpoint);
        self.done = self.done.max(checkpoint);
        pending.map_or(Duration::ZERO, |pending| now.since(pending.since))
    }

    /// A checkpoint is given up, and with it every older one.
    pub(crate) fn abort(&mut self, checkpoint: u64) {
        self.done = self.done.max(checkpoint);
        self.pending.take_if(|pending| pending.barrier.checkpoint <= checkpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: EpochMillis = EpochMillis(7);

    fn checkpointing() -> Checkpointing {
        Checkpointing::new(JobId::from_u128(1))
    }

    fn barrier(checkpoint: u64) -> Barrier {
        Barrier { job: JobId::from_u128(1), checkpoint, begun_at: AT }
    }

    fn ms(at: u64) -> Tick {
        Tick::from_millis(at)
    }

    #[test]
    fn parking_begins_fifty_milliseconds_after_the_word_or_with_the_first_barrier() {
        let mut task = checkpointing();
        assert!(!task.parks(0, 1, ms(1000)));
        assert!(task.trigger(1, AT, 0, ms(1000)));
        assert!(!task.parks(0, 1, ms(1049)) && task.parks(0, 1, ms(1050)));
        assert_eq!((task.next_wakeup(ms(1000)), task.next_wakeup(ms(1050))), (Some(ms(1050)), None));
        assert!(!task.seen(barrier(1), 3, ms(1010)));
        assert!(task.parks(3, 1, ms(1010)));
        assert_eq!(task.taken(1, ms(1030)), Duration::from_millis(30));
        assert!(!task.parks(3, 1, ms(1100)));
        assert!(task.seen(barrier(2), 3, ms(1100)));
        assert!(task.parks(3, 1, ms(1100)));
    }

    #[test]
    fn no_more_is_parked_than_channels_hold_twice() {
        let mut task = checkpointing();
        task.trigger(1, AT, 100, ms(0));
        assert!(task.parks(131, 2, ms(60)) && !task.parks(132, 2, ms(60)));
        // A barrier shows that the producers know by now.
        task.seen(barrier(1), 132, ms(70));
        task.seen(barrier(1), 160, ms(80));
        assert!(task.parks(163, 2, ms(90)) && !task.parks(164, 2, ms(90)));
    }

    #[test]
    fn words_that_come_late_or_twice_change_nothing() {
        let mut task = checkpointing();
        assert!(task.trigger(5, AT, 0, ms(0)));
        assert!(!task.trigger(5, AT, 0, ms(9)) && !task.trigger(4, AT, 0, ms(9)));
        task.abort(4);
        assert_eq!(task.pending(), Some(barrier(5)));
        task.abort(6);
        assert_eq!(task.pending(), None);
        assert!(!task.trigger(6, AT, 0, ms(10)), "it was given up before it began here");
        assert!(task.trigger(7, AT, 0, ms(10)));
        assert!(task.trigger(8, AT, 0, ms(20)), "a newer one takes its place");
        assert_eq!(task.pending(), Some(barrier(8)));
    }
}
