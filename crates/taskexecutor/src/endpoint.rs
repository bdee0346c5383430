//! The task executor's side of its gateway: every call becomes an event, and its answer the event's reply.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use connectors::call::RustCalls;
use controller_events::{Handle, Lane, PutOptions, Reply};
use entrypoint::Placement;
use heartbeat::LivenessSource;
use runtime_core::Incarnation;
use runtime_core::time::TokioClock;
use tokio::runtime;
use tokio::sync::oneshot;
use wire::liveness::beside_the_loop;
use wire::{RpcError, TaskExecutorGateway, v1};

use crate::event::{Answer, TeEvent};
use crate::prepare::{Plans, Prepared, prepare};

/// What others see of a task executor.
pub(crate) struct Endpoint {
    /// Set once the loop is there: the place to serve at is taken before, since its address is part of the name.
    pub(crate) events: OnceLock<Handle<TeEvent>>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) calls: Arc<RustCalls>,
    pub(crate) placement: Placement,
    pub(crate) runtime: runtime::Handle,
    /// Says how the loop is while it is busy.
    pub(crate) liveness: Arc<LivenessSource<Incarnation>>,
    pub(crate) clock: TokioClock,
}

impl Endpoint {
    /// Puts a call as an event; what it yields ends with the answer. Requests are of the low lane, which is refused when
    /// too much waits; a sign of life is a fact, and is taken however much waits.
    fn put<T: Send + 'static, E: FnOnce(Answer<T>) -> TeEvent + 'static>(
        &self,
        lane: Lane,
        event: E,
    ) -> Result<impl Future<Output = Result<T, RpcError>> + Send + use<T, E>, RpcError> {
        let events =
            self.events.get().ok_or_else(|| RpcError::not_started("the task executor is starting"))?;
        let (reply, answer) = Reply::pair();
        let options = PutOptions { lane, ..PutOptions::default() };
        events.put_with(event(reply), options).map_err(|refused| {
            if refused.is_overloaded() {
                RpcError::overloaded(format!("the task executor is overloaded: {refused}"))
            } else {
                stopping()
            }
        })?;
        Ok(async move { answer.await.unwrap_or_else(|_| Err(stopping())) })
    }

    async fn ask<T: Send + 'static>(
        &self,
        event: impl FnOnce(Answer<T>) -> TeEvent + Send + 'static,
    ) -> Result<T, RpcError> {
        self.put(Lane::Low, event)?.await
    }

    /// Prepares a task where blocking is allowed.
    async fn prepare(&self, request: v1::SubmitTaskRequest) -> Result<Prepared, RpcError> {
        let (done, prepared) = oneshot::channel();
        let (plans, calls) = (Arc::clone(&self.plans), Arc::clone(&self.calls));
        self.placement.block(&self.runtime, move || {
            // Whoever asked may have given up.
            let _ = done.send(prepare(request, &plans, &calls));
        });
        prepared.await.unwrap_or_else(|_| Err(stopping()))
    }
}

fn stopping() -> RpcError {
    RpcError::not_started("the task executor is stopping")
}

#[async_trait]
impl TaskExecutorGateway for Endpoint {
    async fn request_slot(&self, request: v1::RequestSlotRequest) -> Result<v1::RequestSlotReply, RpcError> {
        self.ask(|reply| TeEvent::RequestSlot(request, reply)).await
    }

    async fn free_slot(&self, request: v1::FreeSlotRequest) -> Result<v1::Ack, RpcError> {
        self.ask(|reply| TeEvent::FreeSlot(request, reply)).await
    }

    async fn submit_task(&self, request: v1::SubmitTaskRequest) -> Result<v1::Ack, RpcError> {
        let prepared = Box::new(self.prepare(request).await?);
        self.ask(|reply| TeEvent::Submit(prepared, reply)).await
    }

    async fn cancel_task(&self, request: v1::CancelTaskRequest) -> Result<v1::Ack, RpcError> {
        self.ask(|reply| TeEvent::CancelTask(request, reply)).await
    }

    async fn trigger_checkpoint(&self, request: v1::TriggerCheckpointRequest) -> Result<v1::Ack, RpcError> {
        self.ask(|reply| TeEvent::TriggerCheckpoint(request, reply)).await
    }

    async fn heartbeat_from_resource_manager(
        &self,
        request: v1::HeartbeatToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        let handled = self.put(Lane::Normal, |reply| TeEvent::ResourceManagerBeat(request, reply))?;
        beside_the_loop(&self.liveness, &self.clock, handled).await
    }

    async fn heartbeat_from_job_master(
        &self,
        request: v1::HeartbeatFromJobMasterToTaskExecutorRequest,
    ) -> Result<v1::Ack, RpcError> {
        let handled = self.put(Lane::Normal, |reply| TeEvent::JobMasterBeat(request, reply))?;
        beside_the_loop(&self.liveness, &self.clock, handled).await
    }
}
