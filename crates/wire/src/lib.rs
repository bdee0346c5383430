//! The wire between the roles.
//!
//! What a role can be asked is a trait, its *gateway* ([`gateway`]); how the question travels is a [`Transport`]: gRPC
//! ([`grpc::GrpcTransport`]) between processes, or the in-memory network ([`network::InMemoryNetwork`]) where one
//! thread simulates a cluster. A role is written against the traits and runs on both. Beside them stand the rules that
//! every pair of roles shares: registration with retry, fencing, numbered one-way messages, and the conversion of
//! identifiers.
//!
//! It does not decide what a message means, it does not retry a call, and it does not reconnect a stream: that is the
//! roles' business.

pub mod address;
pub mod convert;
pub mod error;
pub mod fencing;
pub mod gateway;
pub mod grpc;
pub mod liveness;
pub mod network;
pub mod registration;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod transport;
#[rustfmt::skip]
#[path = "gen/tidegate.v1.rs"]
pub mod v1;

pub use address::Address;
pub use error::{RpcError, RpcErrorKind};
pub use gateway::{DataGateway, JobMasterGateway, ResourceManagerGateway, TaskExecutorGateway};
pub use transport::{Endpoints, MessageStream, ServeError, Serving, Transport};

/// The version of what the messages mean. Peers of another version are refused, whichever side notices first.
pub const PROTOCOL_VERSION: u32 = 1;
