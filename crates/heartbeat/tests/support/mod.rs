//! An owner and a peer that write down what they are told, and short words for times.
// Each test program uses its own part of it.
#![allow(dead_code)]

use heartbeat::{
    Call, Delivery, HeartbeatExchange, HeartbeatListener, HeartbeatOptions, HeartbeatServices,
    HeartbeatTarget, OptionError, RpcOutcome, Verdict,
};
use runtime_core::{EpochMillis, Tick};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Services of so many milliseconds and refused calls.
pub(crate) fn services(
    interval: u64,
    timeout: u64,
    threshold: i32,
) -> Result<HeartbeatServices, OptionError> {
    HeartbeatServices::new(HeartbeatOptions {
        interval: Duration::from_millis(interval),
        timeout: Duration::from_millis(timeout),
        rpc_failure_threshold: threshold,
        allow_short_interval: true,
        ..HeartbeatOptions::default()
    })
}

pub(crate) fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

/// The wall clock at `ms(millis)`.
pub(crate) fn wall(millis: i64) -> EpochMillis {
    EpochMillis(1_700_000_000_000 + millis)
}

/// An owner that writes down what it is told.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    pub(crate) reported: Vec<(&'static str, &'static str)>,
    pub(crate) timed_out: Vec<&'static str>,
    pub(crate) unreachable: Vec<&'static str>,
    pub(crate) payloads: BTreeMap<&'static str, u32>,
}

impl HeartbeatListener<&'static str, u32> for Owner {
    type Input = &'static str;
    type Output = u32;

    fn notify_heartbeat_timeout(&mut self, verdict: &Verdict<&'static str, u32>) {
        self.timed_out.push(verdict.id);
    }

    fn notify_target_unreachable(&mut self, verdict: &Verdict<&'static str, u32>) {
        self.unreachable.push(verdict.id);
    }

    fn report_payload(&mut self, id: &&'static str, payload: &'static str) {
        self.reported.push((id, payload));
    }

    fn retrieve_payload(&mut self, id: &&'static str) -> Option<u32> {
        self.payloads.get(id).copied()
    }
}

/// What a peer was told: (request or answer, from whom, payload).
pub(crate) type Told = (&'static str, &'static str, Option<u32>);

/// A peer that writes down what it is told.
#[derive(Debug)]
pub(crate) struct Peer(pub(crate) Sender<Told>);

impl HeartbeatTarget<&'static str, u32> for Peer {
    fn request_heartbeat(&self, origin: &&'static str, payload: Option<u32>) -> Delivery {
        let sent = self.0.send(("request", origin, payload));
        Box::pin(ready(if sent.is_ok() { RpcOutcome::Delivered } else { RpcOutcome::Unreachable }))
    }

    fn receive_heartbeat(&self, origin: &&'static str, payload: Option<u32>) -> Delivery {
        let sent = self.0.send(("answer", origin, payload));
        Box::pin(ready(if sent.is_ok() { RpcOutcome::Delivered } else { RpcOutcome::Unreachable }))
    }
}

pub(crate) fn peer() -> (Peer, Receiver<Told>) {
    let (sender, told) = channel();
    (Peer(sender), told)
}

pub(crate) type Exchange = HeartbeatExchange<&'static str, Owner, Peer, u32>;

/// Runs a call whose outcome is there at once, and reports it.
pub(crate) fn carry_out(
    exchange: &mut Exchange,
    call: Call<&'static str, u32>,
    now: Tick,
) -> Option<RpcOutcome> {
    let Call { id, incarnation, mut delivery } = call;
    match delivery.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => {
            exchange.rpc_outcome(&id, &incarnation, outcome, now);
            Some(outcome)
        }
        Poll::Pending => None,
    }
}
