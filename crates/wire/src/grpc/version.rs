//! The protocol version that every call and every answer carries.

use crate::error::RpcError;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The header with the version.
const HEADER: &str = "tidegate-protocol";

/// Writes the version.
pub(super) fn mark(metadata: &mut MetadataMap, protocol: u32) {
    metadata.insert(HEADER, MetadataValue::from(protocol));
}

/// Whether the peer has named a version, whichever.
pub(super) fn is_marked(metadata: &MetadataMap) -> bool {
    metadata.contains_key(HEADER)
}

/// Refuses a peer that speaks another version or names none.
pub(super) fn check(metadata: &MetadataMap, protocol: u32) -> Result<(), RpcError> {
    let Some(found) = metadata.get(HEADER) else {
        return Err(RpcError::version(format!(
            "the peer names no protocol, this is {protocol}: it is no Tidegate, or one that is too old"
        )));
    };
    let found = found.to_str().unwrap_or("?");
    if found == protocol.to_string() {
        return Ok(());
    }
    let found: String = found.chars().take(20).collect();
    Err(RpcError::version(format!(
        "peer speaks protocol {found}, this is {protocol}: run the same version everywhere"
    )))
}

/// Refuses calls of another version before their messages are decoded.
#[derive(Clone, Copy)]
pub(crate) struct VersionCheck {
    pub(crate) protocol: u32,
}

impl Interceptor for VersionCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        match check(request.metadata(), self.protocol) {
            Ok(()) => Ok(request),
            Err(refusal) => Err(super::status::to_status(&refusal, self.protocol)),
        }
    }
}
