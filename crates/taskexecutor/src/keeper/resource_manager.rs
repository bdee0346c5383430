//! The link to the resource manager: registered for in two steps.

use std::sync::Arc;

use controller_events::{Handle, Reply};
use futures::StreamExt;
use runtime_core::Epoch;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::WireId;
use wire::registration::{self, Registered, RegistrationOptions, Rejected};
use wire::{ResourceManagerGateway, RpcError, v1};

use super::{Opened, Peer};
use crate::event::{Life, TeEvent};
use crate::shared::Shared;

/// The resource manager, as a peer to keep a link to.
pub(crate) struct ResourceManagerPeer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) gateway: Arc<dyn ResourceManagerGateway>,
    pub(crate) events: Handle<TeEvent>,
    pub(crate) life: Life,
    pub(crate) seed: u64,
}

impl Peer for ResourceManagerPeer {
    type Says = v1::ResourceManagerToTaskExecutor;

    async fn register(&mut self) -> Result<Registered, Rejected> {
        let shared = &self.shared;
        let request = v1::RegisterTaskExecutorRequest {
            fence: shared.fence(Epoch::UNKNOWN),
            resource_id: shared.resource_id.to_string(),
            rpc_address: shared.rpc_address.to_string(),
            data_address: shared.data_address.to_string(),
            slots: shared.slots,
            cpu_cores: shared.hardware.cpu_cores,
            memory_bytes: shared.hardware.memory_bytes,
            rust_calls: shared.calls.names(),
        };
        self.seed = self.seed.wrapping_add(1);
        let peer = format!("resource manager at {}", shared.resource_manager);
        let attempt = |_| {
            let (gateway, request) = (Arc::clone(&self.gateway), request.clone());
            async move {
                let reply = gateway.register_task_executor(request).await?;
                Ok(registration::Reply::try_from(reply)?)
            }
        };
        registration::register(&peer, RegistrationOptions::default(), self.seed, &shared.clock, attempt).await
    }

    /// The second step is the report of the slots; before it the resource manager requests none (FLINK-9427).
    async fn open(&self, registered: Registered) -> Result<Opened<Self::Says>, String> {
        let fence = self.shared.fence(registered.epoch);
        let instance = registered.instance_id.ok_or("the registration was given no name")?;
        let (reply, report) = Reply::pair();
        let told = TeEvent::ResourceManagerRegistered(self.life, registered, reply);
        self.events.put(told).map_err(|refused| refused.to_string())?;
        let report = report.await.map_err(|abandoned| abandoned.to_string())?;
        let request = v1::SendSlotReportRequest {
            fence: fence.clone(),
            resource_id: self.shared.resource_id.to_string(),
            instance_id: instance.to_wire(),
            report: Some(report),
        };
        self.gateway.send_slot_report(request).await.map_err(|error| error.to_string())?;
        let (outbound, messages) = mpsc::unbounded_channel();
        let hello = v1::TaskExecutorHello {
            fence,
            resource_id: self.shared.resource_id.to_string(),
            instance_id: instance.to_wire(),
        };
        let hello = v1::task_executor_to_resource_manager::Message::Hello(hello);
        let first = v1::TaskExecutorToResourceManager { number: 0, message: Some(hello) };
        let outgoing = futures::stream::iter([first]).chain(UnboundedReceiverStream::new(messages));
        let incoming = self.gateway.task_executor_stream(outgoing.map(Ok).boxed()).await;
        let incoming = incoming.map_err(|error: RpcError| error.to_string())?;
        Ok(Opened { incoming, connected: TeEvent::ResourceManagerConnected(self.life, outbound) })
    }

    fn says(&self, message: Self::Says) -> TeEvent {
        TeEvent::ResourceManagerSays(self.life, message)
    }

    fn lost(&self, why: String) -> TeEvent {
        TeEvent::ResourceManagerLost(self.life, why)
    }

    fn rejected(&self, reason: String) -> TeEvent {
        TeEvent::ResourceManagerRejected(self.life, reason)
    }

    fn events(&self) -> &Handle<TeEvent> {
        &self.events
    }
}
