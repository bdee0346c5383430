//! The peer, as it is seen from here.

use crate::outcome::RpcOutcome;
use std::pin::Pin;

/// A call on its way: it says only what became of it, never what the peer thinks.
pub type Delivery = Pin<Box<dyn Future<Output = RpcOutcome> + Send>>;

/// A peer that can be asked for a heartbeat and given one (Flink: `HeartbeatTarget`). The answer to a request comes as
/// a call of the peer's own; the outcome of the request proves delivery and nothing more. Calls must not be retried
/// by the transport: that would hide a refusal.
pub trait HeartbeatTarget<K, P> {
    /// Asks the peer for a heartbeat, in the name of `origin`.
    fn request_heartbeat(&self, origin: &K, payload: Option<P>) -> Delivery;

    /// Gives the peer a heartbeat, in the name of `origin`.
    fn receive_heartbeat(&self, origin: &K, payload: Option<P>) -> Delivery;
}

/// A target that is only ever asked (Flink: `HeartbeatSender`): what an active owner makes of a function.
#[derive(Debug, Clone)]
pub struct HeartbeatSender<F>(pub F);

/// A target that is only ever answered (Flink: `HeartbeatReceiver`): what a passive owner makes of a function.
///
/// ```
/// use heartbeat::{HeartbeatReceiver, HeartbeatTarget, RpcOutcome};
/// let target = HeartbeatReceiver(|origin: &&str, payload: Option<u32>| {
///     println!("{origin} says {payload:?}");
///     Box::pin(std::future::ready(RpcOutcome::Delivered)) as heartbeat::Delivery
/// });
/// let mut outcome = target.receive_heartbeat(&"me", Some(1));
/// # use std::{future::Future, task::{Context, Poll, Waker}};
/// # let mut cx = Context::from_waker(Waker::noop());
/// assert_eq!(outcome.as_mut().poll(&mut cx), Poll::Ready(RpcOutcome::Delivered));
/// ```
#[derive(Debug, Clone)]
pub struct HeartbeatReceiver<F>(pub F);

/// The half that a target does not have fails like any call whose failure says nothing about the peer.
fn unsupported() -> Delivery {
    Box::pin(std::future::ready(RpcOutcome::Other))
}

impl<K, P, F: Fn(&K, Option<P>) -> Delivery> HeartbeatTarget<K, P> for HeartbeatSender<F> {
    fn request_heartbeat(&self, origin: &K, payload: Option<P>) -> Delivery {
        (self.0)(origin, payload)
    }

    fn receive_heartbeat(&self, _origin: &K, _payload: Option<P>) -> Delivery {
        unsupported()
    }
}

impl<K, P, F: Fn(&K, Option<P>) -> Delivery> HeartbeatTarget<K, P> for HeartbeatReceiver<F> {
    fn request_heartbeat(&self, _origin: &K, _payload: Option<P>) -> Delivery {
        unsupported()
    }

    fn receive_heartbeat(&self, origin: &K, payload: Option<P>) -> Delivery {
        (self.0)(origin, payload)
    }
}
