//! What a job has counted, over its subtasks and its lives.
//!
//! Counts of records belong to the current life: a restart from the beginning sets them back. Counts of attempts
//! (`calls`, `retries`, `timeouts`) tell what was asked of others and go on.

use wire::v1::Figures;

use crate::execution::Executions;

/// The sums of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read, except empty ones.
    pub records_in: u64,
    /// Records in the sink.
    pub records_out: u64,
    /// Records that a filter kept back.
    pub filtered: u64,
    /// Records left out by a policy.
    pub dropped: u64,
    /// Records and lines that became dead letters.
    pub dead_letters: u64,
    /// Empty outcomes, whatever became of the record.
    pub empty: u64,
    /// Attempts begun.
    pub calls: u64,
    /// Attempts beyond a record's first.
    pub retries: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
}

impl Counts {
    /// The sums over the current attempts, and what earlier ones have asked of others.
    #[must_use]
    pub fn of(executions: &Executions, earlier: &Self) -> Self {
        let mut sum = Self {
            calls: earlier.calls,
            retries: earlier.retries,
            timeouts: earlier.timeouts,
            ..Self::default()
        };
        for execution in executions.iter() {
            sum.add(&execution.figures);
        }
        sum
    }

    fn add(&mut self, figures: &Figures) {
        self.records_in += figures.records_in;
        self.records_out += figures.records_out;
        self.filtered += figures.filtered;
        self.dropped += figures.dropped;
        self.dead_letters += figures.dead_letters;
        self.empty += figures.empty;
        self.calls += figures.calls;
        self.retries += figures.retries;
        self.timeouts += figures.timeouts;
    }
}

/// Takes a later report of an attempt; one that was overtaken changes nothing back.
pub fn take_report(known: &mut Figures, reported: Figures) {
    let moved_on = reported.records_in >= known.records_in
        && reported.records_out >= known.records_out
        && reported.calls >= known.calls;
    if moved_on {
        *known = reported;
    }
}
