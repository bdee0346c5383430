//! The job as a whole: its beginning, its restarts and its ends.

use runtime_core::AttemptId;
use wire::v1;

use super::{Effect, Now, Phase, Scheduler, Then, Timer};
use crate::splits::SplitAssigner;
use crate::status::{ExecutionState, JobStatus};

impl Scheduler {
    /// The outputs are ready and the inputs are listed, or one of them cannot be used.
    pub fn prepared(&mut self, result: Result<Vec<v1::FileSplit>, String>, now: Now) {
        if self.phase != Phase::Preparing {
            return;
        }
        match result {
            Ok(splits) => {
                let source = self.graph.vertices.first().map_or(1, |v| v.parallelism);
                self.splits = SplitAssigner::new(splits, source);
                self.enter(JobStatus::Created, now);
                self.wait_for_slots(now);
            }
            Err(error) => self.job_failed(error, true, now),
        }
    }

    /// Somebody asks for the job's end. Returns whether it will be, or has been, cancelled.
    pub fn cancel(&mut self, now: Now) -> bool {
        match (&self.phase, self.status) {
            (_, JobStatus::Canceled | JobStatus::Cancelling) => true,
            (Phase::Ended | Phase::Committing | Phase::Sweeping(Some(_)), _) => false,
            (Phase::Sweeping(None), _) => {
                self.enter(JobStatus::Cancelling, now);
                self.phase = Phase::Sweeping(Some(JobStatus::Canceled));
                true
            }
            _ => {
                self.enter(JobStatus::Cancelling, now);
                self.stop_attempts(Then::Cancel, now);
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
            self.attempt_over(now);
        }
    }

    /// A moment that was asked for has come.
    pub fn wake(&mut self, timer: Timer, now: Now) {
        match timer {
            Timer::Restart(number) if number == self.timer_number && self.phase == Phase::Pausing => {
                self.begin_again(now);
            }
            Timer::SlotRequest(number)
                if number == self.timer_number && self.phase == Phase::WaitingForSlots =>
            {
                let text = format!(
                    "no slots: the job needs {} and got {} within {:?}",
                    self.pool.required(),
                    self.pool.len(),
                    self.slot_request_timeout
                );
                self.job_failed(text, false, now);
            }
            Timer::Restart(_) | Timer::SlotRequest(_) => {}
        }
    }

    /// The resource manager says that the job will not get the slots that it lacks.
    pub fn not_enough_resources(&mut self, required: u32, acquired: u32, now: Now) {
        if self.phase == Phase::WaitingForSlots {
            let text = format!("no slots: the job needs {required}, the cluster can give it {acquired}");
            self.job_failed(text, false, now);
        }
    }

    /// The output has been made visible, or could not be.
    pub fn committed(&mut self, result: Result<(), String>, now: Now) {
        if self.phase != Phase::Committing {
            return;
        }
        match result {
            Ok(()) => self.end(JobStatus::Finished, now),
            Err(error) => {
                self.job_failed(format!("the output could not be made visible: {error}"), true, now)
            }
        }
    }

    /// An attempt has ended; perhaps it was the last one.
    pub(super) fn attempt_over(&mut self, now: Now) {
        match self.phase.clone() {
            Phase::Executing if self.executions.all_finished() => {
                self.phase = Phase::Committing;
                let staged = self.executions.iter().flat_map(|e| e.staged.iter().cloned()).collect();
                self.effects.push(Effect::Commit(staged));
            }
            Phase::Stopping(then) if self.executions.all_terminal() => match then {
                Then::RestartAt(at) if at <= now.tick => self.begin_again(now),
                Then::RestartAt(at) => {
                    self.phase = Phase::Pausing;
                    self.timer_number += 1;
                    self.effects.push(Effect::WakeAt(Timer::Restart(self.timer_number), at));
                }
                Then::Fail => self.end(JobStatus::Failed, now),
                Then::Cancel => self.end(JobStatus::Canceled, now),
            },
            _ => {}
        }
    }

    /// What unfinished attempts had left in the outputs is gone.
    pub fn swept(&mut self, now: Now) {
        match self.phase {
            Phase::Sweeping(None) => self.wait_for_slots(now),
            Phase::Sweeping(Some(status)) => self.ended(status, now),
            _ => {}
        }
    }

    /// Runs the job from the start of its input. Nothing of the life before is left: its files go before the first
    /// task of the next one is deployed.
    fn begin_again(&mut self, now: Now) {
        self.restarts += 1;
        self.earlier = self.counts();
        self.executions.renew();
        self.pool.vacate(now.tick);
        self.splits.reset();
        self.phase = Phase::Sweeping(None);
        self.effects.push(Effect::Sweep);
    }

    fn end(&mut self, status: JobStatus, now: Now) {
        if status == JobStatus::Finished {
            self.ended(status, now);
        } else {
            self.phase = Phase::Sweeping(Some(status));
            self.effects.push(Effect::Sweep);
        }
    }

    fn ended(&mut self, status: JobStatus, now: Now) {
        self.phase = Phase::Ended;
        self.enter(status, now);
        let cause = format!("the job is {}", status.as_str());
        for slot in self.pool.drain() {
            self.effects.push(Effect::FreeSlot(slot, cause.clone()));
        }
        self.effects.push(Effect::Declare(0));
        self.effects.push(Effect::Ended);
    }
}
