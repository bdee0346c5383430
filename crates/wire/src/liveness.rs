//! Signs of life on heartbeat calls.
//!
//! A heartbeat call is answered beside the receiver's main loop: with what the loop says if that comes soon, and without
//! it if the loop is busy. Either way the answer carries a liveness frame, which tells the loop's age. So the caller can
//! tell a process that is dead from one that is busy, and both from one whose loop is stuck.

use crate::convert::{ConvertError, WireId as _};
use crate::error::{RpcError, RpcErrorKind};
use crate::v1;
use heartbeat::{CallEnd, LivenessFrame, LivenessSource, RpcOutcome};
use runtime_core::{Clock, Incarnation, Tick};
use std::sync::Arc;
use std::time::Duration;

/// How long the loop may take before the answer goes without it. Less than every interval that makes sense, and more than a
/// loop takes that is not stuck.
const PATIENCE: Duration = Duration::from_millis(50);

/// Answers a heartbeat call beside the main loop. `handled` ends when the loop has seen to it; a failure that it finds
/// in time is the call's.
///
/// # Errors
/// Whatever `handled` ends with in time.
pub async fn beside_the_loop<C: Clock + ?Sized>(
    source: &Arc<LivenessSource<Incarnation>>,
    clock: &C,
    handled: impl Future<Output = Result<v1::Ack, RpcError>> + Send + 'static,
) -> Result<v1::Ack, RpcError> {
    let waiting = source.wait(clock.now());
    // A task of its own: the loop will answer after this call has.
    let mut handled = tokio::spawn(async move {
        let answer = handled.await;
        drop(waiting);
        answer
    });
    let ack = match tokio::time::timeout(PATIENCE, &mut handled).await {
        Ok(Ok(answer)) => answer?,
        // Too busy, or the task was dropped with its runtime.
        Ok(Err(_)) | Err(_) => v1::Ack::default(),
    };
    Ok(v1::Ack { liveness: Some(to_wire(&source.frame(clock.now(), None))), ..ack })
}

fn to_wire(frame: &LivenessFrame<Incarnation>) -> v1::LivenessFrame {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    v1::LivenessFrame {
        incarnation: frame.incarnation.to_wire(),
        sequence: frame.sequence,
        sent_at_nanos: frame.sent_at.as_nanos(),
        main_loop_age_ms: millis(frame.main_loop_age),
        stall_ms: millis(frame.stall),
    }
}

/// The frame of an answer.
///
/// # Errors
/// Its incarnation is none.
pub fn from_wire(frame: &v1::LivenessFrame) -> Result<LivenessFrame<Incarnation>, ConvertError> {
    Ok(LivenessFrame {
        incarnation: Incarnation::from_wire(&frame.incarnation, "liveness.incarnation")?,
        sequence: frame.sequence,
        sent_at: Tick::from_nanos(frame.sent_at_nanos),
        main_loop_age: Duration::from_millis(frame.main_loop_age_ms),
        stall: Duration::from_millis(frame.stall_ms),
        echo: None,
    })
}

/// What became of a heartbeat call, and what its answer said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeatEnd {
    /// The outcome, how long it took, and why it failed.
    pub end: CallEnd,
    /// How the peer is; absent where it does not say.
    pub liveness: Option<LivenessFrame<Incarnation>>,
}

impl BeatEnd {
    /// Awaits a heartbeat call for `deadline` at most. Only a refusal counts against the peer, a slow answer does not.
    pub async fn of<C: Clock + ?Sized>(
        clock: &C,
        deadline: Duration,
        call: impl Future<Output = Result<v1::Ack, RpcError>>,
    ) -> Self {
        let begun = clock.now();
        let failed = |outcome, error: &dyn std::fmt::Display| Self {
            end: CallEnd::failed(outcome, error),
            liveness: None,
        };
        match tokio::time::timeout(deadline, call).await {
            Ok(Ok(ack)) => Self {
                end: CallEnd::delivered(clock.now().since(begun)),
                // A frame that makes no sense is as good as none; the call was delivered all the same.
                liveness: ack.liveness.as_ref().and_then(|frame| from_wire(frame).ok()),
            },
            Ok(Err(error)) => failed(outcome_of(error.kind), &error),
            Err(_) => failed(RpcOutcome::Other, &format_args!("no answer within {deadline:?}")),
        }
    }

