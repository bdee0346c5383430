//! What a job does next: a pure state machine.
//!
//! It is told what happened (an offer, a task's new state, a lost task executor, a request to cancel) with the time,
//! and answers with [`Effect`]s for the shell to carry out: declare slots, submit, cancel, commit, wake me. Flink:
//! `DefaultScheduler` with `ExecutionGraph`; transitions as in its job and execution states.
//!
//! A failure stops and restarts a *region*: the subtasks that records connect. Without checkpoints the whole output is one
//! commit and a restart begins from the start of the input, so then the job is one region. Nothing calls itself: each
//! event changes what it must, and [`Scheduler::settle`] then does what follows until nothing does.

mod checkpoints;
mod deploy;
mod failure;
mod lifecycle;
mod recover;
mod regions;
mod restore;
mod savepoints;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use job::graph::JobGraph;
use runtime_core::{AllocationId, AttemptId, Epoch, EpochMillis, JobId, ResourceId, Tick};
use wire::v1;

use crate::checkpoint::coordinator::{CheckpointEffect, Done, Saved};
use crate::checkpoint::{CheckpointCoordinator, CheckpointPointer, CheckpointStats};
use crate::counts::{Counts, take_report};
use crate::execution::Executions;
use crate::restart::RestartBackoff;
use crate::slot_pool::{PooledSlot, SlotPool};
use crate::splits::SplitAssigner;
use crate::status::{ExecutionState, JobStatus, Timestamps};

pub use failure::FailureEntry;
pub use recover::{ReadFailure, Recovered};
use regions::Regions;
pub use savepoints::Beginning;

/// The time, as the shell passes it in.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For deadlines.
    pub tick: Tick,
    /// For people.
    pub wall: EpochMillis,
    /// A random number from -1 to 1, drawn by the shell.
    pub jitter: f64,
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Prepare the outputs and list the splits; answer with [`Scheduler::prepared`].
    Prepare,
    /// Tell the resource manager that the job needs this many slots.
    Declare(u32),
    /// Send a subtask to its task executor; answer with [`Scheduler::submitted`].
    Submit(Box<Deployment>),
    /// Stop an attempt; answer with [`Scheduler::cancel_gave_up`] when the task executor cannot be told.
    CancelTask {
        /// Where it runs.
        task_executor: ResourceId,
        /// The attempt.
        attempt: AttemptId,
    },
    /// Give a slot back.
    FreeSlot(PooledSlot, String),
    /// Make this output visible, then remove what else these attempts have left in the outputs (absent: any attempt of the
    /// job); answer with [`Scheduler::swept`].
    Sweep {
        /// What the latest checkpoint has staged.
        commit: Vec<v1::StagedFile>,
        /// Those that were stopped.
        attempts: Option<Vec<AttemptId>>,
    },
    /// Make the whole output of a job without checkpoints visible; answer with [`Scheduler::committed`].
    Commit(Vec<v1::StagedFile>),
    /// For a checkpoint.
    Checkpoint(CheckpointEffect),
    /// Read the newest of these that can be read, which are the oldest first; answer with
    /// [`Scheduler::checkpoint_read`].
    ReadCheckpoint(Vec<CheckpointPointer>),
    /// Call [`Scheduler::wake`] with this timer at this moment.
    WakeAt(Timer, Tick),
    /// The job is over.
    Ended,
}

/// What a wake-up is for. A number tells an old one from the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The pause before a restart is over.
    Restart(u64),
    /// The slots have been waited for long enough.
    SlotRequest(u64),
    /// A checkpoint is due.
    Checkpoint(u64),
    /// A checkpoint has taken too long.
    CheckpointExpiry(u64),
    /// The checkpoint to go on from is to be read again.
    ReadCheckpoint(u64),
    /// Tasks that a savepoint has ended have had time enough to end.
    TasksEnd(u64),
}

/// A subtask on its way to a task executor.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its slot.
    pub allocation: AllocationId,
    /// Whose slot.
    pub task_executor: ResourceId,
    /// For each edge that comes in, the attempts upstream.
    pub inputs: Vec<(u32, Vec<AttemptId>)>,
    /// For each edge that goes out, the attempts downstream and where they run.
    pub outputs: Vec<(u32, Vec<(AttemptId, ResourceId)>)>,
    /// What it begins with.
    pub restore: Option<v1::RestoredState>,
}

/// Where the job stands between two events.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Preparing,
    /// The checkpoint is being read from which a new term goes on.
    Recovering,
    /// Its regions run, or are on their way there.
    Active,
    /// Without checkpoints: the whole output is being made visible.
    Committing,
    /// A savepoint that ends the job is complete, and the output up to it is being made visible: whatever becomes of the
    /// tasks, all that they hold is in it.
    Saved(Option<Box<Saved>>),
    /// All attempts are being stopped; then the job ends like this.
    Stopping(JobStatus),
    /// What attempts have left is being removed; then the job ends like this.
    Sweeping(JobStatus),
    Ended,
}

