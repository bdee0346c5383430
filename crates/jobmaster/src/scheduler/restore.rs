//! Beginning again: from the latest completed checkpoint, or from the beginning where there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use runtime_core::AttemptId;

use super::regions::RegionPhase;
use super::{Effect, Now, Phase, Scheduler, Timer};
use crate::status::{ExecutionState, JobStatus};

impl Scheduler {
    /// Regions whose attempts have all ended pause, or are due already.
    pub(super) fn end_stops(&mut self, now: Now) {
        for index in 0..self.regions.0.len() {
            let Some(region) = self.regions.0.get(index) else { continue };
            let RegionPhase::Stopping(fail_over) = region.phase else { continue };
            let over = |member: &_| self.executions.get(*member).is_none_or(|e| e.state.is_terminal());
            if !region.members.iter().all(over) {
                continue;
            }
            let phase = if fail_over.at <= now.tick {
                RegionPhase::Due(fail_over)
            } else {
                self.timer_number += 1;
                self.effects.push(Effect::WakeAt(Timer::Restart(self.timer_number), fail_over.at));
                RegionPhase::Pausing(fail_over, self.timer_number)
            };
            self.regions.set(&BTreeSet::from([index]), phase);
        }
    }

    /// The regions that are due begin again together, unless a checkpoint is just becoming complete or the outputs are in
    /// use: what they begin from and where their output ends must stand first.
    pub(super) fn restore_due(&mut self, now: Now) {
        let finalizing = self.checkpoints.is_finalizing();
        if self.phase != Phase::Active || self.files_in_use || finalizing {
            return;
        }
        let due = self.regions.select(|region| matches!(region.phase, RegionPhase::Due(_)));
        if due.is_empty() {
            return;
        }
        for index in &due {
            if let Some(RegionPhase::Due(fail_over)) = self.regions.0.get(*index).map(|r| r.phase)
                && self.uncounted.remove(&fail_over.number)
            {
                self.restarts += 1;
            }
        }
        let stopped = self.renew(&due, now);
        let everything = due.len() == self.regions.0.len();
        let latest = self.checkpoints.latest();
        let commit = latest.map(|latest| latest.staged()).unwrap_or_default();
        self.regions.set(&due, RegionPhase::Restoring);
        self.files_in_use = true;
        self.effects.push(Effect::Sweep { commit, attempts: (!everything).then_some(stopped) });
        self.checkpoints.restored(now);
    }

    /// Gives the subtasks of these regions new attempts, with the splits and the counts of the latest checkpoint. A region
    /// that has ended in it stays so. Returns the attempts of before.
    fn renew(&mut self, regions: &BTreeSet<usize>, now: Now) -> Vec<AttemptId> {
        let latest = self.checkpoints.latest().map(Arc::clone);
        let mut stopped = Vec::new();
        let mut sources = BTreeSet::new();
        for index in regions {
            let Some(region) = self.regions.0.get(*index) else { continue };
            let part = |member: &crate::execution::Subtask| latest.as_ref()?.subtask(member.0, member.1);
            let ended = region.members.iter().all(|member| part(member).is_some_and(|part| part.finished));
            for member in &region.members {
                let Some(execution) = self.executions.get_mut(*member) else { continue };
                stopped.push(execution.id);
                self.earlier.keep_attempts(&execution.figures);
                let snapshot = part(member).and_then(|part| part.snapshot.as_ref());
                let records = latest.as_ref().map(|latest| latest.records(member.0, member.1));
                execution.renew(records.unwrap_or_default());
                if ended && let Some(snapshot) = snapshot {
                    execution.state = ExecutionState::Finished;
                    execution.ended_at = Some(now.wall);
                    // Its output is made visible now, its splits and counts are kept as those of earlier attempts.
                    execution.last = Some(Box::new(wire::v1::TaskSnapshot {
                        committed_length: snapshot.committed_length,
                        ..wire::v1::TaskSnapshot::default()
                    }));
                }
                if member.0.0 == 0 {
                    sources.insert(member.1);
                }
            }
            self.pool.vacate(&region.groups(), now.tick);
        }
        let finished = latest.as_ref().map(|latest| latest.finished_splits()).unwrap_or_default();
        let reading: BTreeMap<_, _> =
            latest.iter().flat_map(|latest| latest.reading()).map(|(subtask, at)| (subtask, *at)).collect();
        self.splits.restore(&sources, &finished, &reading);
        stopped
    }

    /// The output of the latest checkpoint is visible and what else stopped attempts had left is gone; or it could not be
    /// made visible, which is a failure of the job.
    pub fn swept(&mut self, result: Result<(), String>, now: Now) {
        if let Phase::Sweeping(status) = self.phase {
            self.ended(status, now);
            return;
        }
        self.files_in_use = false;
        let restoring = self.regions.select(|region| region.phase == RegionPhase::Restoring);
        if self.phase == Phase::Active && !restoring.is_empty() {
            match result {
                Ok(()) => self.restored(restoring, now),
                Err(cause) => self.regions_failed(&restoring, cause, false, now),
            }
        }
        self.settle(now);
    }

    fn restored(&mut self, regions: BTreeSet<usize>, now: Now) {
        self.checkpoints.committed_again();
        let executions = &self.executions;
        let has_ended = |index: &usize| {
            self.regions
                .members(&BTreeSet::from([*index]))
                .iter()
                .all(|member| executions.get(*member).is_some_and(|e| e.state == ExecutionState::Finished))
        };
        let (over, begins): (BTreeSet<_>, BTreeSet<_>) = regions.into_iter().partition(has_ended);
        self.regions.set(&over, RegionPhase::Executing);
        self.wait_for_slots(&begins, now);
        if self.regions.all_executing() {
            self.enter(JobStatus::Running, now);
        }
    }
}