    /// What became of the call.
    #[must_use]
    pub const fn outcome(&self) -> RpcOutcome {
        self.end.outcome
    }

    /// Whether another life answered than the one that was called: that one is gone.
    #[must_use]
    pub fn is_of_another_life(&self, called: Incarnation) -> bool {
        self.liveness.is_some_and(|frame| frame.incarnation != called)
    }
}

/// What a failed call says about the peer.
#[must_use]
pub const fn outcome_of(kind: RpcErrorKind) -> RpcOutcome {
    match kind {
        RpcErrorKind::Unreachable | RpcErrorKind::UnknownTarget => RpcOutcome::Unreachable,
        _ => RpcOutcome::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::EpochMillis;
    use runtime_core::time::TokioClock;
    use tokio::sync::oneshot;

    fn source() -> (Arc<LivenessSource<Incarnation>>, TokioClock) {
        (Arc::new(LivenessSource::new(Incarnation::from_u128(7))), TokioClock::start_at(EpochMillis(0)))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_the_loop_that_comes_soon_is_the_answer() {
        let (source, clock) = source();
        let handled = async { Ok(v1::Ack { epoch: 3, liveness: None }) };
        let ack = beside_the_loop(&source, &clock, handled).await.unwrap();
        assert_eq!((ack.epoch, ack.liveness.map(|frame| frame.main_loop_age_ms)), (3, Some(0)));
        let refused = async { Err(RpcError::unknown_target("nothing of the job is here")) };
        let error = beside_the_loop(&source, &clock, refused).await.unwrap_err();
        assert_eq!(error.kind, RpcErrorKind::UnknownTarget);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_loop_is_not_waited_for_and_its_age_grows() {
        let (source, clock) = source();
        let (reply, answer) = oneshot::channel();
        let handled = async move { answer.await.unwrap_or_else(|_| Err(RpcError::not_started("gone"))) };
        let age = |ack: v1::Ack| ack.liveness.unwrap().main_loop_age_ms;
        assert_eq!(age(beside_the_loop(&source, &clock, handled).await.unwrap()), 50);
        tokio::time::advance(Duration::from_secs(10)).await;
        let ack = beside_the_loop(&source, &clock, std::future::pending()).await.unwrap();
        assert_eq!(age(ack), 10_100);
        reply.send(Ok(v1::Ack::default())).unwrap();
        tokio::task::yield_now().await;
        source.turned(clock.now());
        let handled = async { Ok(v1::Ack::default()) };
        assert_eq!(age(beside_the_loop(&source, &clock, handled).await.unwrap()), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_too_long_counts_for_nothing_and_says_why() {
        let (_, clock) = source();
        let end = BeatEnd::of(&clock, Duration::from_secs(1), std::future::pending()).await;
        assert_eq!(
            (end.outcome(), end.end.error.as_deref()),
            (RpcOutcome::Other, Some("no answer within 1s"))
        );
        let refused = async { Err(RpcError { kind: RpcErrorKind::Unreachable, message: "refused".into() }) };
        let end = BeatEnd::of(&clock, Duration::from_secs(1), refused).await;
        assert_eq!(end.outcome(), RpcOutcome::Unreachable);
    }

    #[test]
    fn another_life_that_answers_is_noticed() {
        let frame = LivenessSource::new(Incarnation::from_u128(7)).frame(Tick::ZERO, None);
        let end = BeatEnd {
            end: RpcOutcome::Delivered.into(),
            liveness: Some(from_wire(&to_wire(&frame)).unwrap()),
        };
        assert!(!end.is_of_another_life(Incarnation::from_u128(7)));
        assert!(end.is_of_another_life(Incarnation::from_u128(8)));
    }
}
