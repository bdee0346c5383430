//! The job masters: registration, what they need, and who leads which job.

use std::sync::Arc;

use controller_events::{Handle, Tag, When};
use runtime_core::{Epoch, Incarnation, JobId, ResourceId};
use wire::convert::WireId as _;
use wire::fencing::Fence;
use wire::stream::Duplex;
use wire::{Address, JobMasterGateway, MessageStream, RpcError, v1};

use super::ResourceManagerProcessor;
use crate::event::RmEvent;
use crate::slot_manager::JobMasterAddress;

/// A registered job master, one for each job.
pub(crate) struct JobMasterConnection {
    pub(super) incarnation: Incarnation,
    pub(super) gateway: Arc<dyn JobMasterGateway>,
    epoch: Epoch,
    address: String,
    talk: Duplex<v1::ResourceManagerToJobMaster, v1::JobMasterToResourceManager>,
}

impl JobMasterConnection {
    /// The host that it is reached at.
    pub(super) fn host(&self) -> &str {
        host_of(&self.address)
    }

    pub(super) fn disconnect(&mut self, cause: &str) {
        let message =
            v1::resource_manager_to_job_master::Message::Disconnect(v1::Disconnect { cause: cause.into() });
        self.talk.say(message_of(message));
        self.talk.disconnect();
    }
}

/// The host of an address.
pub(crate) fn host_of(address: &str) -> &str {
    let host_port = address.trim_end_matches('/').rsplit('/').next().unwrap_or(address);
    host_port.rsplit_once(':').map_or(host_port, |(host, _)| host)
}

const fn message_of(message: v1::resource_manager_to_job_master::Message) -> v1::ResourceManagerToJobMaster {
    v1::ResourceManagerToJobMaster { number: 0, message: Some(message) }
}

