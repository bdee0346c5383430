//! The job masters: followed where they move, registered at, lost.

use std::sync::Arc;

use controller_events::Handle;
use entrypoint::Placement;
use entrypoint::sleep::boot_clock;
use heartbeat::{CallEnd, RpcOutcome};
use runtime_core::{Epoch, JobId};
use tokio::sync::mpsc::UnboundedSender;
use wire::convert::WireId;
use wire::liveness::outcome_of;
use wire::registration::Registered;
use wire::{RpcError, RpcErrorKind, v1};

use super::TaskExecutorProcessor;
use super::job::{Job, Leader};
use crate::event::{Life, TeEvent};
use crate::keeper::{JobMasterPeer, KeeperHandle};
use crate::task::TaskHandle;

impl TaskExecutorProcessor {
    /// The resource manager says who leads a job. Only a newer term moves a link: that nobody leads at present is for
    /// the heartbeats to find out, since a job master may have lost the resource manager only.
    pub(super) fn job_leader(&mut self, leader: &v1::JobLeader, events: &Handle<TeEvent>) {
        let Ok(job) = JobId::from_wire(&leader.job_id, "job_id") else { return };
        if !self.jobs.contains_key(&job) || leader.rpc_address.is_empty() {
            return;
        }
        match leader.rpc_address.parse() {
            Ok(address) => self.follow(job, Leader { address, epoch: Epoch(leader.epoch) }, events),
            Err(error) => tracing::warn!(%job, %error, "the address of a job's leader makes no sense"),
        }
    }

    /// Makes a link to the job's master, unless one in this term or a later one is known.
    pub(super) fn follow(&mut self, job_id: JobId, leader: Leader, events: &Handle<TeEvent>) {
        match self.jobs.get(&job_id) {
            Some(job) if job.leader.epoch > leader.epoch => return,
            Some(job) if job.leader.epoch == leader.epoch && job.keeper.is_some() => return,
            Some(_) => {
                tracing::info!(job = %job_id, epoch = %leader.epoch, "another job master leads the job");
                self.job_master_lost(job_id, "another job master leads the job");
                self.leave_job_master(job_id, "another job master leads the job");
            }
            None => {}
        }
        self.connect_job_master(job_id, leader, events);
    }

    fn connect_job_master(&mut self, job_id: JobId, leader: Leader, events: &Handle<TeEvent>) {
        let (life, seed) = self.next_life();
        let gateway = self.shared.transport.connect_job_master(&leader.address);
        let peer = JobMasterPeer {
            shared: Arc::clone(&self.shared),
            gateway: Arc::clone(&gateway),
            address: leader.address.to_string(),
            epoch: leader.epoch,
            job: job_id,
            events: events.clone(),
            life,
            seed,
        };
        let keeper = KeeperHandle::start(&self.shared.runtime, peer, self.leaving.remove(&job_id));
        match self.jobs.get_mut(&job_id) {
            Some(job) => {
                (job.leader, job.gateway, job.life, job.keeper) = (leader, gateway, life, Some(keeper));
            }
            None => drop(self.jobs.insert(job_id, Job::new(leader, gateway, life, keeper, self.now()))),
        }
    }

    fn leave_job_master(&mut self, job_id: JobId, cause: &str) {
        let keeper = self.jobs.get_mut(&job_id).and_then(|job| job.leave(cause));
        if let Some(left) = keeper.and_then(KeeperHandle::leave) {
            self.leaving.insert(job_id, left);
        }
        self.job_master_beats.unmonitor_target(&job_id);
    }

    /// The job of a link that is not an earlier one's.
    fn linked(&mut self, job_id: JobId, life: Life) -> Option<&mut Job> {
        self.jobs.get_mut(&job_id).filter(|job| job.life == life && job.keeper.is_some())
    }

    pub(super) fn job_master_connected(
        &mut self,
        job_id: JobId,
        life: Life,
        registered: &Registered,
        outbound: UnboundedSender<v1::TaskExecutorToJobMaster>,
        events: &Handle<TeEvent>,
    ) {
        let now = self.now();
        // The registration was sent a little earlier; what a lease leaves of the timeout is far more.
        let fence = self.shared.heartbeats.self_fence(now);
        let Some(job) = self.linked(job_id, life) else { return };
        job.connected(registered, outbound, now);
        job.fence = fence;
        tracing::info!(job = %job_id, address = %job.leader.address, "registered at the job master");
        self.job_master_beats.monitor_target(job_id, registered.incarnation, now);
        self.offer_slots(job_id, events);
    }

    pub(super) fn job_master_says(
        &mut self,
        job_id: JobId,
        life: Life,
        message: v1::JobMasterToTaskExecutor,
        events: &Handle<TeEvent>,
    ) {
        use v1::job_master_to_task_executor::Message;
        let Some(job) = self.linked(job_id, life) else { return };
        match message.message {
            Some(Message::Ack(ack)) => job.acknowledged(ack.number),
            // It has forgotten this registration, and what runs here with it.
            Some(Message::Disconnect(bye)) => self.drop_job_master(job_id, &bye.cause, events),
            Some(Message::CheckpointConfirmed(said)) => {
                job.running_tasks().for_each(|task| task.confirm(said.checkpoint));
            }
            Some(Message::CheckpointAborted(said)) => {
                job.running_tasks().for_each(|task| task.abort(said.checkpoint));
            }
            Some(Message::DrainSources(_)) => job.running_tasks().for_each(TaskHandle::drain),
            None => {}
        }
    }

