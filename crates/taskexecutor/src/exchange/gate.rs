//! All inputs of one task: channels of all its edges, read in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use runtime_core::{AttemptId, StreamElement, WatermarkStatus};

use super::channel::{Closed, ReadyList, Received, Receiver};
use super::channels::Channels;
use super::element::{Batch, ChannelId, Element};
use super::valve::{Valve, ValveOutput};

/// An input cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The connection to the producer broke.
    #[error("the channel {channel} broke: {cause}")]
    Broken {
        /// Which channel.
        channel: Box<ChannelId>,
        /// What was seen of it.
        cause: String,
    },
    /// The producer has sent what this task executor does not know how to deal with.
    #[error("the channel {channel} brought {what}")]
    Unexpected {
        /// Which channel.
        channel: Box<ChannelId>,
        /// What came.
        what: &'static str,
    },
}

/// The receiving ends of a task's channels.
///
/// Batches are taken in turn from the channels that have one, the elements of a channel in their order. Watermarks and
/// statuses are merged over all channels; ends of channels are counted.
pub struct InputGates {
    receivers: Vec<Option<Receiver>>,
    ready: Arc<ReadyList>,
    valve: Valve,
    current: (usize, <Batch as IntoIterator>::IntoIter),
    merged: VecDeque<Element>,
    open: usize,
    gone: Option<ChannelId>,
    registry: Arc<Channels>,
    consumer: AttemptId,
}

impl InputGates {
    pub(crate) fn new(
        receivers: Vec<Receiver>,
        ready: Arc<ReadyList>,
        registry: Arc<Channels>,
        consumer: AttemptId,
    ) -> Self {
        Self {
            valve: Valve::new(receivers.len()),
            open: receivers.len(),
            receivers: receivers.into_iter().map(Some).collect(),
            ready,
            current: (0, Vec::new().into_iter()),
            merged: VecDeque::new(),
            gone: None,
            registry,
            consumer,
        }
    }

    /// Whether every channel has ended and all their elements were taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.open == 0 && self.merged.is_empty()
    }

    /// A channel whose producer is gone without having ended it. The producer's own task executor says why; this
    /// task is about to be cancelled.
    #[must_use]
    pub fn gone(&self) -> Option<ChannelId> {
        self.gone
    }

    /// The next element, if one is there; never [`Element::End`].
    ///
    /// # Errors
    ///
    /// A channel broke or brought something unexpected.
    pub fn next_element(&mut self) -> Result<Option<Element>, GateError> {
        loop {
            if let Some(element) = self.merged.pop_front() {
                return Ok(Some(element));
            }
            let (index, ref mut batch) = self.current;
            match batch.next() {
                Some(element @ (Element::DeadLetter(_) | Element::Stream(StreamElement::Record(_)))) => {
                    return Ok(Some(element));
                }
                Some(control) => self.control(index, control)?,
                None => match self.ready.take() {
                    Some(index) => self.take(index)?,
                    None => return Ok(None),
                },
            }
        }
    }

    fn take(&mut self, index: usize) -> Result<(), GateError> {
        let Some(Some(receiver)) = self.receivers.get(index) else { return Ok(()) };
        match receiver.take() {
            Received::Batch(batch) => self.current = (index, batch.into_iter()),
            Received::Nothing => {}
            Received::Closed(Closed::Gone) => self.gone = Some(receiver.id()),
            Received::Closed(Closed::Broken(cause)) => {
                return Err(GateError::Broken { channel: Box::new(receiver.id()), cause });
            }
        }
        Ok(())
    }

    fn control(&mut self, index: usize, element: Element) -> Result<(), GateError> {
        let merged = match element {
            Element::Stream(StreamElement::Watermark(watermark)) => self.valve.watermark(index, watermark),
            Element::Stream(StreamElement::Status(status)) => self.valve.status(index, status),
            Element::Stream(StreamElement::Barrier(_)) => {
                let id = self
                    .receivers
                    .get(index)
                    .and_then(Option::as_ref)
                    .map(|receiver| Box::new(receiver.id()));
                return id.map_or(Ok(()), |channel| {
                    Err(GateError::Unexpected {
                        channel,
                        what: "a barrier, but this job takes no checkpoints",
                    })
                });
            }
            Element::End => {
                // What would follow an end is not of this stream.
                self.current = (index, Vec::new().into_iter());
                if self.receivers.get_mut(index).and_then(Option::take).is_none() {
                    return Ok(());
                }
                self.open -= 1;
                self.valve.end(index)
            }
            other => {
                self.merged.push_back(other);
                return Ok(());
            }
        };
        self.say(merged);
        Ok(())
    }

    fn say(&mut self, ValveOutput { watermark, status }: ValveOutput) {
        let status = |wanted| status.filter(|&s| s == wanted).map(StreamElement::Status);
        let watermark = watermark.map(StreamElement::Watermark);
        let said = [status(WatermarkStatus::Active), watermark, status(WatermarkStatus::Idle)];
        self.merged.extend(said.into_iter().flatten().map(Element::Stream));
    }
}

