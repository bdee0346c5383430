//! The sender's side of a numbered stream.

use super::envelope::Envelope;
use runtime_core::Tick;
use std::collections::VecDeque;

/// Messages that were sent and are kept until they are acknowledged, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct Outbox<T> {
    last: u64,
    kept: VecDeque<T>,
}

impl<T: Envelope> Outbox<T> {
    /// Of a conversation that begins now. Its numbers are above all of those before: a broken connection may yet deliver
    /// what was said on it, to a peer that hears this conversation, and must not make it deaf to lower numbers.
    #[must_use]
    pub const fn starting(now: Tick) -> Self {
        Self { last: now.as_nanos(), kept: VecDeque::new() }
    }

    /// Numbers a message, keeps it, and gives it back to be sent.
    pub fn push(&mut self, mut message: T) -> T {
        self.last += 1;
        message.set_number(self.last);
        self.kept.push_back(message.clone());
        message
    }

    /// Forgets what is acknowledged: everything up to `number`.
    pub fn acknowledge(&mut self, number: u64) {
        while self.kept.front().is_some_and(|message| message.number() <= number) {
            self.kept.pop_front();
        }
    }

    /// What a new stream begins with: all that is not acknowledged, in order.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &T> {
        self.kept.iter()
    }

    /// How many messages are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether everything was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
