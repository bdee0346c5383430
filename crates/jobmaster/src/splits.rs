//! Which part of the input goes to which subtask.
//!
//! Flink: `InputSplitAssigner`. The splits are listed once when the job starts and given out on request, in order. A
//! request carries a number that counts within its attempt: a repeated one is given the same answer, so that a lost
//! reply loses no split. After a restart from the beginning all splits are open again. A pure core.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use runtime_core::AttemptId;

/// The splits of a job's source; `S` is what a split is.
#[derive(Debug)]
pub struct SplitAssigner<S> {
    all: Vec<S>,
    open: VecDeque<usize>,
    given: BTreeMap<(AttemptId, u64), Option<usize>>,
    holders: BTreeSet<AttemptId>,
    parallelism: u32,
}

impl<S: Clone> SplitAssigner<S> {
    /// All of `splits` open, for a source of this parallelism.
    #[must_use]
    pub fn new(splits: Vec<S>, parallelism: u32) -> Self {
        let open = (0..splits.len()).collect();
        Self { all: splits, open, given: BTreeMap::new(), holders: BTreeSet::new(), parallelism }
    }

    /// The answer to an attempt's request of this number: a split, or none if all are given out.
    pub fn next(&mut self, attempt: AttemptId, request: u64) -> Option<S> {
        let index = if let Some(given) = self.given.get(&(attempt, request)) {
            *given
        } else {
            let next = self.open.pop_front();
            self.given.insert((attempt, request), next);
            next
        };
        if index.is_some() {
            self.holders.insert(attempt);
        } else {
            self.holders.remove(&attempt);
        }
        self.all.get(index?).cloned()
    }

    /// Each holder's part of a rate that the whole job may have.
    ///
    /// Before all subtasks have asked, those that will hold a split are counted in, so that the sum never exceeds
    /// the rate.
    #[must_use]
    pub fn share(&self, rate: f64) -> f64 {
        let coming = self.holders.len() + self.open.len();
        let sharing = coming.min(self.parallelism as usize).max(self.holders.len()).max(1);
        rate / f64::from(u32::try_from(sharing).unwrap_or(u32::MAX))
    }

    /// The attempts that hold a split.
    pub fn holders(&self) -> impl Iterator<Item = &AttemptId> {
        self.holders.iter()
    }

    /// An attempt has ended: its part of the rate is free.
    pub fn ended(&mut self, attempt: &AttemptId) {
        self.holders.remove(attempt);
    }

    /// Opens all splits again.
    pub fn reset(&mut self) {
        self.open = (0..self.all.len()).collect();
        self.given.clear();
        self.holders.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::{Epoch, JobId, VertexId};

    fn attempt(subtask: u32) -> AttemptId {
        AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(0), subtask, attempt: 0 }
    }

    #[test]
    fn each_split_is_given_once_and_a_repeated_request_gets_the_same() {
        let mut splits = SplitAssigner::new(vec!["a", "b"], 2);
        assert_eq!(splits.next(attempt(0), 1), Some("a"));
        assert_eq!(splits.next(attempt(0), 1), Some("a"));
        assert_eq!(splits.next(attempt(1), 1), Some("b"));
        assert_eq!(splits.next(attempt(1), 2), None);
        assert_eq!(splits.next(attempt(1), 2), None);
    }

    #[test]
    fn a_restart_opens_all_splits_again() {
        let mut splits = SplitAssigner::new(vec!["a"], 1);
        assert_eq!(splits.next(attempt(0), 1), Some("a"));
        splits.reset();
        assert_eq!(splits.next(AttemptId { attempt: 1, ..attempt(0) }, 1), Some("a"));
    }

    #[test]
    fn the_rate_is_shared_by_those_that_have_or_will_have_a_split() {
        let mut splits = SplitAssigner::new(vec!["a", "b", "c"], 2);
        splits.next(attempt(0), 1);
        assert_eq!(splits.share(100.0), 50.0, "the second subtask will get one");
        splits.next(attempt(1), 1);
        splits.next(attempt(0), 2);
        splits.next(attempt(0), 3);
        assert_eq!(splits.share(100.0), 100.0, "the first has ended");
        let mut one = SplitAssigner::new(vec!["a"], 4);
        one.next(attempt(0), 1);
        assert_eq!(one.share(100.0), 100.0, "a single split has a single reader");
    }
}
