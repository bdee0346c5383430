//! When a barrier has come from every input of a task.
//!
//! Flink: `CheckpointBarrierHandler`, aligned. An input that has brought the barrier of a checkpoint, or has ended, is
//! blocked until all have: what it brings behind its barrier is of after the checkpoint. Checkpoints only ever grow, so a
//! barrier of an older one than was dealt with is late and means nothing.

use runtime_core::Barrier;

/// Aligns the barriers of a fixed number of inputs.
#[derive(Debug)]
pub struct Alignment {
    ended: Vec<bool>,
    /// The inputs that have brought the barrier that is being aligned.
    blocked: Vec<bool>,
    aligning: Option<Barrier>,
    /// No checkpoint up to this one is aligned any more.
    done: u64,
}

impl Alignment {
    /// An alignment of so many inputs, none of which has ended.
    #[must_use]
    pub fn new(inputs: usize) -> Self {
        Self { ended: vec![false; inputs], blocked: vec![false; inputs], aligning: None, done: 0 }
    }

    /// The barrier that has come from some inputs and not from all.
    #[must_use]
    pub fn aligning(&self) -> Option<Barrier> {
        self.aligning
    }

    /// Whether an input is not to be read on for now.
    #[must_use]
    pub fn is_blocked(&self, input: usize) -> bool {
        self.blocked.get(input).copied().unwrap_or(false)
    }

    /// A barrier came from an input. Yields the barrier that has now come from all, once; a newer one than that of the
    /// checkpoint which is being aligned takes its place.
    pub fn barrier(&mut self, input: usize, barrier: Barrier) -> Option<Barrier> {
        let aligning = self.aligning.map_or(0, |aligning| aligning.checkpoint);
        if barrier.checkpoint < aligning || barrier.checkpoint <= self.done {
            return None;
        }
        if barrier.checkpoint > aligning {
            self.blocked.fill(false);
            self.aligning = Some(barrier);
        }
        if let Some(blocked) = self.blocked.get_mut(input) {
            *blocked = true;
        }
        self.settle()
    }

    /// An input has ended. Yields the barrier that only this input had not brought.
    pub fn end(&mut self, input: usize) -> Option<Barrier> {
        if let Some(ended) = self.ended.get_mut(input) {
            *ended = true;
        }
        self.settle()
    }

    /// The checkpoint is given up, and with it every older one: their barriers are dropped when they come.
    pub fn abort(&mut self, checkpoint: u64) {
        self.done = self.done.max(checkpoint);
        if self.aligning.is_some_and(|aligning| aligning.checkpoint <= checkpoint) {
            self.aligning = None;
            self.blocked.fill(false);
        }
    }

    fn settle(&mut self) -> Option<Barrier> {
        if !self.ended.iter().zip(&self.blocked).all(|(ended, blocked)| *ended || *blocked) {
            return None;
        }
        let barrier = self.aligning.take()?;
        self.done = barrier.checkpoint;
        self.blocked.fill(false);
        Some(barrier)
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::{EpochMillis, JobId};

    use super::*;

    fn barrier(checkpoint: u64) -> Barrier {
        Barrier { job: JobId::from_u128(1), checkpoint, begun_at: EpochMillis(7) }
    }

    #[derive(Clone, Copy)]
    enum In {
        B(usize, u64),
        End(usize),
        Abort(u64),
    }
    use In::{Abort, B, End};

    /// For each step `a3` where 3 is aligned by it, or else which inputs are blocked then.
    fn run(inputs: usize, script: &[In]) -> Vec<String> {
        let mut alignment = Alignment::new(inputs);
        let told = |step: &In| {
            let aligned = match *step {
                B(input, checkpoint) => alignment.barrier(input, barrier(checkpoint)),
                End(input) => alignment.end(input),
                Abort(checkpoint) => {
                    alignment.abort(checkpoint);
                    None
                }
            };
            let blocked: Vec<_> =
                (0..inputs).filter(|i| alignment.is_blocked(*i)).map(|i| i.to_string()).collect();
            assert!(aligned.is_none() || blocked.is_empty());
            assert_eq!(alignment.aligning().is_some(), !blocked.is_empty());
            aligned.map_or(blocked.join(","), |barrier| format!("a{}", barrier.checkpoint))
        };
        script.iter().map(told).collect()
    }

    #[test]
    fn a_barrier_goes_on_once_it_has_come_from_every_input() {
        let cases: &[(&str, usize, &[In], &[&str])] = &[
            ("one input has nothing to wait for", 1, &[B(0, 1), B(0, 2)], &["a1", "a2"]),
            ("inputs wait for each other", 3, &[B(1, 1), B(0, 1), B(2, 1)], &["1", "0,1", "a1"]),
            ("a repeated barrier changes nothing", 2, &[B(0, 1), B(0, 1), B(1, 1)], &["0", "0", "a1"]),
            ("an end counts, before", 2, &[End(0), B(1, 1)], &["", "a1"]),
            ("an end counts, after", 2, &[B(0, 1), End(1), B(0, 2)], &["0", "a1", "a2"]),
            ("the end of all aligns nothing by itself", 2, &[End(0), End(1)], &["", ""]),
            ("a newer barrier gives up the older", 2, &[B(0, 1), B(1, 2), B(0, 2)], &["0", "1", "a2"]),
            ("a newer barrier may be the last", 2, &[End(0), B(1, 3)], &["", "a3"]),
            (
                "a late barrier is dropped",
                2,
                &[B(0, 2), B(1, 1), B(1, 2), B(0, 2), B(0, 1)],
                &["0", "0", "a2", "", ""],
            ),
            (
                "an abort unblocks, and what comes of it later is dropped",
                2,
                &[B(0, 1), Abort(1), B(1, 1), B(0, 2), B(1, 2)],
                &["0", "", "", "0", "a2"],
            ),
            ("an abort of an older one changes nothing", 2, &[B(0, 2), Abort(1), B(1, 2)], &["0", "0", "a2"]),
            ("an abort may come before every barrier", 2, &[Abort(1), B(0, 1), B(1, 1)], &["", "", ""]),
        ];
        for (name, inputs, script, expected) in cases {
            assert_eq!(&run(*inputs, script), expected, "{name}");
        }
    }

    #[test]
    fn the_barrier_that_goes_on_says_when_its_checkpoint_began() {
        assert_eq!(Alignment::new(1).barrier(0, barrier(4)), Some(barrier(4)));
    }
}
