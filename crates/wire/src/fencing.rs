//! Fencing: what is meant for another term or said by another life is refused, not applied.
//!
//! Flink: `FencedRpcEndpoint`, whose token is compared before a call is dispatched. Here the check is a function that
//! the role's loop calls first, because only the loop knows its term and the lives it has registered.

use crate::convert::{ConvertError, WireId as _, required};
use crate::error::RpcError;
use crate::v1;
use runtime_core::{Epoch, Incarnation};
use std::fmt;

/// For which term of the receiver a message is meant, and which life of the sender says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The receiver's term as the sender knows it, [`Epoch::UNKNOWN`] at a first call; to a task executor, which is
    /// not led, the sender's own term.
    pub epoch: Epoch,
    /// The sender's life.
    pub incarnation: Incarnation,
}

/// Whether a call may come from somebody who does not know the receiver's term yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownEpoch {
    /// The call is a first one (a registration, a look at the cluster): its answer brings the term.
    Accepted,
    /// The caller must have registered before.
    Refused,
}

impl Fence {
    /// The fence of a message.
    ///
    /// # Errors
    ///
    /// [`ConvertError`], where it is missing or its incarnation is none.
    pub fn of(wire: Option<&v1::Fence>) -> Result<Self, ConvertError> {
        let wire = required(wire, "fence")?;
        let incarnation = Incarnation::from_wire(&wire.incarnation, "fence.incarnation")?;
        Ok(Self { epoch: Epoch(wire.epoch), incarnation })
    }

    /// The fence as it travels.
    #[must_use]
    pub fn to_wire(self) -> v1::Fence {
        v1::Fence { epoch: self.epoch.0, incarnation: self.incarnation.to_wire() }
    }

    /// Lets a message pass that is meant for the receiver's `current` term.
    ///
    /// # Errors
    ///
    /// `Fencing` where it is meant for another; `NotStarted` where the receiver has no term yet.
    pub fn check_epoch(self, current: Epoch, unknown: UnknownEpoch) -> Result<(), RpcError> {
        if !current.is_known() {
            return Err(RpcError::not_started("the receiver has no term yet"));
        }
        if self.epoch == current || (!self.epoch.is_known() && unknown == UnknownEpoch::Accepted) {
            return Ok(());
        }
        if !self.epoch.is_known() {
            return Err(RpcError::fencing(format!(
                "the message names no term, the current one is {current}"
            )));
        }
        Err(RpcError::fencing(format!(
            "the message is for term {}, the current one is {current}",
            self.epoch
        )))
    }

    /// Lets a message pass that is said by the life that `who` has registered with.
    ///
    /// # Errors
    ///
    /// `Fencing` where another life says it.
    pub fn check_incarnation(self, registered: Incarnation, who: impl fmt::Display) -> Result<(), RpcError> {
        if self.incarnation == registered {
            return Ok(());
        }
        Err(RpcError::fencing(format!(
            "the message is from life {} of {who}, registered is life {registered}",
            self.incarnation
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RpcErrorKind::{Fencing, NotStarted};

    const LIFE: Incarnation = Incarnation::from_u128(7);

    #[test]
    fn only_the_current_term_passes_and_the_unknown_one_at_first_calls() {
        use UnknownEpoch::{Accepted, Refused};
        for (said, current, unknown, expected) in [
            (5, 5, Refused, None),
            (5, 5, Accepted, None),
            (4, 5, Accepted, Some(Fencing)),
            (6, 5, Accepted, Some(Fencing)),
            (0, 5, Accepted, None),
            (0, 5, Refused, Some(Fencing)),
            (0, 0, Accepted, Some(NotStarted)),
            (5, 0, Refused, Some(NotStarted)),
        ] {
            let fence = Fence { epoch: Epoch(said), incarnation: LIFE };
            let found = fence.check_epoch(Epoch(current), unknown).err().map(|error| error.kind);
            assert_eq!(found, expected, "said {said}, current {current}, unknown {unknown:?}");
        }
    }

    #[test]
    fn another_life_of_the_sender_is_refused() {
        let fence = Fence { epoch: Epoch(1), incarnation: LIFE };
        assert_eq!(fence.check_incarnation(LIFE, "te-1"), Ok(()));
        let error = fence.check_incarnation(Incarnation::from_u128(8), "te-1").unwrap_err();
        assert_eq!(error.kind, Fencing);
        assert!(error.message.contains("te-1"), "{error}");
    }

    #[test]
    fn a_fence_comes_back_from_the_wire_and_its_absence_is_named() {
        let fence = Fence { epoch: Epoch(9), incarnation: LIFE };
        assert_eq!(Fence::of(Some(&fence.to_wire())), Ok(fence));
        assert_eq!(Fence::of(None), Err(ConvertError::Missing { field: "fence" }));
        let short = v1::Fence { epoch: 1, incarnation: bytes::Bytes::from_static(b"x") };
        assert!(matches!(Fence::of(Some(&short)), Err(ConvertError::Id { field: "fence.incarnation", .. })));
    }
}
