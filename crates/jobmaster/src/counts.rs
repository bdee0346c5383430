//! What a job has counted, over its subtasks and its lives.
//!
//! Counts of records tell what is in the output: a restart sets them back to what they were in the checkpoint that it
//! begins from, or to nothing. Counts of attempts (`calls`, `retries`, `timeouts`) tell what was asked of others and go on.

use wire::v1::Figures;

use crate::execution::Executions;

/// The sums of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// The sums over the current attempts and what they began with, and what was counted before.
    #[must_use]
    pub fn of(executions: &Executions, earlier: &Self) -> Self {
        let mut sum = *earlier;
        for execution in executions.iter() {
            sum.add(&execution.base);
            sum.add(&execution.figures);
        }
        sum
    }

    /// What goes on when records are read again.
    #[must_use]
    pub fn of_attempts(&self) -> Self {
        Self { calls: self.calls, retries: self.retries, timeouts: self.timeouts, ..Self::default() }
    }

    /// An attempt is over that will be made again: what it has asked of others stays asked.
    pub fn keep_attempts(&mut self, figures: &Figures) {
        self.calls += figures.calls;
        self.retries += figures.retries;
        self.timeouts += figures.timeouts;
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

/// Adds the counts of records, and none else.
pub fn add_records(figures: &mut Figures, more: &Figures) {
    figures.records_in += more.records_in;
    figures.records_out += more.records_out;
    figures.filtered += more.filtered;
    figures.dropped += more.dropped;
    figures.dead_letters += more.dead_letters;
    figures.empty += more.empty;
    figures.bytes_in += more.bytes_in;
    figures.bytes_out += more.bytes_out;
}

/// The counts of records alone.
#[must_use]
pub fn records_of(figures: &Figures) -> Figures {
    let mut records = Figures::default();
    add_records(&mut records, figures);
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is added once: the base of a restart is such a sum, and twice of anything grows beyond all bounds.
    #[test]
    fn the_records_of_figures_are_what_they_count() {
        let records = Figures {
            records_in: 1,
            records_out: 2,
            filtered: 3,
            dropped: 4,
            dead_letters: 5,
            empty: 6,
            bytes_in: 7,
            bytes_out: 8,
            ..Figures::default()
        };
        let figures = Figures { calls: 9, retries: 10, timeouts: 11, ..records.clone() };
        assert_eq!(records_of(&figures), records);
    }
}
