//! The job as a whole: its beginning, its ends, and what follows from one event after the other.

use runtime_core::AttemptId;
use wire::v1;

use super::regions::RegionPhase;
use super::{Beginning, Effect, Now, Phase, Scheduler, Timer};
use crate::splits::SplitAssigner;
use crate::status::{ExecutionState, JobStatus};

impl Scheduler {
    /// The outputs are ready and the inputs are listed, or one of them cannot be used.
    pub fn prepared(&mut self, result: Result<Vec<v1::FileSplit>, String>, now: Now) {
        self.prepared_from(result.map(|splits| (splits, None)), now);
    }

    /// As [`prepared`](Self::prepared), of a job that begins with a savepoint of another.
    pub fn prepared_from(&mut self, result: Result<Beginning, String>, now: Now) {
        if self.phase != Phase::Preparing {
            return;
        }
        match result {
            Ok((splits, savepoint)) => {
                self.list_splits(splits);
                if let Some(savepoint) = savepoint {
                    self.begin_with(savepoint, now);
                }
                self.enter(JobStatus::Created, now);
                self.phase = Phase::Active;
                let all = self.regions.all();
                self.wait_for_slots(&all, now);
            }
            Err(error) => self.job_failed(error, true, now),
        }
        self.settle(now);
    }

    pub(super) fn list_splits(&mut self, splits: Vec<v1::FileSplit>) {
        let source = self.graph.vertices.first().map_or(1, |v| v.parallelism);
        self.splits = SplitAssigner::new(splits, source);
    }

    /// Somebody asks for the job's end. Returns whether it will be, or has been, cancelled.
    pub fn cancel(&mut self, now: Now) -> bool {
        // Once all tasks have finished and their output is becoming visible, there is nothing left to stop.
        let ending = self.executions.all_finished() && self.checkpoints.is_finalizing();
        match (&self.phase, self.status) {
            (_, JobStatus::Canceled | JobStatus::Cancelling) => true,
            (Phase::Ended | Phase::Committing | Phase::Saved(_) | Phase::Sweeping(_), _) => false,
            (Phase::Stopping(JobStatus::Finished), _) => false,
            (Phase::Active, _) if ending => false,
            _ => {
                self.enter(JobStatus::Cancelling, now);
                self.stop_job(JobStatus::Canceled, now);
                self.settle(now);
                true
            }
        }
    }

    /// A task executor could not be told to stop an attempt: it counts as stopped.
    pub fn cancel_gave_up(&mut self, attempt: &AttemptId, now: Now) {
        let Some(execution) = self.executions.current_mut(attempt) else { return };
        if execution.state == ExecutionState::Canceling {
            execution.state = ExecutionState::Canceled;
            execution.ended_at = Some(now.wall);
            self.settle(now);
        }
    }

    /// A moment that was asked for has come.
    pub fn wake(&mut self, timer: Timer, now: Now) {
        match timer {
            Timer::Restart(number) => {
                for region in &mut self.regions.0 {
                    if let RegionPhase::Pausing(fail_over, timer) = region.phase
                        && timer == number
                    {
                        region.phase = RegionPhase::Due(fail_over);
                    }
                }
            }
            Timer::SlotRequest(number) => {
                let waiting = self.regions.select(|region| region.phase == RegionPhase::Waiting(number));
                if !waiting.is_empty() {
                    let text = format!(
                        "no slots: the job needs {} and got {} within {:?}",
                        self.pool.required(),
                        self.pool.len(),
                        self.slot_request_timeout
                    );
                    self.regions_failed(&waiting, text, false, now);
                }
            }
            Timer::CheckpointExpiry(checkpoint) => self.expire_checkpoint(checkpoint, now),
            Timer::ReadCheckpoint(number) => self.read_checkpoint_again(number),
            Timer::TasksEnd(_) => self.end_tasks(),
            // That it is due is seen below.
            Timer::Checkpoint(_) => {}
        }
        self.settle(now);
    }

    /// The resource manager says that the job will not get the slots that it lacks.
    pub fn not_enough_resources(&mut self, required: u32, acquired: u32, now: Now) {
        let waiting = self.regions.select(|region| matches!(region.phase, RegionPhase::Waiting(_)));
        if self.phase == Phase::Active && !waiting.is_empty() {
            let text = format!("no slots: the job needs {required}, the cluster can give it {acquired}");
            self.regions_failed(&waiting, text, false, now);
        }
        self.settle(now);
    }

    /// The whole output of a job without checkpoints has been made visible, or could not be.
    pub fn committed(&mut self, result: Result<(), String>, now: Now) {
        if matches!(self.phase, Phase::Saved(_)) {
            self.saved_is_visible(result, now);
            self.settle(now);
            return;
        }
        if self.phase != Phase::Committing {
            return;
        }
        match result {
            Ok(()) => self.ended(JobStatus::Finished, now),
            Err(error) => {
                self.job_failed(format!("the output could not be made visible: {error}"), true, now)
            }
        }
        self.settle(now);
    }

    /// Does what follows from what has changed, until nothing does.
    pub(super) fn settle(&mut self, now: Now) {
        loop {
            self.end_stopped_job();
            self.end_stops(now);
            self.restore_due(now);
            self.try_deploy(now);
            // A failure comes before the next checkpoint, and the tasks hear of the last one before the job ends.
            if self.take_checkpoint_effects(now) {
                continue;
            }
            self.end_if_all_have_finished(now);
            self.begin_checkpoint(now);
            if !self.take_checkpoint_effects(now) {
                return;
            }
        }
    }

    /// All attempts of a job that is to end are over, and nobody works on its outputs.
    fn end_stopped_job(&mut self) {
        let finalizing = self.checkpoints.is_finalizing();
        if let Phase::Stopping(status) = self.phase
            && self.executions.iter().all(|e| e.state.is_terminal() || e.state == ExecutionState::Created)
            && !self.files_in_use
            && !finalizing
        {
            self.phase = Phase::Sweeping(status);
            self.effects.push(Effect::Sweep { commit: Vec::new(), attempts: None });
        }
    }

    pub(super) fn ended(&mut self, status: JobStatus, now: Now) {
        self.phase = Phase::Ended;
        self.enter(status, now);
        let cause = format!("the job is {}", status.as_str());
        for slot in self.pool.drain() {
            self.effects.push(Effect::FreeSlot(slot, cause.clone()));
        }
        self.effects.push(Effect::Declare(0));
        self.effects.push(Effect::Ended);
        self.answer_saved();
    }
}
