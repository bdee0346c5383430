//! What a task executor can be asked.

use crate::error::RpcError;
use crate::grpc::call::Calls;
use crate::grpc::service::{ServiceRules, VersionCheck};
use crate::network::link::Link;
use crate::v1;
use tonic::service::interceptor::InterceptedService;

gateway! {
    /// What a task executor can be asked. It is not led: the fence of a request is the asker's term and life.
    trait TaskExecutorGateway, endpoint task_executor,
    client task_executor_client::TaskExecutorClient, server task_executor_server::TaskExecutor / TaskExecutorServer;
    unary {
        /// Holds a slot for a job; a repeat with the same allocation is one slot.
        request_slot(RequestSlotRequest) -> RequestSlotReply;
        /// Frees the slot of an allocation.
        free_slot(FreeSlotRequest) -> Ack;
        /// Starts one attempt in an allocated slot.
        submit_task(SubmitTaskRequest) -> Ack;
        /// Cancels an attempt.
        cancel_task(CancelTaskRequest) -> Ack;
        /// Says that a checkpoint has begun.
        trigger_checkpoint(TriggerCheckpointRequest) -> Ack;
        /// The resource manager's heartbeat.
        heartbeat_from_resource_manager(HeartbeatToTaskExecutorRequest) -> Ack;
        /// A job master's heartbeat, with the slots that it holds here.
        heartbeat_from_job_master(HeartbeatFromJobMasterToTaskExecutorRequest) -> Ack;
    }
    streams {}
}
