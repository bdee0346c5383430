//! What all operators of a chain share: the time of the turn, the figures, and the way of dead letters.

use std::sync::Arc;
use std::time::Duration;

use connectors::source::file::LineNumbers;
use job::dead_letter::{DeadLetter, Reason, Undelivered};
use job::record::{JsonRecord, Origin};
use runtime_core::{EpochMillis, JobId, Tick};

use super::output::EdgeOutput;
use crate::exchange::Element;
use crate::figures::TaskFigures;
use crate::task::TaskError;

/// Shared by the operators of one chain.
pub(crate) struct Context {
    pub(crate) now: Tick,
    wall: EpochMillis,
    pub(crate) figures: Arc<TaskFigures>,
    /// Absent where the job has no dead letters.
    pub(crate) dead_letters: Option<EdgeOutput>,
    pub(crate) origin_job: JobId,
    lines: LineNumbers,
}

/// A record or line that could not be dealt with, and why.
pub(crate) struct Rejected<'a> {
    pub(crate) record: Undelivered<'a>,
    pub(crate) origin: &'a Origin,
    pub(crate) step: Option<&'a str>,
    pub(crate) reason: Reason,
    pub(crate) error: &'a str,
    /// How many calls were made for it, and when the first and the last began.
    pub(crate) attempts: Option<(u32, Tick, Tick)>,
}

impl<'a> Rejected<'a> {
    /// A record that a step without calls could not deal with.
    pub(crate) fn without_attempts(record: &'a JsonRecord, step: &'a str, error: &'a str) -> Self {
        Self {
            record: Undelivered::Record(record),
            origin: record.origin(),
            step: Some(step),
            reason: Reason::Error,
            error,
            attempts: None,
        }
    }
}

impl Context {
    pub(crate) fn new(
        figures: Arc<TaskFigures>,
        dead_letters: Option<EdgeOutput>,
        origin_job: JobId,
    ) -> Self {
        let lines = LineNumbers::default();
        Self { now: Tick::ZERO, wall: EpochMillis(0), figures, dead_letters, origin_job, lines }
    }

    pub(crate) fn begin_turn(&mut self, now: Tick, wall: EpochMillis) {
        self.now = now;
        self.wall = wall;
    }

    /// Whether a dead letter would be taken.
    pub(crate) fn has_room(&self) -> bool {
        self.dead_letters.as_ref().is_none_or(EdgeOutput::has_room)
    }

    /// Sends something to the dead letters.
    ///
    /// # Errors
    ///
    /// The job has none; a job file that asks for them then is refused, so this is a defect of the plan.
    pub(crate) fn dead_letter(&mut self, rejected: &Rejected<'_>) -> Result<(), TaskError> {
        let line = self.line_of(rejected.origin);
        let attempts = rejected.attempts;
        let letter = DeadLetter {
            record: rejected.record,
            step: rejected.step,
            reason: rejected.reason,
            error: rejected.error,
            attempts: attempts.map_or(0, |(count, ..)| count),
            first_attempt_at: attempts.map(|(_, first, _)| self.wall_at(first)),
            last_attempt_at: attempts.map(|(.., last)| self.wall_at(last)),
            file: &rejected.origin.file,
            line,
            offset: rejected.origin.offset,
        };
        let now = self.now;
        let Some(output) = &mut self.dead_letters else {
            return Err(TaskError::unrecoverable(format!(
                "{}: {}; the job has no dead letters to send it to",
                place(rejected.origin, line),
                rejected.error
            )));
        };
        output.push(Element::DeadLetter(letter.line()), now);
        self.figures.dead_letters.add(1);
        Ok(())
    }

    /// Where a record was read, for people.
    pub(crate) fn place(&mut self, origin: &Origin) -> String {
        let line = self.line_of(origin);
        place(origin, line)
    }

    /// The line counted from the start of the file; from the start of the split where the file cannot be read any more.
    fn line_of(&mut self, origin: &Origin) -> u64 {
        self.lines.resolve(origin).unwrap_or(origin.line)
    }

    /// The wall clock at a moment of the past.
    fn wall_at(&self, at: Tick) -> EpochMillis {
        let ago: Duration = self.now.since(at);
        EpochMillis(self.wall.0.saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX)))
    }
}

fn place(origin: &Origin, line: u64) -> String {
    format!("{}, line {line}, byte offset {}", origin.file, origin.offset)
}
