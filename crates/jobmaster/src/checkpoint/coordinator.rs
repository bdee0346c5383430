//! When a checkpoint is taken and what becomes of it: a pure state machine.
//!
//! Flink: `CheckpointCoordinator`. It is told what happened with the time, and answers with [`CheckpointEffect`]s. One
//! checkpoint is made at a time: its ids are reserved, its tasks are told, their parts come in, then it is *finalized*:
//! written and remembered, its output made visible, the tasks told. What is chosen next, where several are wanted: a
//! savepoint, then a checkpoint that somebody has asked for, then one that ends the job, then a periodic one.
//!
//! A savepoint is whoever's asked for it: nothing is restored from it here, its output becomes visible only if it ends the
//! job, and its failure is counted by nobody. Behind one that ends the job nothing else is begun.
//!
//! A failure is counted if a smaller job or a better disk would have avoided it: declined, expired, refused, not written.
//! It is not if the tasks were failing anyway. More than `tolerable_failures` counted ones in a row fail the job.

mod effect;
mod pending;
mod request;
mod savepoints;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use job::options::CheckpointOptions;
use runtime_core::{AttemptId, JobId, ResourceId, Tick};
use wire::v1;

use super::{
    CheckpointEntry, CheckpointPointer, CheckpointStats, CheckpointStatus, CompletedCheckpoint,
    RestoredCheckpoint,
};
use crate::scheduler::Now;
pub use effect::{Ack, CheckpointEffect, Done, Saved, WriteFailure};
use pending::Pending;
pub use pending::{Part, Participant, Plan};
use request::Requests;
pub use request::{Request, Stop, Wanted};

/// So many ids are reserved at once: a reservation costs two syncs of the disk.
const BLOCK: u64 = 64;

/// What is being done.
#[derive(Debug)]
enum Doing {
    Nothing,
    Reserving,
    /// The sources were told to end, for this request; everything comes to its end.
    Draining(Request),
    Pending(Box<Pending>),
    Writing(Box<Pending>, Box<v1::CheckpointMetadata>),
    Committing(Box<Pending>),
}

/// The checkpoints of one job in one term.
#[derive(Debug)]
pub struct CheckpointCoordinator {
    job: JobId,
    options: CheckpointOptions,
    /// Whether checkpoints are taken that nobody has asked for.
    periodic: bool,
    requests: Requests,
    next_id: u64,
    reserved: u64,
    armed: bool,
    timer: u64,
    due: Tick,
    /// When the checkpoint that ends the job may be tried.
    last_due: Option<Tick>,
    ended_at: Option<Tick>,
    doing: Doing,
    consecutive_failures: u32,
    /// Those that can be restored, oldest first.
    completed: VecDeque<CheckpointPointer>,
    latest: Option<Arc<CompletedCheckpoint>>,
    /// Whether the output of the latest one is visible.
    latest_committed: bool,
    stats: CheckpointStats,
    effects: Vec<CheckpointEffect>,
}

impl CheckpointCoordinator {
    /// A coordinator that has taken none. No id up to `reserved` is used again; so many were completed before.
    #[must_use]
    pub fn new(job: JobId, options: CheckpointOptions, reserved: u64, completed: u64) -> Self {
        Self {
            job,
            options,
            periodic: true,
            requests: Requests::default(),
            next_id: reserved + 1,
            reserved,
            armed: false,
            timer: 0,
            due: Tick::ZERO,
            last_due: None,
            ended_at: None,
            doing: Doing::Nothing,
            consecutive_failures: 0,
            completed: VecDeque::new(),
            latest: None,
            latest_committed: true,
            stats: CheckpointStats { completed, ..CheckpointStats::default() },
            effects: Vec::new(),
        }
    }

    /// What is to be done now. Empties the list.
    pub fn take_effects(&mut self) -> Vec<CheckpointEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Goes on from what an earlier term has completed: the one that was read, and the older ones. Or a job begins with a
    /// savepoint of another.
    pub fn adopt(&mut self, latest: CompletedCheckpoint, older: Vec<CheckpointPointer>) {
        self.next_id = self.next_id.max(latest.pointer.id + 1);
        self.completed = older.into();
        self.completed.push_back(latest.pointer.clone());
        self.latest = Some(Arc::new(latest));
        self.latest_committed = false;
    }

