//! Which part of the input goes to which subtask.
//!
//! Flink: `InputSplitAssigner`. The splits are listed once when the job starts and given out on request, in order. A
//! request carries a number that counts within its attempt: a repeated one is given the same answer, so that a lost
//! reply loses no split. A pure core.
//!
//! Nothing is stored of what was given to whom. A checkpoint says which splits are read to their end and which one each
//! subtask is reading, and how far; when subtasks begin again from it, whatever else they had taken is open again. What
//! others have taken is theirs.

use std::collections::{BTreeMap, BTreeSet};

use runtime_core::AttemptId;
use wire::v1;

/// A part of the input.
pub trait Split: Clone {
    /// Its number, by which a checkpoint names it.
    fn id(&self) -> u32;

    /// The subtask that is to read it; absent: whichever asks.
    fn reader(&self) -> Option<u32>;

    /// The rest of it.
    #[must_use]
    fn resumed(self, position: v1::ReadPosition) -> Self;
}

impl Split for v1::FileSplit {
    fn id(&self) -> u32 {
        self.id
    }

    fn reader(&self) -> Option<u32> {
        self.subtask
    }

    fn resumed(mut self, position: v1::ReadPosition) -> Self {
        self.resume = Some(position);
        self
    }
}

/// The splits of a job's source; `S` is what a split is.
#[derive(Debug)]
pub struct SplitAssigner<S> {
    all: BTreeMap<u32, S>,
    open: BTreeSet<u32>,
    /// Whose subtask has which split, finished or not. What is neither here nor open is finished by an earlier attempt.
    taken: BTreeMap<u32, u32>,
    /// Read to their end by attempts before the current ones.
    finished: BTreeSet<u32>,
    /// Of each subtask that began again, the split that it was reading.
    restored: BTreeMap<u32, v1::SplitPosition>,
    /// To be read on, by the subtask that was reading it: those of `restored` that were not asked for yet.
    kept: BTreeMap<u32, (u32, v1::ReadPosition)>,
    given: BTreeMap<(AttemptId, u64), Option<S>>,
    holders: BTreeSet<AttemptId>,
    parallelism: u32,
}

impl<S: Split> SplitAssigner<S> {
    /// All of `splits` open, for a source of this parallelism.
    #[must_use]
    pub fn new(splits: Vec<S>, parallelism: u32) -> Self {
        let all: BTreeMap<u32, S> = splits.into_iter().map(|split| (split.id(), split)).collect();
        Self {
            open: all.keys().copied().collect(),
            all,
            taken: BTreeMap::new(),
            finished: BTreeSet::new(),
            restored: BTreeMap::new(),
            kept: BTreeMap::new(),
            given: BTreeMap::new(),
            holders: BTreeSet::new(),
            parallelism,
        }
    }

    /// The answer to an attempt's request of this number: a split, or none if all are given out. The split that the
    /// subtask was reading comes first, from where it was.
    pub fn next(&mut self, attempt: AttemptId, request: u64) -> Option<S> {
        if let Some(given) = self.given.get(&(attempt, request)) {
            return given.clone();
        }
        let next = match self.kept.remove(&attempt.subtask) {
            Some((split, position)) => self.all.get(&split).cloned().map(|s| s.resumed(position)),
            None => self.take_open(attempt.subtask),
        };
        if let Some(split) = &next {
            self.taken.insert(split.id(), attempt.subtask);
            self.holders.insert(attempt);
        } else {
            self.holders.remove(&attempt);
        }
        self.given.insert((attempt, request), next.clone());
        next
    }

    /// The first open split that this subtask may read; those that it alone may read come first.
    fn take_open(&mut self, subtask: u32) -> Option<S> {
        let reader = |split: &u32| self.all.get(split).and_then(Split::reader);
        let own = self.open.iter().copied().find(|split| reader(split) == Some(subtask));
        let split = own.or_else(|| self.open.iter().copied().find(|split| reader(split).is_none()))?;
        self.open.remove(&split);
        self.all.get(&split).cloned()
    }

    /// These subtasks begin again from a checkpoint in which `finished` are read to their end and `reading` says what each
    /// subtask reads; from the beginning, if both are empty.
    pub fn restore(
        &mut self,
        subtasks: &BTreeSet<u32>,
        finished: &BTreeSet<u32>,
        reading: &BTreeMap<u32, v1::SplitPosition>,
    ) {
        let theirs: Vec<u32> = self
            .all
            .keys()
            .filter(|split| self.taken.get(*split).is_some_and(|subtask| subtasks.contains(subtask)))
            .copied()
            .collect();
        for split in theirs {
            self.taken.remove(&split);
            if finished.contains(&split) {
                self.finished.insert(split);
            } else {
                self.open.insert(split);
            }
        }
        for subtask in subtasks {
            if let Some((split, _)) = self.kept.remove(subtask) {
                self.open.insert(split);
            }
            self.restored.remove(subtask);
            let Some(at) = reading.get(subtask) else { continue };
            self.open.remove(&at.split);
            match at.position {
                Some(position) => {
                    self.kept.insert(*subtask, (at.split, position));
                    self.restored.insert(*subtask, *at);
                }
                // Nothing of it was read.
                None => {
                    self.open.insert(at.split);
                }
            }
        }
        self.given.retain(|(attempt, _), _| !subtasks.contains(&attempt.subtask));
        self.holders.retain(|attempt| !subtasks.contains(&attempt.subtask));
    }

    /// A new term takes the job up: of its splits these were read to their end.
    pub fn adopt(&mut self, finished: &BTreeSet<u32>) {
        self.open.retain(|split| !finished.contains(split));
        self.finished.extend(finished);
    }

    /// All splits, in order.
    pub fn all(&self) -> impl Iterator<Item = &S> {
        self.all.values()
    }

    /// Those that attempts before the current ones have read to their end.
    #[must_use]
    pub const fn finished(&self) -> &BTreeSet<u32> {
        &self.finished
    }

    /// The split with which the current attempt of a subtask begins, and where.
    #[must_use]
    pub fn restored(&self, subtask: u32) -> Option<v1::SplitPosition> {
        self.restored.get(&subtask).copied()
    }

    /// Each holder's part of a rate that the whole job may have.
    ///
    /// Before all subtasks have asked, those that will hold a split are counted in, so that the sum never exceeds
    /// the rate.
    #[must_use]
    pub fn share(&self, rate: f64) -> f64 {
        let coming = self.holders.len() + self.open.len() + self.kept.len();
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
}

/// Which split an attempt reads, by what it says of itself and what it began with: one that has not been given its first
/// split yet still has to read that on.
#[must_use]
pub fn reading_of(
    source: Option<&v1::SourceProgress>,
    restored: Option<v1::SplitPosition>,
) -> Option<v1::SplitPosition> {
    let said = source.and_then(|source| source.reading);
    let finished = |split: u32| source.is_some_and(|source| source.finished.contains(&split));
    said.or_else(|| restored.filter(|at| !finished(at.split)))
}

#[cfg(test)]
mod tests;
