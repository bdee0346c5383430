//! Gateways: what each role can be asked (Flink: `RpcGateway`).
//!
//! One trait a role, one method an rpc of `proto/`. A role implements its own trait and asks others through theirs.
//! The table of methods of each trait also yields its three adapters: a gRPC client, a gRPC service, and a client
//! over a link of the in-memory network, so that the four can never differ.

#[macro_use]
mod adapters;
pub(crate) mod data;
pub(crate) mod job_master;
pub(crate) mod resource_manager;
pub(crate) mod task_executor;

pub use data::DataGateway;
pub use job_master::JobMasterGateway;
pub use resource_manager::ResourceManagerGateway;
pub use task_executor::TaskExecutorGateway;
