//! What became of one heartbeat call.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What became of one heartbeat call, as far as it tells about the peer. The caller judges by the cause, not by a status
/// code: "this call was refused" says something about the peer, "this call took too long" does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RpcOutcome {
    /// The call arrived: the count of failures starts anew.
    Delivered,
    /// There is nobody to take it: connection refused or reset, or a process without that endpoint. Counts.
    Unreachable,
    /// Anything else: deadline exceeded, fenced, not started yet, handler failed, too large. Neither counts nor resets.
    Other,
}

impl RpcOutcome {
    /// The outcome of a call that failed: unreachable if the error, or any that it wraps, is so. An error is often wrapped on its
    /// way, and to look only at the outermost switches detection off without a sign (Flink: FLINK-24706).
    ///
    /// ```
    /// # use heartbeat::RpcOutcome;
    /// use std::io::{Error, ErrorKind};
    /// let refused = |error: &(dyn std::error::Error + 'static)| {
    ///     error.downcast_ref::<Error>().is_some_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    /// };
    /// assert_eq!(RpcOutcome::of_error(&Error::from(ErrorKind::ConnectionRefused), refused), RpcOutcome::Unreachable);
    /// assert_eq!(RpcOutcome::of_error(&Error::from(ErrorKind::TimedOut), refused), RpcOutcome::Other);
    /// ```
    pub fn of_error(
        error: &(dyn Error + 'static),
        is_unreachable: impl Fn(&(dyn Error + 'static)) -> bool,
    ) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if is_unreachable(error) {
                return Self::Unreachable;
            }
            next = error.source();
        }
        Self::Other
    }
}

/// The end of a call: its outcome, and what else is known of it. An [`RpcOutcome`] is one of which nothing else is.
///
/// ```
/// use heartbeat::{CallEnd, RpcOutcome};
/// use std::time::Duration;
/// let end = CallEnd::failed(RpcOutcome::Unreachable, "connection refused");
/// assert_eq!(end.error.as_deref(), Some("connection refused"));
/// assert_eq!(CallEnd::delivered(Duration::from_micros(90)).outcome, RpcOutcome::Delivered);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// What became of it.
    pub outcome: RpcOutcome,
    /// How long it took.
    pub took: Option<Duration>,
    /// Why it failed: what a verdict is explained with.
    pub error: Option<Box<str>>,
}

impl CallEnd {
    /// It arrived, and took this long.
    #[must_use]
    pub const fn delivered(took: Duration) -> Self {
        Self { outcome: RpcOutcome::Delivered, took: Some(took), error: None }
    }

    /// It failed like this.
    #[must_use]
    pub fn failed(outcome: RpcOutcome, error: impl fmt::Display) -> Self {
        Self { outcome, took: None, error: Some(error.to_string().into()) }
    }
}

impl From<RpcOutcome> for CallEnd {
    fn from(outcome: RpcOutcome) -> Self {
        Self { outcome, took: None, error: None }
    }
}
