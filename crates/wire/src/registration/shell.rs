//! Makes the attempts of a registration and waits between them.

use super::core::{Effect, Event, Notice, RetryingRegistration};
use super::options::RegistrationOptions;
use super::reply::Reply;
use crate::error::RpcError;
use runtime_core::time::{Clock as _, TokioClock};
use std::fmt;
use std::pin::Pin;

/// The peer will never accept the registration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{peer} has rejected the registration for good: {reason}")]
pub struct Rejected {
    /// Who rejected it.
    pub peer: String,
    /// Why.
    pub reason: String,
}

/// Registers at a peer: calls `attempt`, with numbers from 1, until one is accepted or rejected. Dropping the future
/// ends it; an attempt that is given up is dropped, so that its late answer cannot be seen.
///
/// `peer` is the name of the peer in the two log lines: one when waiting for it begins, one when it ends. The jitter
/// of the pauses is drawn from `seed`.
///
/// # Errors
///
/// [`Rejected`]; every other failure is tried again.
pub async fn register<S, A, F>(
    peer: &(dyn fmt::Display + Sync),
    options: RegistrationOptions,
    seed: u64,
    clock: &TokioClock,
    mut attempt: A,
) -> Result<S, Rejected>
where
    A: FnMut(u64) -> F + Send,
    F: Future<Output = Result<Reply<S>, RpcError>> + Send,
    S: Send,
{
    let mut core = RetryingRegistration::new(options, seed);
    let mut running: Option<(u64, Pin<Box<F>>)> = None;
    let mut event = Event::Start;
    loop {
        let mut wake = None;
        for effect in core.on(event, clock.now()) {
            match effect {
                Effect::Attempt { number, deadline } => {
                    running = Some((number, Box::pin(attempt(number))));
                    wake = Some(deadline);
                }
                Effect::WakeAt(at) => wake = Some(at),
                Effect::Tell(notice) => tell(peer, &notice),
                Effect::Registered(success) => return Ok(success),
                Effect::Rejected(reason) => return Err(Rejected { peer: peer.to_string(), reason }),
            }
        }
        event = tokio::select! {
            biased;
            answered = answer(&mut running) => answered,
            () = wait(clock, wake) => Event::TimePassed,
        };
        if !matches!(event, Event::TimePassed) {
            running = None;
        }
    }
}

async fn answer<S, F>(running: &mut Option<(u64, Pin<Box<F>>)>) -> Event<S>
where
    F: Future<Output = Result<Reply<S>, RpcError>>,
{
    let Some((attempt, future)) = running else { return std::future::pending().await };
    let outcome = future.as_mut().await;
    let attempt = *attempt;
    match outcome {
        Ok(reply) => Event::Answered { attempt, reply },
        Err(error) => Event::Failed { attempt, error },
    }
}

async fn wait(clock: &TokioClock, until: Option<runtime_core::Tick>) {
    match until {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn tell(peer: &(dyn fmt::Display + Sync), notice: &Notice) {
    match notice {
        Notice::WaitingBegins { cause } => tracing::warn!(%peer, %cause, "waiting for {peer}: {cause}"),
        Notice::WaitingEnds { waited, attempts } => {
            tracing::info!(%peer, attempts, "{peer} has answered after {waited:.1?}");
        }
    }
}