impl ResourceManagerProcessor {
    /// The same term again is a success without a change; a newer one takes the place of the old, whose requirements
    /// stand until they are declared anew; an older one is refused.
    pub(super) fn register_job_master(
        &mut self,
        request: v1::RegisterJobMasterRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        let job = JobId::from_wire(&request.job_id, "job_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let epoch = Epoch(request.job_master_epoch);
        let address: Address = request
            .rpc_address
            .parse()
            .map_err(|e| RpcError::application(format!("field `rpc_address`: {e}")))?;
        let now = self.now();
        if let Some(known) = self.job_masters.get_mut(&job) {
            if known.epoch > epoch {
                return Err(RpcError::fencing(format!(
                    "job {job} is led in term {}, not {epoch}",
                    known.epoch
                )));
            }
            if known.epoch == epoch
                && known.incarnation == incarnation
                && known.address == request.rpc_address
            {
                // It declares its needs anew, so the conversation begins anew as well.
                known.talk = Duplex::starting(now);
                return Ok(self.registered(None));
            }
            known.disconnect("another job master has registered for the job");
        }
        tracing::info!(%job, name = %request.job_name, address = %request.rpc_address, %epoch, "registered a job master");
        let connection = JobMasterConnection {
            incarnation,
            gateway: self.parts.transport.connect_job_master(&address),
            epoch,
            address: request.rpc_address.clone(),
            talk: Duplex::starting(now),
        };
        self.job_masters.insert(job, connection);
        self.job_master_beats.monitor_target(job, incarnation, now);
        self.publish_leader(&v1::JobLeader {
            job_id: request.job_id,
            rpc_address: request.rpc_address,
            epoch: epoch.0,
        });
        Ok(self.registered(None))
    }

    pub(super) fn job_master_stream(
        &mut self,
        hello: &v1::JobMasterHello,
    ) -> Result<MessageStream<v1::ResourceManagerToJobMaster>, RpcError> {
        let job = JobId::from_wire(&hello.job_id, "job_id")?;
        let incarnation = Fence::of(hello.fence.as_ref())?.incarnation;
        Ok(self.job_master(job, incarnation)?.talk.connect(None))
    }

    pub(super) fn job_master_says(
        &mut self,
        job: JobId,
        incarnation: Incarnation,
        message: v1::JobMasterToResourceManager,
    ) {
        use v1::job_master_to_resource_manager::Message;
        let now = self.now();
        let Ok(connection) = self.job_master(job, incarnation) else { return };
        let Some(message) = connection.talk.hear(message) else { return };
        match message.message {
            Some(Message::Requirements(needs)) => {
                let address =
                    JobMasterAddress { address: connection.address.clone(), epoch: connection.epoch };
                self.slots.declare(job, address, needs.version, needs.slots, now);
            }
            Some(Message::Goodbye(bye)) => {
                tracing::info!(%job, cause = %bye.cause, over = bye.job_terminal, "a job master has said good-bye");
                self.forget_job_master(job, incarnation);
                if bye.job_terminal {
                    self.slots.job_ended(job, now);
                }
            }
            Some(Message::Hello(_) | Message::Ack(_)) | None => {}
        }
    }

    /// Ends a job master's registration. Its requirements stand for the next one; meanwhile it gets nothing.
    pub(super) fn drop_job_master(&mut self, job: JobId, incarnation: Incarnation, cause: &str) {
        let Ok(connection) = self.job_master(job, incarnation) else { return };
        connection.disconnect(cause);
        tracing::warn!(%job, cause, "a job master is gone");
        self.forget_job_master(job, incarnation);
    }

    fn forget_job_master(&mut self, job: JobId, incarnation: Incarnation) {
        let Some(connection) = self.job_masters.remove(&job) else { return };
        self.job_master_beats.unmonitor_incarnation(&job, &incarnation);
        self.slots.job_master_gone(job);
        self.abandoned.push(job);
        self.publish_leader(&v1::JobLeader {
            job_id: job.to_wire(),
            rpc_address: String::new(),
            epoch: connection.epoch.0,
        });
    }

    /// Each job without a job master is looked at again after the job timeout, counted from the last loss.
    pub(super) fn arm_job_timeouts(&mut self, events: &Handle<RmEvent>) {
        let at = self.now() + self.parts.job_timeout;
        for job in self.abandoned.drain(..) {
            let tag = Tag::keyed("job-timeout", job.as_u128());
            if events.schedule(Some(tag), When::At(at), RmEvent::JobTimeout(job)).is_err() {
                tracing::debug!(%job, "no timer: the loop has ended");
            }
        }
    }

    pub(super) fn job_timed_out(&mut self, job: JobId) {
        let now = self.now();
        if self.slots.job_timed_out(job, now) {
            let waited = self.parts.job_timeout;
            tracing::warn!(%job, ?waited, "no job master has come for the job; its requirements are cleared");
        }
    }

    pub(super) fn tell_not_enough(&mut self, job: JobId, required: u32, acquired: u32) {
        use v1::resource_manager_to_job_master::Message;
        if let Some(connection) = self.job_masters.get_mut(&job) {
            connection
                .talk
                .say(message_of(Message::NotEnoughResources(v1::NotEnoughResources { required, acquired })));
        }
    }

    /// Tells every job master that a task executor is gone.
    pub(super) fn task_executor_gone(&mut self, id: &ResourceId, incarnation: Incarnation, cause: &str) {
        use v1::resource_manager_to_job_master::Message;
        for connection in self.job_masters.values_mut() {
            connection.talk.say(message_of(Message::TaskExecutorLost(v1::TaskExecutorLost {
                resource_id: id.to_string(),
                incarnation: incarnation.to_wire(),
                cause: cause.into(),
            })));
        }
    }

    pub(super) fn job_master(
        &mut self,
        job: JobId,
        incarnation: Incarnation,
    ) -> Result<&mut JobMasterConnection, RpcError> {
        match self.job_masters.get_mut(&job) {
            Some(connection) if connection.incarnation == incarnation => Ok(connection),
            Some(_) => Err(RpcError::fencing(format!("job {job} has another job master by now"))),
            None => Err(RpcError::unknown_target(format!("no job master of job {job} is registered here"))),
        }
    }

    /// A stream that ended may mean a dead process: it is asked at once instead of at the next interval.
    pub(super) fn probe_job_master(
        &mut self,
        job: JobId,
        incarnation: Incarnation,
        why: &str,
        events: &Handle<RmEvent>,
    ) {
        let Ok(connection) = self.job_master(job, incarnation) else { return };
        tracing::info!(%job, why, "the stream of a job master has ended; asking whether it lives");
        let gateway = Arc::clone(&connection.gateway);
        self.send_job_master_beats(job, incarnation, gateway, self.parts.heartbeats.redials(), events);
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_of_an_address_is_what_stands_before_its_port() {
        for (address, host) in [
            ("http://a.b:1", "a.b"),
            ("http://a:1/", "a"),
            ("http://[::1]:1", "[::1]"),
            ("10.0.0.1:6120", "10.0.0.1"),
        ] {
            assert_eq!(host_of(address), host);
        }
    }
}
