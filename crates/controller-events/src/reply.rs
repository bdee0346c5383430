//! One answer to one question, which always arrives.
//!
//! An event that somebody waits for carries a [`Reply`]. However the event ends, the receiver hears: the value that
//! was sent, or [`Abandoned`] when the reply was dropped unused.

use crate::signal::Signal;
use crate::sync::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

/// The reply was dropped without an answer: its event was not run, or its handler forgot it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the event that was to answer ended without an answer")]
pub struct Abandoned;

const ANSWERED: u8 = 1;

struct Slot<T> {
    value: Mutex<Option<T>>,
    answered: Signal,
}

/// The answering end. Dropped unused, it answers [`Abandoned`].
pub struct Reply<T>(Arc<Slot<T>>);

/// The asking end: a future of the answer, of no runtime in particular. It may also be waited for by a thread.
pub struct ReplyReceiver<T>(Arc<Slot<T>>);

impl<T> Reply<T> {
    /// A reply and where it arrives.
    ///
    /// ```
    /// use controller_events::{Abandoned, Reply};
    /// let (reply, receiver) = Reply::pair();
    /// reply.send(7);
    /// assert_eq!(receiver.wait(), Ok(7));
    /// let (reply, receiver) = Reply::<u32>::pair();
    /// drop(reply);
    /// assert_eq!(receiver.wait(), Err(Abandoned));
    /// ```
    #[must_use]
    pub fn pair() -> (Self, ReplyReceiver<T>) {
        let slot = Arc::new(Slot { value: Mutex::new(None), answered: Signal::default() });
        (Self(Arc::clone(&slot)), ReplyReceiver(slot))
    }

    /// Answers. If nobody listens any more, the value is dropped.
    pub fn send(self, value: T) {
        *lock(&self.0.value) = Some(value);
    }

    /// Whether the receiver is gone, so that an answer would be for nobody.
    #[must_use]
    pub fn is_unwanted(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.0.answered.raise(ANSWERED);
    }
}

impl<T> ReplyReceiver<T> {
    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// [`Abandoned`] if there will be none.
    pub fn wait(self) -> Result<T, Abandoned> {
        self.0.answered.wait(ANSWERED);
        self.take()
    }

    /// Blocks until the answer is there, but no longer than `limit` of real time.
    ///
    /// # Errors
    /// The receiver itself, if there is no answer yet.
    pub fn wait_timeout(self, limit: Duration) -> Result<Result<T, Abandoned>, Self> {
        match self.0.answered.wait_timeout(ANSWERED, limit) {
            Some(_) => Ok(self.take()),
            None => Err(self),
        }
    }

    fn take(&self) -> Result<T, Abandoned> {
        lock(&self.0.value).take().ok_or(Abandoned)
    }
}

impl<T> Future for ReplyReceiver<T> {
    type Output = Result<T, Abandoned>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.answered.poll(ANSWERED, cx).map(|_| self.take())
    }
}

impl<T> std::fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("is_unwanted", &self.is_unwanted()).finish()
    }
}

impl<T> std::fmt::Debug for ReplyReceiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyReceiver").field("answered", &(self.0.answered.level() == ANSWERED)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_without_an_answer_gets_itself_back() {
        let (reply, receiver) = Reply::pair();
        let receiver = receiver.wait_timeout(Duration::ZERO).expect_err("nothing was sent");
        reply.send("late");
        assert_eq!(receiver.wait(), Ok("late"));
    }

    #[test]
    fn a_reply_knows_that_nobody_listens() {
        let (reply, receiver) = Reply::<u8>::pair();
        assert!(!reply.is_unwanted());
        drop(receiver);
        assert!(reply.is_unwanted());
    }

    #[tokio::test]
    async fn a_task_hears_the_answer_and_the_lack_of_one() {
        let (reply, receiver) = Reply::pair();
        let waiting = tokio::spawn(receiver);
        tokio::task::yield_now().await;
        reply.send(1);
        assert_eq!(waiting.await.unwrap(), Ok(1));
        let (reply, receiver) = Reply::<u8>::pair();
        drop(reply);
        assert_eq!(receiver.await, Err(Abandoned));
    }
}
