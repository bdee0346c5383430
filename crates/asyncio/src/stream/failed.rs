//! What a stream gives for an input.

use std::fmt;

use crate::options::FailurePolicy;
use crate::output::{Attempts, FailureReason};

/// What the stream gives for each input: an answer, or an input that has [`Failed`]. One that is left out by
/// [`FailurePolicy::Drop`] gives nothing.
///
/// Failures are boxed: they are rare and large, and every answer would have to be moved about in their size.
pub type AsyncWaitResult<I, R, E> = Result<R, Box<Failed<I, E>>>;

/// An input whose calls have failed.
///
/// ```
/// use asyncio::{AsyncWaitExt, FailurePolicy, FailureReason, Options};
/// use futures::{StreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// let options = Options::ordered().on_failure(FailurePolicy::DeadLetter).build()?;
/// let mut answers = stream::iter([1_u32, 0]).async_wait(options, |n: &u32| {
///     let answer = 10_u32.checked_div(*n).ok_or("division by zero");
///     async move { answer }
/// });
/// assert_eq!(answers.next().await.unwrap().unwrap(), 10);
/// let failed = answers.next().await.unwrap().unwrap_err();
/// assert_eq!((failed.input, &failed.reason), (0, &FailureReason::Error("division by zero")));
/// assert_eq!(failed.to_string(), "no answer for 0 after 1 attempt(s): division by zero");
/// assert!(answers.next().await.is_none());
/// # Ok(())
/// # }
/// ```
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
