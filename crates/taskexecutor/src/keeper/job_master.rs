//! The link to the master of one job.

use std::sync::Arc;

use controller_events::Handle;
use futures::StreamExt;
use runtime_core::{Epoch, JobId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::WireId;
use wire::registration::{self, Registered, RegistrationOptions, Rejected};
use wire::{JobMasterGateway, RpcError, v1};

use super::{Opened, Peer};
use crate::event::{Life, TeEvent};
use crate::shared::Shared;

/// A job's master in one term, as a peer to keep a link to.
pub(crate) struct JobMasterPeer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) gateway: Arc<dyn JobMasterGateway>,
    pub(crate) address: String,
    pub(crate) epoch: Epoch,
    pub(crate) job: JobId,
    pub(crate) events: Handle<TeEvent>,
    pub(crate) life: Life,
    pub(crate) seed: u64,
}

impl Peer for JobMasterPeer {
    type Says = v1::JobMasterToTaskExecutor;

    /// Each attempt is a question whether the job master lives, too: what became of it goes to the loop.
    async fn register(&mut self) -> Result<Registered, Rejected> {
        let shared = &self.shared;
        let request = v1::RegisterAtJobMasterRequest {
            fence: shared.fence(self.epoch),
            job_id: self.job.to_wire(),
            resource_id: shared.resource_id.to_string(),
            rpc_address: shared.rpc_address.to_string(),
            data_address: shared.data_address.to_string(),
            rust_calls: shared.calls.names(),
        };
        self.seed = self.seed.wrapping_add(1);
        let peer = format!("master of job {} at {}", self.job, self.address);
        let attempt = |_| {
            let (gateway, request) = (Arc::clone(&self.gateway), request.clone());
            let (events, job, life) = (self.events.clone(), self.job, self.life);
            async move {
                let answer = gateway.register_task_executor(request).await;
                let error = answer.as_ref().err().cloned();
                if events.put(TeEvent::JobMasterAsked(job, life, error)).is_err() {
                    tracing::debug!(%job, "the loop of the task executor has ended before one of its links");
                }
                Ok(registration::Reply::try_from(answer?)?)
            }
        };
        registration::register(&peer, RegistrationOptions::default(), self.seed, &shared.clock, attempt).await
    }

    async fn open(&self, registered: Registered) -> Result<Opened<Self::Says>, String> {
        let (outbound, messages) = mpsc::unbounded_channel();
        let hello = v1::TaskExecutorAtJobMasterHello {
            fence: self.shared.fence(registered.epoch),
            job_id: self.job.to_wire(),
            resource_id: self.shared.resource_id.to_string(),
        };
        let hello = v1::task_executor_to_job_master::Message::Hello(hello);
        let first = v1::TaskExecutorToJobMaster { number: 0, message: Some(hello) };
        let outgoing = futures::stream::iter([first]).chain(UnboundedReceiverStream::new(messages));
        let incoming = self.gateway.task_executor_stream(outgoing.map(Ok).boxed()).await;
        let incoming = incoming.map_err(|error: RpcError| error.to_string())?;
        let connected = TeEvent::JobMasterConnected(self.job, self.life, registered, outbound);
        Ok(Opened { incoming, connected })
    }

    fn says(&self, message: Self::Says) -> TeEvent {
        TeEvent::JobMasterSays(self.job, self.life, message)
    }

    fn lost(&self, why: String) -> TeEvent {
        TeEvent::JobMasterLost(self.job, self.life, why)
    }

    fn rejected(&self, reason: String) -> TeEvent {
        TeEvent::JobMasterRejected(self.job, self.life, reason)
    }

    fn events(&self) -> &Handle<TeEvent> {
        &self.events
    }
}
