//! What a stream gives for an input.

use std::fmt;

use crate::options::FailurePolicy;
use crate::output::{Attempts, FailureReason};

/// What the stream gives for each input. Failures are boxed: they are rare and large, and every answer would have to be
/// moved about in their size.
pub type AsyncWaitResult<I, R, E> = Result<R, Box<Failed<I, E>>>;

/// An input whose calls have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed<I, E> {
    /// What came from the source.
    pub input: I,
    /// Why it has failed.
    pub reason: FailureReason<E>,
    /// What is to become of it: [`Fail`](FailurePolicy::Fail), and this is the stream's last item,
    /// [`Keep`](FailurePolicy::Keep) or [`DeadLetter`](FailurePolicy::DeadLetter).
    pub policy: FailurePolicy,
    /// The calls that were made for it.
    pub attempts: Attempts,
}

impl<I: fmt::Debug, E: fmt::Display> fmt::Display for Failed<I, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer for {:?} after {} attempt(s): {}", self.input, self.attempts.count, self.reason)
    }
}

impl<I: fmt::Debug, E: fmt::Debug + fmt::Display> std::error::Error for Failed<I, E> {}
