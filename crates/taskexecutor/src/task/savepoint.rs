//! What a task does about savepoints beyond what it does about checkpoints.
//!
//! A savepoint is announced to all tasks before it begins: its barrier may come faster by a channel than the word of it
//! by the job master, and a task has to know then where its state is to go. Behind the barrier of one that ends the job a
//! task *stands still*: it takes nothing in and gives nothing out until it hears what became of the savepoint. What was
//! complete is its end; what was given up never was, and it goes on. (Flink: a synchronous savepoint.)

use runtime_core::Tick;
use wire::v1;

use super::turn::{Head, Runner, Turn};

/// A savepoint that will begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavepointTarget {
    /// The folder that the state goes to, as a URL.
    pub url: String,
    /// Whether it ends the job.
    pub stop: bool,
}

impl From<v1::SavepointTarget> for SavepointTarget {
    fn from(target: v1::SavepointTarget) -> Self {
        Self { url: target.url, stop: target.stop }
    }
}

/// How a task stands to savepoints.
#[derive(Debug, Default)]
pub(super) struct Savepoints {
    announced: Option<(u64, SavepointTarget)>,
    still: Still,
}

/// Whether a task stands still, behind which savepoint.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Still {
    #[default]
    No,
    Behind(u64),
    /// The savepoint is complete: the task is over.
    Over,
}

impl Savepoints {
    /// A savepoint will begin with this number. Only the newest counts: one is made at a time.
    pub(super) fn announce(&mut self, checkpoint: u64, target: SavepointTarget) {
        self.announced = Some((checkpoint, target));
    }

    /// The snapshot for this number is taken, well or not. Yields whether it is that of a savepoint.
    pub(super) fn taken(&mut self, checkpoint: u64, well: bool) -> Option<SavepointTarget> {
        let (_, target) = self.announced.take_if(|(announced, _)| *announced == checkpoint)?;
        if target.stop && well {
            self.still = Still::Behind(checkpoint);
        }
        Some(target)
    }

    pub(super) fn confirmed(&mut self, checkpoint: u64) {
        if self.still == Still::Behind(checkpoint) {
            self.still = Still::Over;
        }
    }

    pub(super) fn aborted(&mut self, checkpoint: u64) {
        self.announced.take_if(|(announced, _)| *announced <= checkpoint);
        if self.still == Still::Behind(checkpoint) {
            self.still = Still::No;
        }
    }

    pub(super) fn stands_still(&self) -> bool {
        self.still != Still::No
    }

    pub(super) fn is_over(&self) -> bool {
        self.still == Still::Over
    }
}

impl Runner {
    /// A turn in which nothing moves but what is on its way out already.
    pub(super) fn stand_still(&mut self, now: Tick) -> Turn {
        if self.savepoints.is_over() {
            return Turn::Stopped;
        }
        self.chain.flush(true);
        if now >= self.publish_at() {
            self.publish(now);
        }
        Turn::Wait { until: Some(self.publish_at()), backpressured: false }
    }

    /// The job is drained: its sources read no further.
    pub(super) fn drain_source(&mut self) {
        if let Head::Source(source) = &mut self.head {
            source.drain();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(stop: bool) -> SavepointTarget {
        SavepointTarget { url: "file:///s".into(), stop }
    }

    #[test]
    fn a_task_stands_still_behind_a_stop_and_goes_on_when_it_is_given_up() {
        let mut task = Savepoints::default();
        task.announce(3, target(true));
        assert_eq!(task.taken(2, true), None, "another checkpoint is none");
        assert_eq!(task.taken(3, true), Some(target(true)));
        task.confirmed(2);
        task.aborted(2);
        assert!(task.stands_still() && !task.is_over(), "what is said of others changes nothing");
        task.aborted(3);
        assert!(!task.stands_still());
        task.announce(4, target(true));
        task.taken(4, true);
        task.confirmed(4);
        assert!(task.is_over());
    }

    #[test]
    fn nobody_stands_still_behind_a_savepoint_that_ends_nothing_or_was_declined() {
        let mut task = Savepoints::default();
        task.announce(3, target(false));
        assert_eq!(task.taken(3, true), Some(target(false)));
        task.announce(4, target(true));
        assert_eq!(task.taken(4, false), Some(target(true)));
        task.announce(5, target(true));
        task.aborted(5);
        assert_eq!(task.taken(5, true), None);
        assert!(!task.stands_still());
    }
}
