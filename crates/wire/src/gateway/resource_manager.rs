//! What the resource manager can be asked.

use crate::error::RpcError;
use crate::grpc::call::Calls;
use crate::grpc::service::{ReplyStream, ServiceRules, VersionCheck};
use crate::network::link::Link;
use crate::transport::MessageStream;
use crate::v1;
use tonic::service::interceptor::InterceptedService;

gateway! {
    /// What the resource manager can be asked. It is also the directory of job masters.
    trait ResourceManagerGateway, endpoint resource_manager,
    client resource_manager_client::ResourceManagerClient,
    server resource_manager_server::ResourceManager / ResourceManagerServer;
    unary {
        /// First step of a task executor's registration; again from the same one: the older registration ends.
        register_task_executor(RegisterTaskExecutorRequest) -> RegistrationReply;
        /// Second step of a task executor's registration; before it no slot is requested there.
        send_slot_report(SendSlotReportRequest) -> Ack;
        /// Registers a job master, one for each job and term.
        register_job_master(RegisterJobMasterRequest) -> RegistrationReply;
        /// A task executor's answer to a heartbeat.
        heartbeat_from_task_executor(HeartbeatFromTaskExecutorRequest) -> Ack;
        /// A job master's answer to a heartbeat.
        heartbeat_from_job_master(HeartbeatFromJobMasterRequest) -> Ack;
        /// The cluster as it is now.
        describe_cluster(DescribeClusterRequest) -> ClusterDescription;
    }
    streams {
        /// The one-way messages of a registered task executor, both ways.
        task_executor_stream(TaskExecutorToResourceManager) -> ResourceManagerToTaskExecutor
            as TaskExecutorStreamStream;
        /// The one-way messages of a registered job master, both ways.
        job_master_stream(JobMasterToResourceManager) -> ResourceManagerToJobMaster as JobMasterStreamStream;
    }
}
