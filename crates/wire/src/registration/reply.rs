//! What a registration is answered (Flink: `RegistrationResponse`).

use crate::convert::{ConvertError, WireId as _, required, resource_id};
use crate::v1;
use runtime_core::{Epoch, Incarnation, InstanceId, ResourceId};

/// The answer to one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<S> {
    /// Registered.
    Success(S),
    /// Not now, for this reason: try again after a pause.
    Failure(String),
    /// Never, for this reason: do not try again.
    Rejection(String),
}

/// What the one registered at says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its term.
    pub epoch: Epoch,
    /// Its name.
    pub resource_id: ResourceId,
    /// Its life.
    pub incarnation: Incarnation,
    /// What a resource manager names this registration of a task executor; otherwise absent.
    pub instance_id: Option<InstanceId>,
    /// Whether the registration of before stands, so that the numbers of the messages go on.
    pub resumed: bool,
}

impl TryFrom<v1::RegistrationReply> for Reply<Registered> {
    type Error = ConvertError;

    fn try_from(wire: v1::RegistrationReply) -> Result<Self, ConvertError> {
        use v1::registration_reply::Outcome;
        Ok(match required(wire.outcome, "outcome")? {
            Outcome::Success(success) => Self::Success(Registered {
                epoch: Epoch(success.epoch),
                resource_id: resource_id(&success.resource_id, "success.resource_id")?,
                incarnation: Incarnation::from_wire(&success.incarnation, "success.incarnation")?,
                instance_id: InstanceId::from_wire_or_empty(&success.instance_id, "success.instance_id")?,
                resumed: success.resumed,
            }),
            Outcome::Failure(failure) => Self::Failure(failure.reason),
            Outcome::Rejection(rejection) => Self::Rejection(rejection.reason),
        })
    }
}

impl From<Reply<Registered>> for v1::RegistrationReply {
    fn from(reply: Reply<Registered>) -> Self {
        use v1::registration_reply::Outcome;
        let outcome = match reply {
            Reply::Success(registered) => Outcome::Success(v1::RegistrationSuccess {
                epoch: registered.epoch.0,
                resource_id: registered.resource_id.to_string(),
                instance_id: registered.instance_id.map(|id| id.to_wire()).unwrap_or_default(),
                incarnation: registered.incarnation.to_wire(),
                resumed: registered.resumed,
            }),
            Reply::Failure(reason) => Outcome::Failure(v1::RegistrationFailure { reason }),
            Reply::Rejection(reason) => Outcome::Rejection(v1::RegistrationRejection { reason }),
        };
        Self { outcome: Some(outcome) }
    }
}
