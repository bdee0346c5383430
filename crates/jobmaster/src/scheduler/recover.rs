//! Going on with a job of an earlier term of the job master.
//!
//! Losing the job master is no failure of the job: no restart strategy is asked. But its tasks begin again, so it counts
//! among the restarts, which tell why calls were made again.

use std::sync::Arc;
use std::time::Duration;

use job::graph::JobGraph;
use runtime_core::{Epoch, EpochMillis, JobId};
use wire::v1;

use super::regions::{FailOver, RegionPhase};
use super::{Effect, FailureEntry, Now, Phase, Scheduler, Timer, coordinator};
use crate::checkpoint::{CheckpointPointer, CompletedCheckpoint};
use crate::counts::Counts;
use crate::status::JobStatus;

/// The first pause before a store that cannot be reached is asked again; each further one is twice as long ...
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// ... up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What earlier terms have left of a job.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// When it was submitted.
    pub submitted_at: EpochMillis,
    /// The parts of its input. Absent: its outputs were not prepared, so nothing was ever deployed.
    pub splits: Option<Vec<v1::FileSplit>>,
    /// No checkpoint beyond this number was begun.
    pub reserved: u64,
    /// The checkpoints that can be restored, oldest first.
    pub completed: Vec<CheckpointPointer>,
    /// The output and the counts of a job whose tasks had come to their end, by that of a savepoint too: it only has to
    /// become visible.
    pub output: Option<(Vec<v1::StagedFile>, Counts)>,
    /// How often it was begun again.
    pub restarts: u64,
    /// How many checkpoints were completed.
    pub checkpoints: u64,
    /// Its counts; those of records are taken from the checkpoint.
    pub counts: Counts,
    /// The last failures, oldest first.
    pub failures: Vec<FailureEntry>,
}

/// Why none of the checkpoints could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFailure {
    /// The store cannot be reached; it is asked again.
    Unreachable(String),
    /// There is none that can be read.
    Damaged(String),
}

impl Scheduler {
    /// A job that an earlier term has left.
    #[must_use]
    pub fn recover(
        job: JobId,
        term: Epoch,
        graph: Arc<JobGraph>,
        slot_request_timeout: Duration,
        left: Recovered,
        now: Now,
    ) -> Self {
        let mut scheduler = Self::new(job, term, graph, slot_request_timeout, now);
        scheduler.timestamps.enter(JobStatus::Initializing, left.submitted_at);
        scheduler.restarts = left.restarts;
        scheduler.earlier = left.counts.of_attempts();
        scheduler.failures = left.failures.into();
        scheduler.checkpoints = coordinator(job, &scheduler.graph, left.reserved, left.checkpoints);
        let Some(splits) = left.splits else { return scheduler };
        scheduler.effects.clear();
        scheduler.list_splits(splits);
        if let Some((staged, counts)) = left.output {
            scheduler.earlier = counts;
            scheduler.phase = Phase::Saved(None);
            scheduler.enter(JobStatus::Running, now);
            scheduler.effects.push(Effect::Commit(staged));
            return scheduler;
        }
        // Slots that the task executors still hold for the job are taken meanwhile.
        scheduler.declare_slots();
        scheduler.enter(JobStatus::Created, now);
        if left.completed.is_empty() {
            scheduler.go_on(now);
        } else {
            scheduler.phase = Phase::Recovering;
            scheduler.unread.clone_from(&left.completed);
            scheduler.effects.push(Effect::ReadCheckpoint(left.completed));
        }
        scheduler
    }

    /// All regions begin again, by one restart.
    pub(super) fn go_on(&mut self, now: Now) {
        self.phase = Phase::Active;
        self.fail_over += 1;
        self.uncounted.insert(self.fail_over);
        let all = self.regions.all();
        self.regions.set(&all, RegionPhase::Due(FailOver { number: self.fail_over, at: now.tick }));
        self.enter(JobStatus::Restarting, now);
        self.settle(now);
    }

    /// A checkpoint to go on from, with those before it that are left; or none could be read.
    pub fn checkpoint_read(
        &mut self,
        result: Result<(CompletedCheckpoint, Vec<CheckpointPointer>), ReadFailure>,
        now: Now,
    ) {
        if self.phase != Phase::Recovering {
            return;
        }
        match result {
            Ok((latest, older)) => {
                self.failure = None;
                self.unread.clear();
                self.splits.adopt(&latest.finished_splits());
                if let Some(figures) = &latest.metadata.figures {
                    self.earlier.calls = self.earlier.calls.max(figures.calls);
                    self.earlier.retries = self.earlier.retries.max(figures.retries);
                    self.earlier.timeouts = self.earlier.timeouts.max(figures.timeouts);
                }
                self.checkpoints.adopt(latest, older);
                self.go_on(now);
            }
            Err(ReadFailure::Unreachable(cause)) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.read_tries.min(6)).min(LONGEST_PAUSE);
                self.read_tries += 1;
                self.failure = Some(format!(
                    "the checkpoint to go on from cannot be read; it is tried again in {pause:?}: {cause}"
                ));
                self.timer_number += 1;
                let timer = Timer::ReadCheckpoint(self.timer_number);
                self.effects.push(Effect::WakeAt(timer, now.tick + pause));
            }
            Err(ReadFailure::Damaged(cause)) => {
                self.job_failed(format!("no checkpoint to go on from can be read: {cause}"), true, now);
            }
        }
        self.settle(now);
    }

    pub(super) fn read_checkpoint_again(&mut self, number: u64) {
        if self.phase == Phase::Recovering && number == self.timer_number {
            self.effects.push(Effect::ReadCheckpoint(self.unread.clone()));
        }
    }
}