    /// The job runs: checkpoints are taken from now on. Repeated, it changes nothing (FLINK-13256).
    pub fn start(&mut self, now: Now) {
        if !self.armed && self.periodic {
            self.armed = true;
            self.due = now.tick + self.options.interval;
            self.arm();
        }
    }

    /// The job ends otherwise than by a last checkpoint.
    pub fn stop(&mut self, now: Now) {
        self.abort("the job is stopped", now);
        self.armed = false;
    }

    /// All tasks have finished: a last checkpoint ends the job.
    pub fn request_last(&mut self, now: Now) {
        if self.last_due.is_none() {
            self.last_due = Some(now.tick);
        }
    }

    /// Whether a checkpoint is to be begun now.
    #[must_use]
    pub fn is_due(&self, now: Now) -> bool {
        let in_time = || self.armed_or_last() && self.next_at().is_some_and(|at| at <= now.tick);
        matches!(self.doing, Doing::Nothing) && (self.has_requests() || in_time())
    }

    const fn armed_or_last(&self) -> bool {
        self.armed || self.last_due.is_some()
    }

    fn next_at(&self) -> Option<Tick> {
        if self.last_due.is_some() {
            return self.last_due;
        }
        let pause_over = self.ended_at.map_or(Tick::ZERO, |at| at + self.options.min_pause);
        self.armed.then(|| self.due.max(pause_over))
    }

    /// It is due, but not every task runs or has finished: that is not counted, and the next one comes in time.
    pub fn skip(&mut self, now: Now) {
        if self.has_requests() {
            self.refuse_requests("not all tasks of the job are running; ask again when they are");
            return;
        }
        self.due = now.tick + self.options.interval;
        self.last_due = self.last_due.map(|_| self.due);
        self.arm();
    }

    /// Begins a checkpoint, or first reserves ids for it; then it is due again. For one that drains the job it lets the
    /// sources end; then it is to be called again when all tasks have finished.
    pub fn begin(&mut self, plan: Plan, now: Now) {
        let drained = match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => None,
            Doing::Draining(request) if plan.has_ended() => Some(request),
            other => {
                self.doing = other;
                return;
            }
        };
        if drained.is_none() && self.next_id > self.reserved {
            self.doing = Doing::Reserving;
            self.effects.push(CheckpointEffect::Reserve(self.next_id + BLOCK - 1));
            return;
        }
        let request = drained.or_else(|| self.requests.pop());
        if let Some(request) = &request
            && matches!(request.wanted, Wanted::Savepoint { stop: Some(Stop::Drain), .. })
            && !plan.has_ended()
        {
            self.effects.push(CheckpointEffect::DrainSources);
            self.doing = Doing::Draining(request.clone());
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.due = now.tick + self.options.interval;
        let pending = Pending::new(id, request, plan, now);
        let savepoint = pending.savepoint().map(|(url, stop)| (url.to_owned(), stop == Some(Stop::Suspend)));
        self.stats.begun(CheckpointEntry {
            id,
            status: CheckpointStatus::InProgress,
            triggered_at: now.wall,
            latest_ack_at: None,
            duration: std::time::Duration::ZERO,
            state_size: 0,
            subtasks: pending.subtasks(),
            acknowledged: pending.acknowledged(),
            savepoint: savepoint.is_some(),
        });
        let attempts = pending.waiting();
        if !attempts.is_empty() {
            let begun_at = now.wall;
            self.effects.push(CheckpointEffect::Trigger { checkpoint: id, begun_at, attempts, savepoint });
            self.effects.push(CheckpointEffect::ExpireAt(id, now.tick + self.options.timeout));
        }
        self.doing = Doing::Pending(Box::new(pending));
        self.complete_if_all_are_there(now);
    }

    /// Ids were reserved, or could not be.
    pub fn reserved(&mut self, up_to: u64, result: Result<(), String>, now: Now) {
        if !matches!(self.doing, Doing::Reserving) {
            return;
        }
        self.doing = Doing::Nothing;
        match result {
            Ok(()) => self.reserved = self.reserved.max(up_to),
            Err(cause) => {
                let cause = format!("no checkpoint id could be reserved: {cause}");
                if self.has_requests() {
                    self.refuse_requests(&cause);
                } else {
                    self.stats.failed += 1;
                    self.put_off(now);
                    self.count(&cause);
                }
                self.arm();
            }
        }
    }

