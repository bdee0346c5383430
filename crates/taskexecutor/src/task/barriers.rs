//! What a task does about checkpoints in its turns.

use runtime_core::{Barrier, EpochMillis, Tick};

use super::mailbox::Order;
use super::snapshot::{Taken, TaskSnapshot};
use super::turn::{Head, Runner};
use crate::chain::Progress;

impl Runner {
    /// Does what the job master says about a checkpoint. What is said late or twice changes nothing.
    pub(super) fn obey(&mut self, order: Order, now: Tick) {
        match order {
            Order::Trigger { checkpoint, begun_at } => self.begin(checkpoint, begun_at, now),
            Order::Confirm(checkpoint) => {
                self.chain.confirmed(checkpoint);
                self.savepoints.confirmed(checkpoint);
            }
            Order::Abort(checkpoint) => {
                self.abort(checkpoint);
                self.savepoints.aborted(checkpoint);
            }
            Order::Announce { checkpoint, target } => self.savepoints.announce(checkpoint, target),
            Order::Drain => self.drain_source(),
        }
    }

    fn begin(&mut self, checkpoint: u64, begun_at: EpochMillis, now: Tick) {
        let older = self.checkpointing.pending();
        // The end has left: this task's last word is its answer.
        if self.chain.has_ended() || !self.checkpointing.trigger(checkpoint, begun_at, self.batches(), now) {
            return;
        }
        self.chain.cx.figures.checkpoints.started.add(1);
        if let Some(older) = older {
            self.replaced(older.checkpoint, checkpoint);
        }
        // A source has nothing to wait for, nor room: whatever it has given out is in the chain.
        if let Head::Source(_) = &self.head
            && let Some(barrier) = self.checkpointing.pending()
        {
            self.checkpoint(barrier);
        }
    }

    fn abort(&mut self, checkpoint: u64) {
        self.checkpointing.abort(checkpoint);
        if let Head::Gates(gates) = &mut self.head {
            gates.abort(checkpoint);
        }
    }

    /// An older checkpoint has not come to an end before a newer one.
    fn replaced(&mut self, older: u64, newer: u64) {
        if let Head::Gates(gates) = &mut self.head {
            gates.abort(older);
        }
        let cause = format!("checkpoint {newer} began before all inputs had brought the barrier of this one");
        self.taken.push(Taken { checkpoint: older, outcome: Err(cause), savepoint: None });
    }

    /// Takes notice of a barrier that has come from some inputs.
    fn look_at_the_gates(&mut self) {
        let Head::Gates(gates) = &self.head else { return };
        let Some(barrier) = gates.aligning() else { return };
        let (older, now, batches) = (self.checkpointing.pending(), self.chain.cx.now, gates.batches());
        if self.checkpointing.seen(barrier, batches, now) {
            self.chain.cx.figures.checkpoints.started.add(1);
            if let Some(older) = older {
                self.replaced(older.checkpoint, barrier.checkpoint);
            }
        }
    }

    /// Whether the next element is to be taken in without room: it needs none, or stands before a barrier.
    pub(super) fn parks(&mut self) -> bool {
        self.look_at_the_gates();
        let Head::Gates(gates) = &self.head else { return false };
        if gates.takes_no_room() {
            return true;
        }
        let (batches, channels) = (gates.batches(), gates.channels());
        self.checkpointing.parks(batches, channels, self.chain.cx.now) && self.chain.can_park()
    }

    /// While anything is parked the producers send nothing but barriers, so that not every checkpoint adds to it.
    pub(super) fn pause_producers(&mut self) {
        if let Head::Gates(gates) = &mut self.head {
            gates.pause(self.chain.parked() > 0);
        }
    }

    /// The input has ended, all of it, before its barrier came: none will.
    pub(super) fn checkpoint_at_the_end(&mut self) {
        if !self.chain.has_ended()
            && let Some(barrier) = self.checkpointing.pending()
        {
            self.checkpoint(barrier);
        }
    }

    /// The barrier stands between two elements at the head of the chain.
    pub(super) fn checkpoint(&mut self, barrier: Barrier) {
        let now = self.chain.cx.now;
        // It was given up while it stood in the gates.
        if self.checkpointing.is_over(barrier.checkpoint) {
            return;
        }
        let older = self.checkpointing.pending().filter(|older| older.checkpoint < barrier.checkpoint);
        if self.checkpointing.seen(barrier, self.batches(), now) {
            self.chain.cx.figures.checkpoints.started.add(1);
        }
        if let Some(older) = older {
            self.replaced(older.checkpoint, barrier.checkpoint);
        }
        let waited = self.checkpointing.taken(barrier.checkpoint, now);
        // A task that was told to stop adds nothing, nor does it stage anything.
        if self.mailbox.is_cancelled() {
            return;
        }
        let figures = &self.chain.cx.figures.checkpoints;
        figures.alignment_ms.set(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
        let source = self.progress();
        let outcome = self.chain.snapshot(barrier);
        let outcome = outcome.map(|(held, snapshot)| (held, TaskSnapshot { source, ..snapshot }));
        let savepoint = self.savepoints.taken(barrier.checkpoint, outcome.is_ok());
        self.taken.push(Taken { checkpoint: barrier.checkpoint, outcome, savepoint });
    }

    /// What came of checkpoints in this turn.
    pub(crate) fn take_taken(&mut self) -> Vec<Taken> {
        std::mem::take(&mut self.taken)
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        match &self.head {
            Head::Source(source) => Some(source.progress()),
            Head::Gates(_) => None,
        }
    }

    fn batches(&self) -> u64 {
        match &self.head {
            Head::Source(_) => 0,
            Head::Gates(gates) => gates.batches(),
        }
    }
}