    /// Whether the master has ended as well is found out by registering again; until then tasks go on.
    pub(super) fn job_master_stream_ended(&mut self, job_id: JobId, life: Life, why: &str) {
        if let Some(job) = self.linked(job_id, life) {
            tracing::info!(job = %job_id, why, "the stream to the job master has ended; registering again");
            job.disconnected();
        }
    }

    /// What became of an attempt to register again: refusals count as those of heartbeats do, and another term at the
    /// same place means that this one is over.
    pub(super) fn job_master_asked(&mut self, job_id: JobId, life: Life, error: Option<RpcError>) {
        let Some(established) = self.linked(job_id, life).and_then(|job| job.established) else { return };
        let end: CallEnd = match error {
            None => RpcOutcome::Delivered.into(),
            Some(error) if error.kind == RpcErrorKind::Fencing => {
                self.job_master_lost(job_id, &format!("the job master is another by now: {error}"));
                return;
            }
            Some(error) => CallEnd::failed(outcome_of(error.kind), &error),
        };
        let now = self.now();
        let verdict = self.job_master_beats.rpc_outcome(&job_id, &established.incarnation, end, now);
        if let Some(verdict) = verdict {
            self.job_master_lost(job_id, &verdict.to_string());
        }
    }

    /// "Never": nothing of the job is wanted from here. Its slots are freed.
    pub(super) fn job_master_rejected(&mut self, job_id: JobId, life: Life, reason: &str) {
        if self.linked(job_id, life).is_none() {
            return;
        }
        tracing::info!(job = %job_id, reason, "the job master has rejected the registration; the job's slots are freed");
        self.leave_job_master(job_id, reason);
        for allocation in self.allocations_of(job_id) {
            self.release(allocation, reason);
        }
    }

    /// Lets a link go that has not ended by itself: the master is lost, and looked for again at the same place.
    pub(super) fn drop_job_master(&mut self, job_id: JobId, why: &str, events: &Handle<TeEvent>) {
        self.job_master_lost(job_id, why);
        self.leave_job_master(job_id, why);
        if let Some(leader) = self.jobs.get(&job_id).map(|job| job.leader.clone()) {
            self.connect_job_master(job_id, leader, events);
        }
    }

    /// A machine that slept has used up leases by a clock that stood still. In a simulation time is made up, and nothing
    /// sleeps.
    pub(super) fn note_sleep(&mut self, events: &Handle<TeEvent>) {
        if self.shared.placement != Placement::Threads {
            return;
        }
        let Some(length) = self.suspends.turn(self.now(), boot_clock()) else { return };
        tracing::warn!("this machine slept for {:.1} s", length.as_secs_f64());
        self.jobs.values_mut().filter_map(|job| job.fence.as_mut()).for_each(|fence| fence.slept(length));
        self.fence(events);
    }

    /// Stops the tasks of jobs whose leases have ended: their masters may soon give this task executor up and start the
    /// tasks elsewhere, and no record may be worked on at both places.
    pub(super) fn fence(&mut self, events: &Handle<TeEvent>) {
        let now = self.now();
        let due = |(id, job): (&JobId, &Job)| job.lease_ends().filter(|at| *at <= now).map(|_| *id);
        let due: Vec<JobId> = self.jobs.iter().filter_map(due).collect();
        for job_id in due {
            let why = "it has not shown for 0.8 x heartbeat.timeout that it hears this task executor, and may give it up \
                       (heartbeat.self-fence)";
            self.drop_job_master(job_id, why, events);
        }
    }

    /// The job has no master any more: its tasks fail, and its slots wait for the next one. Other jobs go on.
    pub(super) fn job_master_lost(&mut self, job_id: JobId, why: &str) {
        let now = self.now();
        let Some(job) = self.jobs.get_mut(&job_id) else { return };
        if job.established.take().is_none() {
            return;
        }
        if job.has_running_tasks() {
            tracing::warn!(job = %job_id, why, "the job master is lost; the job's tasks are stopped");
        } else {
            tracing::info!(job = %job_id, why, "the link to the job master has ended");
        }
        let cause = format!("the job master was lost: {why}");
        for attempt in self.slots.job_master_lost(job_id, now) {
            job.fail_task(&attempt, &cause, now);
        }
        self.job_master_beats.unmonitor_target(&job_id);
    }

    /// Says good-bye to the masters of jobs that have nothing left here.
    pub(super) fn drop_finished_jobs(&mut self) {
        let nothing_left =
            |(id, job): (&JobId, &Job)| (!self.slots.holds(*id) && !job.has_running_tasks()).then_some(*id);
        let finished: Vec<JobId> = self.jobs.iter().filter_map(nothing_left).collect();
        for job_id in finished {
            tracing::debug!(job = %job_id, "nothing of the job is left here");
            self.leave_job_master(job_id, "nothing of the job is left here");
            self.jobs.remove(&job_id);
            self.plans.forget(job_id);
        }
        self.leaving.retain(|_, link| !link.is_finished());
    }
}