    /// A task's part is written.
    pub fn acknowledge(
        &mut self,
        attempt: &AttemptId,
        checkpoint: u64,
        snapshot: v1::TaskSnapshot,
        now: Now,
    ) -> Ack {
        let ack = match &mut self.doing {
            Doing::Pending(pending) if pending.id == checkpoint => {
                pending.acknowledge(attempt, snapshot.clone(), false)
            }
            Doing::Writing(pending, _) | Doing::Committing(pending) if pending.id == checkpoint => {
                if pending.takes_part(attempt) { Ack::Duplicate } else { Ack::Unknown }
            }
            _ if self.completed.iter().any(|pointer| pointer.id == checkpoint) => Ack::Duplicate,
            _ => Ack::Late,
        };
        match ack {
            Ack::Success => self.note_acknowledgement(now),
            Ack::Duplicate => {}
            Ack::Unknown | Ack::Late => {
                // What is late for a savepoint lies in its folder, which is gone as a whole.
                if let Some(name) = object_of(&snapshot).filter(|name| name.contains('/')) {
                    self.effects.push(CheckpointEffect::RemoveObject(name));
                }
            }
        }
        ack
    }

    /// A task has finished: that is its acknowledgement of whatever is pending.
    pub fn finished(&mut self, attempt: &AttemptId, last: v1::TaskSnapshot, now: Now) {
        if let Doing::Pending(pending) = &mut self.doing
            && pending.acknowledge(attempt, last, true) == Ack::Success
        {
            self.note_acknowledgement(now);
        }
    }

    fn note_acknowledgement(&mut self, now: Now) {
        if let Doing::Pending(pending) = &self.doing {
            let (acknowledged, size) = (pending.acknowledged(), pending.state_size());
            let duration = now.tick.since(pending.begun);
            self.stats.change(pending.id, |entry| {
                entry.acknowledged = acknowledged;
                entry.state_size = size;
                entry.latest_ack_at = Some(now.wall);
                entry.duration = duration;
            });
        }
        self.complete_if_all_are_there(now);
    }

