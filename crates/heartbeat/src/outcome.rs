//! What became of one heartbeat call.

use std::error::Error;

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
