//! Tasks that were told to stop and do not.
//!
//! A task stops within milliseconds, unless something in it holds its thread: a call written in Rust that blocks, a file on
//! a disk that hangs. Its slot stays taken and its job waits for its end (FLINK-4715). No thread can be ended from outside,
//! so the task is told again and named in the log now and then; in the end the process gives up, and what it runs for
//! others goes on elsewhere. It does not matter how far the task had come: one that never began to run counts as well
//! (FLINK-37024).

use std::time::Duration;

use runtime_core::{AttemptId, Tick};

use super::{Fatal, TaskExecutorProcessor};

/// How long tasks may take to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// `task.cancellation.interval`
    pub(crate) interval: Duration,
    /// `task.cancellation.timeout`
    pub(crate) timeout: Option<Duration>,
}

/// A task was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cancellation {
    first: Tick,
    last: Tick,
}

/// What is to be done about a task that should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Wait,
    TellAgain,
    GiveUp,
}

impl Cancellation {
    pub(super) const fn at(now: Tick) -> Self {
        Self { first: now, last: now }
    }

    /// When it is to be looked at again.
    pub(super) fn due(&self, patience: &Patience) -> Tick {
        let again = self.last + patience.interval;
        patience.timeout.map_or(again, |timeout| again.min(self.first + timeout))
    }

    fn look(&mut self, now: Tick, patience: &Patience) -> Verdict {
        if patience.timeout.is_some_and(|timeout| now >= self.first + timeout) {
            Verdict::GiveUp
        } else if now >= self.last + patience.interval {
            self.last = now;
            Verdict::TellAgain
        } else {
            Verdict::Wait
        }
    }
}

impl TaskExecutorProcessor {
    /// When the next task that does not stop is to be looked at.
    pub(super) fn cancellation_due(&self) -> Option<Tick> {
        let patience = &self.shared.patience;
        let tasks = self.jobs.values().flat_map(|job| job.tasks.values());
        let cancelled = tasks.filter(|task| task.ended.is_none()).filter_map(|task| task.cancelled);
        cancelled.map(|cancellation| cancellation.due(patience)).min()
    }

    /// Tells tasks again that should have stopped; the first that never will ends the process.
    pub(super) fn look_at_cancelled_tasks(&mut self) {
        let (now, patience) = (self.now(), self.shared.patience);
        let mut stuck: Option<(AttemptId, String, Duration)> = None;
        for (attempt, task) in self.jobs.values_mut().flat_map(|job| &mut job.tasks) {
            let Some(cancellation) = task.cancelled.as_mut().filter(|_| task.ended.is_none()) else {
                continue;
            };
            let waited = now.since(cancellation.first);
            match cancellation.look(now, &patience) {
                Verdict::Wait => {}
                Verdict::TellAgain => {
                    tracing::warn!(
                        %attempt, ?waited,
                        "task {} was told to stop and has not: something holds its thread, such as a call that blocks",
                        task.name
                    );
                    task.handle.cancel();
                }
                Verdict::GiveUp => stuck = stuck.or_else(|| Some((*attempt, task.name.clone(), waited))),
            }
        }
        if let Some((attempt, task, waited)) = stuck {
            self.fatal(Fatal::TaskStuck { task, attempt, waited });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn tick(secs: u64) -> Tick {
        Tick::ZERO + SECOND * u32::try_from(secs).unwrap()
    }

    /// What is done, and when, by whoever looks whenever it is due.
    fn looks(patience: Patience, until: u64) -> Vec<(u64, Verdict)> {
        let mut cancellation = Cancellation::at(tick(10));
        let mut done = Vec::new();
        for now in 10..until {
            let due = cancellation.due(&patience) <= tick(now);
            let verdict = cancellation.look(tick(now), &patience);
            assert_eq!(
                due,
                verdict != Verdict::Wait,
                "it is looked at when there is something to do, at {now}"
            );
            if due {
                done.push((now, verdict));
            }
            if verdict == Verdict::GiveUp {
                break;
            }
        }
        done
    }

    #[test]
    fn c083_a_task_that_ignores_its_end_is_told_each_30_s_and_given_up_at_180_s() {
        let patience = Patience { interval: 30 * SECOND, timeout: Some(180 * SECOND) };
        let again = [40, 70, 100, 130, 160].map(|at| (at, Verdict::TellAgain));
        let expected: Vec<_> = again.into_iter().chain([(190, Verdict::GiveUp)]).collect();
        assert_eq!(looks(patience, 1_000), expected);
    }

    #[test]
    fn without_a_timeout_it_is_told_again_for_ever() {
        let patience = Patience { interval: 30 * SECOND, timeout: None };
        let done = looks(patience, 1_000);
        assert_eq!(done.len(), 32);
        assert!(done.iter().all(|(_, verdict)| *verdict == Verdict::TellAgain));
    }
}