impl Drop for InputGates {
    fn drop(&mut self) {
        self.registry.unregister(self.consumer);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use runtime_core::{Barrier, Epoch, EpochMillis, JobId, VertexId, Watermark};

    use super::*;
    use crate::exchange::channel::Sender;
    use crate::task::InputGate;

    fn attempt(vertex: u32, subtask: u32) -> AttemptId {
        AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(vertex), subtask, attempt: 0 }
    }

    /// A consumer with two producers.
    async fn gates() -> (InputGates, [Sender; 2]) {
        let channels = Channels::new();
        let gate = InputGate { edge: 0, producers: vec![attempt(0, 0), attempt(0, 1)] };
        let gates = channels.register(attempt(1, 0), &[gate], Arc::default());
        let id = |subtask| ChannelId { edge: 0, producer: attempt(0, subtask), consumer: attempt(1, 0) };
        let first = channels.connect(id(0), None).await.unwrap();
        let second = channels.connect(id(1), None).await.unwrap();
        (gates, [first, second])
    }

    fn letters(text: &str) -> Batch {
        text.chars().map(|c| Element::DeadLetter(Bytes::from(c.to_string()))).collect()
    }

    fn watermark(at: i64) -> Element {
        Element::Stream(StreamElement::Watermark(Watermark(EpochMillis(at))))
    }

    /// Dead letters as their text, watermarks as `<at>`.
    fn read(gates: &mut InputGates) -> String {
        let mut text = String::new();
        while let Some(element) = gates.next_element().unwrap() {
            match element {
                Element::DeadLetter(line) => text.push_str(std::str::from_utf8(&line).unwrap()),
                Element::Stream(StreamElement::Watermark(at)) => text.push_str(&format!("<{}>", at.0.0)),
                other => panic!("{other:?}"),
            }
        }
        text
    }

    #[tokio::test]
    async fn channels_are_read_in_turn_a_batch_at_a_time_each_in_its_order() {
        let (mut gates, [first, second]) = gates().await;
        for batch in ["ab", "cd", "ef"] {
            first.try_send(letters(batch)).unwrap();
        }
        second.try_send(letters("12")).unwrap();
        second.try_send(letters("34")).unwrap();
        assert_eq!(read(&mut gates), "ab12cd34ef");
    }

    #[tokio::test]
    async fn watermarks_are_merged_and_the_end_is_that_of_all_channels() {
        let (mut gates, [first, second]) = gates().await;
        first.try_send(vec![watermark(5), watermark(9), Element::End]).unwrap();
        assert_eq!(read(&mut gates), "");
        assert!(!gates.is_finished());
        second.try_send(vec![watermark(7)]).unwrap();
        assert_eq!(read(&mut gates), "<7>", "the ended channel holds nobody back");
        second.try_send(vec![watermark(i64::MAX), Element::End]).unwrap();
        assert_eq!(read(&mut gates), format!("<{}>", i64::MAX));
        assert!(gates.is_finished());
    }

    #[tokio::test]
    async fn what_was_sent_before_a_producer_went_is_still_read() {
        let (mut gates, [first, mut second]) = gates().await;
        first.try_send(letters("ab")).unwrap();
        drop(first);
        assert_eq!(read(&mut gates), "ab");
        assert_eq!(gates.gone().map(|id| id.producer), Some(attempt(0, 0)));
        second.try_send(letters("12")).unwrap();
        second.fail("reset".to_owned());
        assert!(matches!(gates.next_element(), Ok(Some(Element::DeadLetter(_)))));
        assert!(matches!(gates.next_element(), Ok(Some(Element::DeadLetter(_)))));
        assert!(matches!(gates.next_element(), Err(GateError::Broken { .. })));
    }

    #[tokio::test]
    async fn a_barrier_is_refused_while_there_are_no_checkpoints() {
        let (mut gates, [first, _second]) = gates().await;
        let barrier = Barrier { job: JobId::from_u128(1), checkpoint: 1, begun_at: EpochMillis(0) };
        first.try_send(vec![Element::Stream(StreamElement::Barrier(barrier))]).unwrap();
        assert!(matches!(gates.next_element(), Err(GateError::Unexpected { .. })));
    }
}
