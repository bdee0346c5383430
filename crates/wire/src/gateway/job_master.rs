//! What a job master can be asked.

use crate::error::RpcError;
use crate::grpc::call::Calls;
use crate::grpc::service::{ReplyStream, ServiceRules, VersionCheck};
use crate::network::link::Link;
use crate::transport::MessageStream;
use crate::v1;
use tonic::service::interceptor::InterceptedService;

gateway! {
    /// What a job master can be asked by task executors and by the resource manager. Every message names its job.
    trait JobMasterGateway, endpoint job_master,
    client job_master_client::JobMasterClient, server job_master_server::JobMaster / JobMasterServer;
    unary {
        /// Registers a task executor for one job; again from the same life: success without a change.
        register_task_executor(RegisterAtJobMasterRequest) -> RegistrationReply;
        /// Offers slots that were requested for the job; the answer names those that are taken.
        offer_slots(OfferSlotsRequest) -> OfferSlotsReply;
        /// The next part of the input for an attempt; a repeat of a number is given the same part.
        request_next_input_split(RequestNextInputSplitRequest) -> RequestNextInputSplitReply;
        /// A task executor's answer to a heartbeat.
        heartbeat_from_task_executor(HeartbeatToJobMasterRequest) -> Ack;
        /// The resource manager's heartbeat.
        heartbeat_from_resource_manager(HeartbeatFromResourceManagerRequest) -> Ack;
    }
    streams {
        /// The one-way messages of a registered task executor for one job, both ways.
        task_executor_stream(TaskExecutorToJobMaster) -> JobMasterToTaskExecutor as TaskExecutorStreamStream;
    }
}
