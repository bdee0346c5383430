//! Failures to and from tonic's `Status`.
//!
//! A failure that a role answers carries its kind in a header, so it arrives as it was meant. Everything else is made
//! on this side of the connection and is judged by its cause, not by its code: a killed peer is `Unknown` or
//! `Unavailable` depending on the moment, a peer's time-out is `Cancelled`.

use super::version;
use crate::error::{RpcError, RpcErrorKind};
use std::error::Error;
use std::fmt::Write as _;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The header with the kind of a failure that a role has answered.
const KIND: &str = "tidegate-error";

/// Longer texts are cut: they travel in a header, whose size peers limit.
const MAX_MESSAGE: usize = 2_000;

/// What gRPC clients wait for before they try an overloaded server again (gRPC: "A6, client retries").
const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// A queue of ten thousand events is worked off in less.
const RETRY_AFTER_MILLIS: &str = "200";

/// The failure as a status that the other side reads back.
pub(crate) fn to_status(error: &RpcError, protocol: u32) -> Status {
    let message: String = error.message.chars().take(MAX_MESSAGE).collect();
    let mut status = Status::new(code(error.kind), message);
    status.metadata_mut().insert(KIND, MetadataValue::from_static(error.kind.name()));
    if error.kind == RpcErrorKind::Overloaded {
        status.metadata_mut().insert(RETRY_PUSHBACK, MetadataValue::from_static(RETRY_AFTER_MILLIS));
    }
    version::mark(status.metadata_mut(), protocol);
    status
}

/// The nearest code: only for other gRPC tools, we read the kind.
const fn code(kind: RpcErrorKind) -> Code {
    match kind {
        RpcErrorKind::Unreachable | RpcErrorKind::NotStarted => Code::Unavailable,
        RpcErrorKind::Deadline => Code::DeadlineExceeded,
        RpcErrorKind::Fencing | RpcErrorKind::Version => Code::FailedPrecondition,
        RpcErrorKind::UnknownTarget => Code::NotFound,
        RpcErrorKind::TooLarge => Code::OutOfRange,
        RpcErrorKind::Overloaded => Code::ResourceExhausted,
        RpcErrorKind::Application => Code::Internal,
    }
}

/// What a status means.
pub(crate) fn from_status(status: &Status, protocol: u32) -> RpcError {
    let answered = status.metadata().get(KIND).and_then(|kind| kind.to_str().ok());
    if let Some(kind) = answered.and_then(RpcErrorKind::of_name) {
        return RpcError { kind, message: status.message().to_owned() };
    }
    if version::is_marked(status.metadata())
        && let Err(other) = version::check(status.metadata(), protocol)
    {
        return other;
    }
    let kind = match status.source() {
        Some(cause) => judge(cause),
        None => match status.code() {
            Code::Unimplemented => RpcErrorKind::UnknownTarget,
            Code::OutOfRange => RpcErrorKind::TooLarge,
            Code::ResourceExhausted => RpcErrorKind::Overloaded,
            _ => RpcErrorKind::Application,
        },
    };
    RpcError { kind, message: describe(status) }
}

/// A status with a cause was made on this side: something is wrong with the connection, unless the cause says that
/// only the one call was broken off.
fn judge(cause: &(dyn Error + 'static)) -> RpcErrorKind {
    let mut next = Some(cause);
    while let Some(error) = next {
        if error.is::<tonic::TimeoutExpired>() {
            return RpcErrorKind::Deadline;
        }
        // Keep-alive: the peer, or the way to it, is silent. Only the time that heartbeats allow makes that a verdict.
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout) {
            return RpcErrorKind::Deadline;
        }
        // A connection that nobody accepts and nobody refuses: packets are lost on the way, or the host is gone.
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::TimedOut) {
            return RpcErrorKind::Deadline;
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>()
            && h2.is_reset()
            && h2.is_remote()
        {
            return match h2.reason() {
                Some(h2::Reason::REFUSED_STREAM | h2::Reason::ENHANCE_YOUR_CALM) => RpcErrorKind::Overloaded,
                _ => RpcErrorKind::Application,
            };
        }
        next = error.source();
    }
    RpcErrorKind::Unreachable
}

/// The status' text with its causes, each once.
fn describe(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut next = status.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            let separator = if text.is_empty() { "" } else { ": " };
            // Writing into a String cannot fail.
            let _ = write!(text, "{separator}{cause}");
        }
        next = error.source();
    }
    if text.is_empty() { format!("gRPC status {:?}", status.code()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_kind_arrives_as_it_was_meant() {
        for kind in RpcErrorKind::ALL {
            let error = RpcError { kind, message: "because ä".to_owned() };
            assert_eq!(from_status(&to_status(&error, 1), 1), error);
        }
    }

    #[test]
    fn an_overloaded_server_says_when_to_try_again() {
        let status = to_status(&RpcError::overloaded("10000 events wait"), 1);
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "200");
        let other = to_status(&RpcError::not_started("starting"), 1);
        assert!(other.metadata().get("grpc-retry-pushback-ms").is_none());
    }

    #[test]
    fn a_failure_with_a_local_cause_is_unreachable_whatever_its_code() {
        for code in [Code::Unknown, Code::Unavailable, Code::Cancelled, Code::Internal] {
            let mut status = Status::new(code, "transport error");
            let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            status.set_source(Arc::new(reset));
            let error = from_status(&status, 1);
            assert_eq!(error.kind, RpcErrorKind::Unreachable, "{code:?}");
            assert!(error.message.contains("connection reset"), "{error}");
        }
    }

    #[test]
    fn a_connect_that_times_out_is_silence_and_no_refusal() {
        let mut status = Status::new(Code::Unavailable, "tcp connect error");
        status.set_source(Arc::new(std::io::Error::from(std::io::ErrorKind::TimedOut)));
        assert_eq!(from_status(&status, 1).kind, RpcErrorKind::Deadline);
    }

    #[test]
    fn a_strangers_status_is_judged_by_its_code() {
        for (code, kind) in [
            (Code::Unimplemented, RpcErrorKind::UnknownTarget),
            (Code::OutOfRange, RpcErrorKind::TooLarge),
            (Code::Unavailable, RpcErrorKind::Application),
            (Code::DeadlineExceeded, RpcErrorKind::Application),
        ] {
            assert_eq!(from_status(&Status::new(code, "x"), 1).kind, kind, "{code:?}");
        }
    }

    #[test]
    fn a_long_message_is_cut_before_it_bursts_the_header() {
        let error = RpcError::application("x".repeat(100_000));
        assert_eq!(from_status(&to_status(&error, 1), 1).message.len(), MAX_MESSAGE);
    }
}
