//! The batch that a channel is being filled with.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::Tick;

use super::channel::{SendError, Sender};
use super::element::{Batch, ChannelId, Element};
use super::remote::{Pump, PumpState};
use super::{BATCH_BYTES, BATCH_ELEMENTS};

/// How long an element waits for its batch to fill while its task is busy. An idle task sends at once.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_millis(5);

/// Where a writer's batches go.
pub(crate) enum Outlet {
    /// To a consumer on the same task executor.
    Local(Sender),
    /// To the pump of a stream.
    Remote(Sender, Arc<Pump>),
}

/// How the consumer's side of a channel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    Open,
    /// It has the end of input.
    Delivered,
    Gone(ChannelId),
    Broken(String),
}

/// Gathers elements to batches and sends them as there is room.
pub(crate) struct ChannelWriter {
    outlet: Outlet,
    batch: Batch,
    bytes: usize,
    since: Tick,
    ended: bool,
    /// The end has left.
    sent: bool,
}

impl ChannelWriter {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self { outlet, batch: Batch::new(), bytes: 0, since: Tick::ZERO, ended: false, sent: false }
    }

    /// Puts an element behind the others. A full writer takes it too: control elements do not wait for room.
    pub(crate) fn push(&mut self, element: Element, now: Tick) {
        if self.batch.is_empty() {
            self.since = now;
            self.batch.reserve(BATCH_ELEMENTS);
        }
        self.bytes += element.weight();
        self.ended |= matches!(element, Element::End);
        self.batch.push(element);
        if self.is_full() {
            self.flush();
        }
    }

    /// Whether the batch has reached its size and could not be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_ELEMENTS
    }

    /// Whether the consumer wants nothing but barriers and ends.
    pub(crate) fn is_paused(&self) -> bool {
        match &self.outlet {
            Outlet::Local(sender) => sender.is_paused(),
            Outlet::Remote(_, pump) => pump.is_paused(),
        }
    }

    /// Sends what is there, if there is room for it.
    pub(crate) fn flush(&mut self) {
        let (Outlet::Local(sender) | Outlet::Remote(sender, _)) = &mut self.outlet;
        if self.batch.is_empty() {
            return;
        }
        match sender.try_send(std::mem::take(&mut self.batch)) {
            Ok(()) => {
                self.bytes = 0;
                if self.ended {
                    self.sent = true;
                    sender.finish();
                }
            }
            Err(SendError::Full(batch)) => self.batch = batch,
            // Nobody reads on. The writer stays as it is, so that its task does not run on for nothing.
            Err(SendError::Gone) => self.bytes = BATCH_BYTES,
        }
    }

    /// Sends what has waited long enough.
    pub(crate) fn flush_due(&mut self, now: Tick) {
        if !self.batch.is_empty() && now.since(self.since) >= FLUSH_AFTER {
            self.flush();
        }
    }

    /// Puts the end behind everything and sends it. Calling it again sends what is left.
    pub(crate) fn end(&mut self, now: Tick) {
        if !self.ended {
            self.push(Element::End, now);
        }
        self.flush();
    }

    /// How the consumer's side stands.
    pub(crate) fn peer(&self) -> Peer {
        match &self.outlet {
            Outlet::Local(_) if self.sent => Peer::Delivered,
            Outlet::Local(sender) if sender.receiver_gone() => Peer::Gone(sender.id()),
            Outlet::Local(_) => Peer::Open,
            Outlet::Remote(sender, pump) => match pump.state() {
                PumpState::Open => Peer::Open,
                PumpState::Delivered => Peer::Delivered,
                PumpState::Gone => Peer::Gone(sender.id()),
                PumpState::Broken(cause) => Peer::Broken(cause),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use runtime_core::{Epoch, JobId, VertexId};
    use tokio::sync::Notify;

    use super::*;
    use crate::exchange::channel::{Channel, ReadyList, Received, Receiver};

    fn channel(capacity: usize) -> (ChannelWriter, Receiver) {
        let job = JobId::from_u128(1);
        let attempt = |vertex| runtime_core::AttemptId {
            job,
            term: Epoch(1),
            vertex: VertexId(vertex),
            subtask: 0,
            attempt: 0,
        };
        let id = ChannelId { edge: 0, producer: attempt(0), consumer: attempt(1) };
        let channel = Channel::new(id, capacity, 0, ReadyList::new(Arc::new(Notify::new())));
        (ChannelWriter::new(Outlet::Local(channel.sender(None))), Receiver::new(channel))
    }

    fn letter(length: usize) -> Element {
        Element::DeadLetter(Bytes::from(vec![b'x'; length]))
    }

    fn received(receiver: &Receiver) -> Option<usize> {
        match receiver.take() {
            Received::Batch(batch) => Some(batch.len()),
            Received::Nothing | Received::Closed(_) => None,
        }
    }

    #[test]
    fn a_batch_leaves_when_it_has_its_number_or_its_bytes() {
        let (mut writer, receiver) = channel(4);
        (1..BATCH_ELEMENTS).for_each(|_| writer.push(letter(1), Tick::ZERO));
        assert_eq!(received(&receiver), None);
        writer.push(letter(1), Tick::ZERO);
        assert_eq!(received(&receiver), Some(BATCH_ELEMENTS));
        writer.push(letter(BATCH_BYTES / 2), Tick::ZERO);
        assert_eq!(received(&receiver), None);
        writer.push(letter(BATCH_BYTES / 2), Tick::ZERO);
        assert_eq!(received(&receiver), Some(2));
    }

    #[test]
    fn a_started_batch_leaves_after_five_milliseconds() {
        let (mut writer, receiver) = channel(4);
        writer.push(letter(1), Tick::from_millis(10));
        writer.flush_due(Tick::from_millis(14));
        assert_eq!(received(&receiver), None);
        writer.flush_due(Tick::from_millis(15));
        assert_eq!(received(&receiver), Some(1));
    }

    #[test]
    fn a_writer_without_room_is_full_until_there_is_some() {
        let (mut writer, receiver) = channel(1);
        (0..2 * BATCH_ELEMENTS).for_each(|_| writer.push(letter(1), Tick::ZERO));
        assert!(writer.is_full());
        assert_eq!(received(&receiver), Some(BATCH_ELEMENTS));
        writer.flush();
        assert!(!writer.is_full());
        assert_eq!(received(&receiver), Some(BATCH_ELEMENTS));
    }

    #[test]
    fn the_end_counts_as_delivered_once_it_has_left() {
        let (mut writer, receiver) = channel(1);
        writer.push(letter(1), Tick::ZERO);
        writer.flush();
        writer.end(Tick::ZERO);
        assert_eq!(writer.peer(), Peer::Open);
        assert_eq!(received(&receiver), Some(1));
        writer.end(Tick::ZERO);
        assert_eq!((received(&receiver), writer.peer()), (Some(1), Peer::Delivered));
    }

    #[test]
    fn a_writer_whose_receiver_is_gone_takes_nothing_more() {
        let (mut writer, receiver) = channel(1);
        drop(receiver);
        writer.push(letter(1), Tick::ZERO);
        writer.flush();
        assert!(writer.is_full());
        assert!(matches!(writer.peer(), Peer::Gone(_)));
    }
}
