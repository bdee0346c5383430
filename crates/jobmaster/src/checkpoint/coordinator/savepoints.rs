//! What somebody asks for: savepoints, and checkpoints out of their turn.

use job::options::CheckpointOptions;
use runtime_core::JobId;
use wire::v1;

use super::pending::Pending;
use super::{CheckpointCoordinator, CheckpointEffect, CheckpointStatus, Doing, Done, Request, Saved, Wanted};
use crate::scheduler::Now;

/// How long a savepoint of a job without checkpoints may take: as long as a checkpoint by default.
const SAVEPOINT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(600);

impl CheckpointCoordinator {
    /// The coordinator of a job without checkpoints: it makes savepoints only.
    #[must_use]
    pub fn of_savepoints(job: JobId, reserved: u64) -> Self {
        let options = CheckpointOptions {
            interval: SAVEPOINT_TIMEOUT,
            min_pause: std::time::Duration::ZERO,
            timeout: SAVEPOINT_TIMEOUT,
            tolerable_failures: u32::MAX,
            dir: String::new(),
            retain: 1,
        };
        Self { periodic: false, ..Self::new(job, options, reserved, 0) }
    }

    /// Whether checkpoints are taken that nobody has asked for.
    #[must_use]
    pub const fn is_periodic(&self) -> bool {
        self.periodic
    }

    /// Somebody wants something: it is due when nothing else is being made.
    pub fn request(&mut self, request: Request) {
        if request.wanted == Wanted::Checkpoint && !self.periodic {
            let none = "the job takes no checkpoints, as it has no `checkpoints` section; take a savepoint";
            self.answer(&request, Err(none.to_owned()));
        } else if let Err(request) = self.requests.push(request) {
            self.answer(&request, Err("too many requests wait already; ask again later".to_owned()));
        }
    }

    /// Whether requests wait.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// What waits cannot be done.
    pub fn refuse_requests(&mut self, why: &str) {
        while let Some(request) = self.requests.pop() {
            self.answer(&request, Err(why.to_owned()));
        }
    }

    pub(super) fn answer(&mut self, request: &Request, result: Result<Done, String>) {
        self.effects.push(CheckpointEffect::Answer(request.number, result));
    }

    /// Whether the sources were told to end: once all tasks have finished, [`begin`](Self::begin) makes the savepoint.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        matches!(self.doing, Doing::Draining(_))
    }

    /// A savepoint is complete.
    pub(super) fn saved(&mut self, pending: &Pending, metadata: Box<v1::CheckpointMetadata>, now: Now) {
        let (Some(request), Some((url, stop))) = (&pending.request, pending.savepoint()) else { return };
        let done = Done { checkpoint: pending.id, location: url.to_owned() };
        let status = CheckpointStatus::Completed { path: url.to_owned() };
        self.stats.ended(pending.id, now.tick.since(pending.begun), status);
        self.ended_at = Some(now.tick);
        if stop.is_some() {
            self.armed = false;
            let staged = crate::checkpoint::metadata::staged(&metadata);
            let request = request.number;
            self.effects.push(CheckpointEffect::Saved(Saved { request, done, staged, metadata }));
        } else {
            self.answer(request, Ok(done));
            self.arm();
        }
    }

    /// Whether something that was asked for is being made or waits for its turn, so that the job does not end before it.
    #[must_use]
    pub fn has_something_to_answer(&self) -> bool {
        let asked = match &self.doing {
            Doing::Pending(pending) | Doing::Writing(pending, _) | Doing::Committing(pending) => {
                pending.request.is_some()
            }
            Doing::Draining(_) => true,
            Doing::Nothing | Doing::Reserving => false,
        };
        asked || self.has_requests()
    }
}