/// A job's state machine.
#[derive(Debug)]
pub struct Scheduler {
    graph: Arc<JobGraph>,
    phase: Phase,
    status: JobStatus,
    timestamps: Timestamps,
    executions: Executions,
    regions: Regions,
    pool: SlotPool,
    splits: SplitAssigner<v1::FileSplit>,
    checkpoints: CheckpointCoordinator,
    restart: RestartBackoff,
    slot_request_timeout: std::time::Duration,
    timer_number: u64,
    fail_over: u64,
    /// Fail-overs of which no region has begun again yet.
    uncounted: BTreeSet<u64>,
    /// Outputs are being made visible or removed for regions that begin again.
    files_in_use: bool,
    /// The checkpoints to go on from, oldest first, until one of them has been read.
    unread: Vec<CheckpointPointer>,
    read_tries: u32,
    /// Who is told of the savepoint that ends the job, once it has ended.
    saved: Option<(u64, Done)>,
    earlier: Counts,
    restarts: u64,
    failures: std::collections::VecDeque<FailureEntry>,
    failure: Option<String>,
    effects: Vec<Effect>,
}

impl Scheduler {
    /// A job that has not begun.
    #[must_use]
    pub fn new(
        job: JobId,
        term: Epoch,
        graph: Arc<JobGraph>,
        slot_request_timeout: std::time::Duration,
        now: Now,
    ) -> Self {
        let mut timestamps = Timestamps::default();
        timestamps.enter(JobStatus::Initializing, now.wall);
        let checkpoints = coordinator(job, &graph, 0, 0);
        Self {
            phase: Phase::Preparing,
            status: JobStatus::Initializing,
            timestamps,
            executions: Executions::new(job, term, &graph),
            regions: Regions::of(&graph),
            pool: SlotPool::default(),
            splits: SplitAssigner::new(Vec::new(), 1),
            checkpoints,
            restart: RestartBackoff::new(graph.restart.clone()),
            slot_request_timeout,
            timer_number: 0,
            fail_over: 0,
            uncounted: BTreeSet::new(),
            files_in_use: false,
            unread: Vec::new(),
            read_tries: 0,
            saved: None,
            earlier: Counts::default(),
            restarts: 0,
            failures: std::collections::VecDeque::new(),
            failure: None,
            effects: vec![Effect::Prepare],
            graph,
        }
    }

    /// What is to be done now. Empties the list.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A task executor offers slots. Returns those that are taken; the others go back.
    pub fn offer(
        &mut self,
        task_executor: &ResourceId,
        offers: &[(AllocationId, u32)],
        now: Now,
    ) -> Vec<AllocationId> {
        if self.status.is_terminal() {
            return Vec::new();
        }
        let accepted = offers
            .iter()
            .filter(|(allocation, index)| self.pool.offer(*allocation, task_executor, *index, now.tick))
            .map(|(allocation, _)| *allocation)
            .collect();
        self.settle(now);
        accepted
    }

    /// Whether the task executor has taken a submitted task.
    pub fn submitted(&mut self, attempt: &AttemptId, result: Result<(), SubmitFailure>, now: Now) {
        match result {
            Ok(()) => {
                if let Some(execution) = self.executions.current_mut(attempt) {
                    execution.acknowledged.get_or_insert(now.tick);
                }
            }
            Err(failure) => {
                let cause = format!("it could not be deployed: {}", failure.cause);
                self.attempts_failed(&[*attempt], &cause, failure.unrecoverable, now);
            }
        }
        self.settle(now);
    }

    /// A task's new state. What is late, doubled or of an earlier attempt changes nothing.
    pub fn task_state(&mut self, task_executor: &ResourceId, update: TaskUpdate, now: Now) {
        let counted = self.is_counting();
        let Some(execution) = self.executions.current_mut(&update.attempt) else {
            // A task that nobody waits for: it is stopped where it still runs.
            if !update.state.is_terminal() {
                let task_executor = task_executor.clone();
                self.effects.push(Effect::CancelTask { task_executor, attempt: update.attempt });
            }
            return;
        };
        execution.acknowledged.get_or_insert(now.tick);
        if execution.state.is_terminal() {
            return;
        }
        if let Some(figures) = update.figures
            && counted
        {
            take_report(&mut execution.figures, figures);
        }
        let canceling = execution.state == ExecutionState::Canceling;
        match update.state {
            ExecutionState::Failed if !canceling => {
                self.attempts_failed(&[update.attempt], &update.error, update.unrecoverable, now);
            }
            state if state.is_terminal() => {
                execution.state = if canceling { ExecutionState::Canceled } else { state };
                execution.ended_at = Some(now.wall);
                if execution.state == ExecutionState::Finished {
                    let mut last = update.last.unwrap_or_default();
                    last.figures = Some(execution.figures.clone());
                    execution.last = Some(last.clone());
                    self.checkpoints.finished(&update.attempt, *last, now);
                }
                self.splits.ended(&update.attempt);
            }
            state if !canceling && state > execution.state => execution.state = state,
            _ => {}
        }
        self.settle(now);
    }

