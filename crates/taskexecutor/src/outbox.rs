//! What is said to one job master, by number.
//!
//! Every message has a number, for the receiver drops what is not newer than the last. Only what must not be lost is
//! kept until it is acknowledged and said again on a new stream: a state once lost is lost for good, and so is the answer to
//! a checkpoint, while figures come again in a second. `wire::stream::Outbox` keeps everything, and the acknowledgements of
//! a job master cover only what is kept here.

use std::collections::VecDeque;

use runtime_core::Tick;
use wire::stream::Envelope;
use wire::v1;
use wire::v1::task_executor_to_job_master::Message;

/// The messages of one conversation, from registration to the end of either's life.
#[derive(Debug)]
pub(crate) struct Outbox {
    last: u64,
    kept: VecDeque<v1::TaskExecutorToJobMaster>,
}

impl Outbox {
    /// Of a conversation that begins now. Its numbers are above all of those before: a broken connection may yet deliver
    /// what was said on it, to a job master that hears this conversation, and must not make it deaf to lower numbers.
    pub(crate) const fn starting(now: Tick) -> Self {
        Self { last: now.as_nanos(), kept: VecDeque::new() }
    }

    /// Numbers a message; a state is kept, and so is an answer to a checkpoint.
    pub(crate) fn number(&mut self, message: Message) -> v1::TaskExecutorToJobMaster {
        self.last += 1;
        let numbered = v1::TaskExecutorToJobMaster { number: self.last, message: Some(message) };
        if matches!(
            numbered.message,
            Some(Message::TaskState(_) | Message::CheckpointAcknowledged(_) | Message::CheckpointDeclined(_))
        ) {
            self.kept.push_back(numbered.clone());
        }
        numbered
    }

    /// Forgets what has arrived: everything up to `number`.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        while self.kept.front().is_some_and(|message| message.number() <= number) {
            self.kept.pop_front();
        }
    }

    /// What a new stream begins with, in order.
    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = &v1::TaskExecutorToJobMaster> {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_answers_are_kept_until_acknowledged_and_figures_only_counted() {
        let mut outbox = Outbox::starting(Tick::ZERO);
        let state = || Message::TaskState(v1::TaskStateUpdate::default());
        let figures = || Message::Figures(v1::TaskFigures::default());
        let acknowledged = Message::CheckpointAcknowledged(v1::CheckpointAcknowledged::default());
        let declined = Message::CheckpointDeclined(v1::CheckpointDeclined::default());
        let numbers: Vec<u64> = [state(), figures(), state(), figures(), acknowledged, declined]
            .into_iter()
            .map(|m| outbox.number(m).number)
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(outbox.unacknowledged().map(|m| m.number).collect::<Vec<_>>(), [1, 3, 5, 6]);
        outbox.acknowledge(2);
        assert_eq!(outbox.unacknowledged().map(|m| m.number).collect::<Vec<_>>(), [3, 5, 6]);
        outbox.acknowledge(6);
        assert_eq!(outbox.unacknowledged().count(), 0);
    }

    #[test]
    fn what_an_earlier_conversation_said_comes_late_and_hides_nothing() {
        let say = |outbox: &mut Outbox| outbox.number(Message::Figures(v1::TaskFigures::default())).number;
        let mut before = Outbox::starting(Tick::from_millis(1_000));
        let late = (0..10_000).map(|_| say(&mut before)).last().unwrap();
        let mut inbox = wire::stream::Inbox::default();
        assert!(inbox.take(late), "the connection has broken, and this was on its way");
        let mut now = Outbox::starting(Tick::from_millis(2_000));
        assert!(inbox.take(say(&mut now)));
        assert!(!inbox.take(late + 1));
    }
}