    fn complete_if_all_are_there(&mut self, now: Now) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Pending(pending) if pending.is_complete() => {
                let metadata = Box::new(pending.metadata(now.wall));
                if let Some((url, _)) = pending.savepoint() {
                    let url = url.to_owned();
                    self.effects.push(CheckpointEffect::WriteSavepoint { metadata: metadata.clone(), url });
                    self.doing = Doing::Writing(pending, metadata);
                    return;
                }
                let mut kept: Vec<CheckpointPointer> = self.completed.iter().cloned().collect();
                kept.push(self.pointer(&metadata));
                let excess = kept.len().saturating_sub(self.options.retain.max(1) as usize);
                let kept = kept.split_off(excess);
                self.effects.push(CheckpointEffect::Write { metadata: metadata.clone(), kept });
                self.doing = Doing::Writing(pending, metadata);
            }
            other => self.doing = other,
        }
    }

    fn pointer(&self, metadata: &v1::CheckpointMetadata) -> CheckpointPointer {
        let id = metadata.checkpoint;
        let completed_at = metadata.completed_at;
        let metadata = ::checkpoint::layout::metadata_name(self.job, id);
        CheckpointPointer { id, metadata, completed_at, store: None }
    }

    /// A task cannot take part.
    pub fn decline(&mut self, attempt: &AttemptId, checkpoint: u64, cause: &str, now: Now) {
        if let Doing::Pending(pending) = &self.doing
            && pending.id == checkpoint
            && pending.takes_part(attempt)
        {
            self.fail(format!("declined by {attempt}: {cause}"), true, now);
        }
    }

    /// A task executor was not told of it, or does not know a task of it (FLINK-21246). Only the latter is counted: one that
    /// cannot be reached is a failure of its own.
    pub fn trigger_failed(&mut self, checkpoint: u64, cause: String, unknown_task: bool, now: Now) {
        if self.is_pending(checkpoint) {
            self.fail(cause, unknown_task, now);
        }
    }

    /// It has taken too long.
    pub fn expire(&mut self, checkpoint: u64, now: Now) {
        if let Doing::Pending(pending) = &self.doing
            && pending.id == checkpoint
        {
            let cause = format!(
                "expired after {:?}: {} of {} tasks had acknowledged; missing: {}",
                self.options.timeout,
                pending.acknowledged(),
                pending.subtasks(),
                pending.missing()
            );
            self.fail(cause, true, now);
        }
    }

    /// Tasks of it have failed or are stopped. One that is finalized already goes on.
    pub fn abort(&mut self, cause: &str, now: Now) {
        self.last_due = None;
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Draining(request) => {
                self.answer(&request, Err(format!("the job could not be drained: {cause}")));
                self.arm();
            }
            other => self.doing = other,
        }
        if matches!(self.doing, Doing::Pending(_)) {
            self.fail(cause.to_owned(), false, now);
        }
    }

    /// Its metadata is written and remembered, or not.
    pub fn written(&mut self, checkpoint: u64, result: Result<(), WriteFailure>, now: Now) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Writing(pending, metadata) if pending.id == checkpoint => match result {
                Ok(()) if pending.savepoint().is_some() => self.saved(&pending, metadata, now),
                Ok(()) => {
                    let pointer = self.pointer(&metadata);
                    let completed = CompletedCheckpoint::own(pointer, *metadata);
                    let staged = completed.staged();
                    self.completed.push_back(completed.pointer.clone());
                    self.latest = Some(Arc::new(completed));
                    self.latest_committed = false;
                    self.doing = Doing::Committing(pending);
                    self.effects.push(CheckpointEffect::Commit { checkpoint, staged });
                }
                Err(failure) => {
                    self.doing = Doing::Writing(pending, metadata);
                    let remove = !failure.may_be_there;
                    self.end_failed(failure.cause, true, remove, now);
                }
            },
            other => self.doing = other,
        }
    }

    /// Its output is visible, or could not be made so: then the job fails, and makes it visible when it begins again.
    pub fn committed(&mut self, checkpoint: u64, result: Result<(), String>, now: Now) {
        if !matches!(&self.doing, Doing::Committing(pending) if pending.id == checkpoint) {
            return;
        }
        let Doing::Committing(pending) = std::mem::replace(&mut self.doing, Doing::Nothing) else { return };
        let path = self.latest.as_ref().map_or_else(String::new, |latest| self.path(&latest.pointer));
        let duration = now.tick.since(pending.begun);
        self.stats.ended(checkpoint, duration, CheckpointStatus::Completed { path });
        self.consecutive_failures = 0;
        self.ended_at = Some(now.tick);
        let excess = self.completed.len().saturating_sub(self.options.retain.max(1) as usize);
        // A savepoint that the job began with belongs to somebody else.
        let subsumed = self.completed.drain(..excess).filter(|pointer| pointer.store.is_none());
        let subsumed: Vec<u64> = subsumed.map(|pointer| pointer.id).collect();
        if let Some(request) = &pending.request {
            let location = self.latest.as_ref().map_or_else(String::new, |latest| self.path(&latest.pointer));
            self.answer(request, result.clone().map(|()| Done { checkpoint, location }));
        }
        match result {
            Ok(()) => {
                self.latest_committed = true;
                self.effects.push(CheckpointEffect::Confirm(checkpoint));
            }
            Err(cause) => self.effects.push(CheckpointEffect::FailJob(format!(
                "the output of checkpoint {checkpoint} could not be made visible: {cause}"
            ))),
        }
        if !subsumed.is_empty() {
            self.effects.push(CheckpointEffect::Remove(subsumed));
        }
        self.arm();
    }

    /// The output of the latest one was made visible again.
    pub fn committed_again(&mut self) {
        self.latest_committed = true;
    }

    /// The job goes on from the latest one.
    pub fn restored(&mut self, now: Now) {
        if let Some(latest) = &self.latest {
            self.stats.restored += 1;
            self.stats.latest_restored = Some(RestoredCheckpoint {
                id: latest.pointer.id,
                at: now.wall,
                savepoint: latest.metadata.savepoint,
                path: self.path(&latest.pointer),
            });
        }
    }

    fn path(&self, pointer: &CheckpointPointer) -> String {
        if let Some(savepoint) = &pointer.store {
            return savepoint.clone();
        }
        format!("{}/{}", self.options.dir.trim_end_matches('/'), pointer.metadata)
    }

    /// Gives up the one that is pending.
    fn fail(&mut self, cause: String, counted: bool, now: Now) {
        self.end_failed(cause, counted, true, now);
    }

    fn end_failed(&mut self, cause: String, counted: bool, remove: bool, now: Now) {
        let (Doing::Pending(pending) | Doing::Writing(pending, _)) =
            std::mem::replace(&mut self.doing, Doing::Nothing)
        else {
            return;
        };
        let id = pending.id;
        let latest = self.latest.as_ref().map_or(0, |latest| latest.pointer.id);
        self.effects.push(CheckpointEffect::Abort { checkpoint: id, latest_completed: latest });
        match pending.savepoint() {
            Some((url, _)) => self.effects.push(CheckpointEffect::Discard(url.to_owned())),
            None if remove => self.effects.push(CheckpointEffect::Remove(vec![id])),
            None => {}
        }
        if let Some(request) = &pending.request {
            self.answer(request, Err(cause.clone()));
        }
        if let Some((_, Some(Stop::Drain))) = pending.savepoint() {
            self.effects.push(CheckpointEffect::Undrain(cause.clone()));
        }
        let status = CheckpointStatus::Failed { at: now.wall, cause: cause.clone() };
        self.stats.ended(id, now.tick.since(pending.begun), status);
        self.put_off(now);
        if counted && pending.savepoint().is_none() {
            self.count(&format!("checkpoint {id} failed: {cause}"));
        }
        self.arm();
    }

    /// The one that ends the job is tried again as late as a periodic one would be.
    fn put_off(&mut self, now: Now) {
        self.ended_at = Some(now.tick);
        if self.last_due.is_some() {
            self.last_due = Some(now.tick + self.options.interval);
        }
        self.due = self.due.max(now.tick + self.options.min_pause);
    }

    fn count(&mut self, cause: &str) {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let allowed = self.options.tolerable_failures;
        if self.consecutive_failures > allowed {
            let failures = self.consecutive_failures;
            self.consecutive_failures = 0;
            self.effects.push(CheckpointEffect::FailJob(format!(
                "{cause} ({failures} failed in a row, tolerable_failures is {allowed})"
            )));
        }
    }

    fn arm(&mut self) {
        if matches!(self.doing, Doing::Nothing)
            && let Some(at) = self.next_at()
        {
            self.timer += 1;
            self.effects.push(CheckpointEffect::WakeAt(self.timer, at));
        }
    }

    fn is_pending(&self, checkpoint: u64) -> bool {
        matches!(&self.doing, Doing::Pending(pending) if pending.id == checkpoint)
    }

    /// Whether one is being written or its output made visible. Nothing may be restored or swept meanwhile.
    #[must_use]
    pub const fn is_finalizing(&self) -> bool {
        matches!(self.doing, Doing::Writing(..) | Doing::Committing(_))
    }

    /// The newest that can be restored.
    #[must_use]
    pub const fn latest(&self) -> Option<&Arc<CompletedCheckpoint>> {
        self.latest.as_ref()
    }

    /// Whether the latest one has the end of every task, and its output is visible.
    #[must_use]
    pub fn has_ended_the_job(&self) -> bool {
        self.latest_committed && self.latest.as_ref().is_some_and(|latest| latest.all_finished())
    }

    /// How it went so far.
    #[must_use]
    pub const fn stats(&self) -> &CheckpointStats {
        &self.stats
    }
}

fn object_of(snapshot: &v1::TaskSnapshot) -> Option<String> {
    match snapshot.state.as_ref()?.place.as_ref()? {
        v1::state_handle::Place::Object(name) => Some(name.clone()),
        v1::state_handle::Place::Inline(_) => None,
    }
}

/// The attempts by where they run.
pub type AttemptsByPlace = BTreeMap<ResourceId, Vec<AttemptId>>;