    /// What a task has counted so far.
    pub fn task_figures(&mut self, attempt: &AttemptId, figures: v1::Figures) {
        if self.is_counting()
            && let Some(execution) = self.executions.current_mut(attempt)
        {
            take_report(&mut execution.figures, figures);
        }
    }

    /// Whether what tasks count is the job's: behind a savepoint that ends it nothing is.
    fn is_counting(&self) -> bool {
        !matches!(self.phase, Phase::Saved(_) | Phase::Stopping(JobStatus::Finished))
    }

    /// The tasks that a task executor says it has, against those that it should have. One that is gone has failed, one
    /// that nobody waits for is stopped (FLINK-17075). One that it was not known to have when it was `asked` may have
    /// come since, however late the answer is (FLINK-18533).
    pub fn reconcile(&mut self, task_executor: &ResourceId, deployed: &[AttemptId], asked: Tick, now: Now) {
        for attempt in deployed {
            if self.executions.current_mut(attempt).is_none_or(|e| e.state.is_terminal()) {
                let task_executor = task_executor.clone();
                self.effects.push(Effect::CancelTask { task_executor, attempt: *attempt });
            }
        }
        let gone: Vec<AttemptId> = self
            .executions
            .iter()
            .filter(|e| e.acknowledged.is_some_and(|known| known < asked))
            .filter(|e| !e.state.is_terminal() && !deployed.contains(&e.id))
            .filter(|e| e.location.as_ref().is_some_and(|l| l.task_executor == *task_executor))
            .map(|e| e.id)
            .collect();
        self.attempts_failed(&gone, "the task executor no longer runs it", false, now);
        self.settle(now);
    }

    /// A task executor is a suspect, or no longer: nothing new is deployed there meanwhile. What waits for slots waits for
    /// it to be cleared, or for others in its place once it is lost.
    pub fn suspect(&mut self, task_executor: &ResourceId, suspect: bool, now: Now) {
        self.pool.suspect(task_executor, suspect);
        self.settle(now);
    }

    /// Slots that have been idle since before this moment and are not needed; they are the job's no longer.
    pub fn take_excess(&mut self, idle_since: Tick) -> Vec<PooledSlot> {
        self.pool.take_excess(idle_since)
    }

    /// The next split for an attempt, and its part of the rate.
    pub fn next_split(&mut self, attempt: AttemptId, request: u64) -> Option<v1::FileSplit> {
        let execution = self.executions.current_mut(&attempt)?;
        if execution.state.is_terminal() || execution.state == ExecutionState::Canceling {
            return None;
        }
        self.splits.next(attempt, request)
    }

    /// Each source subtask's part of `rate` now.
    #[must_use]
    pub fn rate_share(&self, rate: f64) -> f64 {
        self.splits.share(rate)
    }

    /// The job's state.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.status
    }

    /// When it entered its states.
    #[must_use]
    pub fn timestamps(&self) -> &Timestamps {
        &self.timestamps
    }

    /// Its plan.
    #[must_use]
    pub fn graph(&self) -> &Arc<JobGraph> {
        &self.graph
    }

    /// Its subtasks.
    #[must_use]
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// Its slots.
    #[must_use]
    pub fn pool(&self) -> &SlotPool {
        &self.pool
    }

    /// Its sums.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(&self.executions, &self.earlier)
    }

    /// How often it was begun again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Why it failed, in one sentence.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The last failures, oldest first.
    pub fn failures(&self) -> impl Iterator<Item = &FailureEntry> {
        self.failures.iter()
    }

    fn enter(&mut self, status: JobStatus, now: Now) {
        if self.status != status {
            self.status = status;
            self.timestamps.enter(status, now.wall);
        }
    }

    /// Its checkpoints and savepoints, if it takes any.
    #[must_use]
    pub fn checkpoint_stats(&self) -> Option<&CheckpointStats> {
        let stats = self.checkpoints.stats();
        let shown = self.checkpoints.is_periodic() || stats.total() > 0 || stats.restored > 0;
        shown.then_some(stats)
    }
}

/// What decides about the checkpoints of a job.
fn coordinator(job: JobId, graph: &JobGraph, reserved: u64, completed: u64) -> CheckpointCoordinator {
    match &graph.checkpoints {
        Some(options) => CheckpointCoordinator::new(job, options.clone(), reserved, completed),
        None => CheckpointCoordinator::of_savepoints(job, reserved),
    }
}

/// Why a task executor has not taken a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitFailure {
    /// What it said, or that it said nothing.
    pub cause: String,
    /// Whether it looked at the task and cannot run it, now or later.
    pub unrecoverable: bool,
}

/// A report of a task executor about one of its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskUpdate {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its new state.
    pub state: ExecutionState,
    /// With a failure: what happened and where.
    pub error: String,
    /// Whether it would happen again.
    pub unrecoverable: bool,
    /// What it has counted.
    pub figures: Option<v1::Figures>,
    /// With FINISHED: its part of every later checkpoint.
    pub last: Option<Box<v1::TaskSnapshot>>,
}
