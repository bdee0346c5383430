//! All inputs of one task: channels of all its edges, read in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use runtime_core::{AttemptId, Barrier, StreamElement, WatermarkStatus};

use super::alignment::Alignment;
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
}

/// The rest of a batch.
type Rest = <Batch as IntoIterator>::IntoIter;

/// The receiving ends of a task's channels.
///
/// Batches are taken in turn from the channels that have one, the elements of a channel in their order. Watermarks and
/// statuses are merged over all channels; ends of channels are counted. A barrier comes out once, when all channels have
/// brought it: until then those that have are not read on, and what they hold stays in their bounded buffers.
pub struct InputGates {
    receivers: Vec<Option<Receiver>>,
    ready: Arc<ReadyList>,
    valve: Valve,
    alignment: Alignment,
    current: (usize, Rest),
    /// Rests of batches behind the barriers of blocked channels, and those of channels that were.
    behind: VecDeque<(usize, Rest)>,
    /// Channels that had batches while they were blocked: the ready list names a channel once until it is taken from.
    passed_over: VecDeque<usize>,
    merged: VecDeque<Element>,
    /// How many batches were taken.
    batches: u64,
    paused: bool,
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
            alignment: Alignment::new(receivers.len()),
            open: receivers.len(),
            receivers: receivers.into_iter().map(Some).collect(),
            ready,
            current: (0, Vec::new().into_iter()),
            behind: VecDeque::new(),
            passed_over: VecDeque::new(),
            merged: VecDeque::new(),
            batches: 0,
            paused: false,
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

    /// How many channels there are, those that have ended included: what they brought may still be under way.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.receivers.len()
    }

    /// Whether what comes next takes no room: a barrier that has come from all channels, or the end of all of them.
    #[must_use]
    pub fn takes_no_room(&self) -> bool {
        self.is_finished() || matches!(self.merged.front(), Some(Element::Stream(StreamElement::Barrier(_))))
    }

    /// How many batches were taken so far.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Asks the producers to send nothing but barriers and ends, or to go on. What was taken in without room would otherwise
    /// grow with each checkpoint by what channels hold.
    pub fn pause(&mut self, paused: bool) {
        if std::mem::replace(&mut self.paused, paused) != paused {
            self.receivers.iter().flatten().for_each(|receiver| receiver.pause(paused));
        }
    }

    /// The barrier that has come from some channels and not from all.
    #[must_use]
    pub fn aligning(&self) -> Option<Barrier> {
        self.alignment.aligning()
    }

    /// A checkpoint is given up: channels that wait for its barrier are read on, and barriers of it that still come mean
    /// nothing.
    pub fn abort(&mut self, checkpoint: u64) {
        self.alignment.abort(checkpoint);
    }

    /// The next element, if one is there; never [`Element::End`].
    ///
    /// # Errors
    ///
    /// A channel broke.
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
                Some(control) => self.control(index, control),
                None => match self.next_channel() {
                    Some(Next::Behind(index, rest)) => self.current = (index, rest),
                    Some(Next::Ready(index)) => self.take(index)?,
                    None => return Ok(None),
                },
            }
        }
    }

    /// What was held back behind a barrier comes before what its channel has brought since.
    fn next_channel(&mut self) -> Option<Next> {
        let free = |alignment: &Alignment, index: &usize| !alignment.is_blocked(*index);
        if let Some(at) = self.behind.iter().position(|(index, _)| free(&self.alignment, index)) {
            return self.behind.remove(at).map(|(index, rest)| Next::Behind(index, rest));
        }
        if let Some(at) = self.passed_over.iter().position(|index| free(&self.alignment, index)) {
            return self.passed_over.remove(at).map(Next::Ready);
        }
        while let Some(index) = self.ready.take() {
            if free(&self.alignment, &index) {
                return Some(Next::Ready(index));
            }
            self.passed_over.push_back(index);
        }
        None
    }

    fn take(&mut self, index: usize) -> Result<(), GateError> {
        let Some(Some(receiver)) = self.receivers.get(index) else { return Ok(()) };
        match receiver.take() {
            Received::Batch(batch) => {
                self.batches += 1;
                self.current = (index, batch.into_iter());
            }
            Received::Nothing => {}
            Received::Closed(Closed::Gone) => self.gone = Some(receiver.id()),
            Received::Closed(Closed::Broken(cause)) => {
                return Err(GateError::Broken { channel: Box::new(receiver.id()), cause });
            }
        }
        Ok(())
    }

    fn control(&mut self, index: usize, element: Element) {
        let merged = match element {
            Element::Stream(StreamElement::Watermark(watermark)) => self.valve.watermark(index, watermark),
            Element::Stream(StreamElement::Status(status)) => self.valve.status(index, status),
            Element::Stream(StreamElement::Barrier(barrier)) => {
                let aligned = self.alignment.barrier(index, barrier);
                return self.aligned(aligned);
            }
            Element::End => {
                // What would follow an end is not of this stream.
                self.current = (index, Vec::new().into_iter());
                if self.receivers.get_mut(index).and_then(Option::take).is_none() {
                    return;
                }
                self.open -= 1;
                // The watermark first: it was brought before whatever the end aligns.
                let merged = self.valve.end(index);
                self.say(merged);
                let aligned = self.alignment.end(index);
                return self.aligned(aligned);
            }
            other => {
                self.merged.push_back(other);
                return;
            }
        };
        self.say(merged);
    }

    /// After a barrier or an end of the current channel, which may be blocked by now.
    fn aligned(&mut self, aligned: Option<Barrier>) {
        self.merged.extend(aligned.map(|barrier| Element::Stream(StreamElement::Barrier(barrier))));
        let (index, rest) = &mut self.current;
        if self.alignment.is_blocked(*index) && rest.len() > 0 {
            self.behind.push_back((*index, std::mem::take(rest)));
        }
    }

    fn say(&mut self, ValveOutput { watermark, status }: ValveOutput) {
        let status = |wanted| status.filter(|&s| s == wanted).map(StreamElement::Status);
        let watermark = watermark.map(StreamElement::Watermark);
        let said = [status(WatermarkStatus::Active), watermark, status(WatermarkStatus::Idle)];
        self.merged.extend(said.into_iter().flatten().map(Element::Stream));
    }
}

enum Next {
    Behind(usize, Rest),
    Ready(usize),
}

impl Drop for InputGates {
    fn drop(&mut self) {
        self.registry.unregister(self.consumer);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use runtime_core::{Epoch, EpochMillis, JobId, VertexId, Watermark};

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

    fn barrier(checkpoint: u64) -> Element {
        let barrier = Barrier { job: JobId::from_u128(1), checkpoint, begun_at: EpochMillis(0) };
        Element::Stream(StreamElement::Barrier(barrier))
    }

    /// Dead letters as their text, watermarks as `<at>`, barriers as `|n|`.
    fn read(gates: &mut InputGates) -> String {
        let mut text = String::new();
        while let Some(element) = gates.next_element().unwrap() {
            match element {
                Element::DeadLetter(line) => text.push_str(std::str::from_utf8(&line).unwrap()),
                Element::Stream(StreamElement::Watermark(at)) => text.push_str(&format!("<{}>", at.0.0)),
                Element::Stream(StreamElement::Barrier(b)) => text.push_str(&format!("|{}|", b.checkpoint)),
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
    async fn a_channel_that_has_brought_the_barrier_is_read_on_when_all_have() {
        let (mut gates, [first, second]) = gates().await;
        first.try_send([letters("ab"), vec![barrier(1)], letters("cd")].concat()).unwrap();
        first.try_send(letters("ef")).unwrap();
        second.try_send(letters("12")).unwrap();
        assert_eq!(read(&mut gates), "ab12");
        assert_eq!(gates.aligning().map(|barrier| barrier.checkpoint), Some(1));
        // The rest of the blocked channel's batch is held, and everything else stays in its buffer.
        assert_eq!((first.taken(), second.taken()), (1, 1));
        second.try_send([letters("3"), vec![barrier(1)], letters("4")].concat()).unwrap();
        assert_eq!(read(&mut gates), "3|1|4cdef");
        assert_eq!(gates.aligning(), None);
    }

    #[tokio::test]
    async fn the_end_of_a_channel_stands_for_its_barrier() {
        let (mut gates, [first, second]) = gates().await;
        first.try_send([vec![watermark(9), barrier(1)], letters("x")].concat()).unwrap();
        second.try_send([letters("1"), vec![watermark(5), Element::End]].concat()).unwrap();
        assert_eq!(read(&mut gates), "1<5><9>|1|x");
        first.try_send(vec![barrier(2)]).unwrap();
        assert_eq!(read(&mut gates), "|2|");
    }

    #[tokio::test]
    async fn an_abort_lets_the_blocked_channel_go_on_and_late_barriers_are_dropped() {
        let (mut gates, [first, second]) = gates().await;
        first.try_send([vec![barrier(1)], letters("ab"), vec![barrier(2)], letters("c")].concat()).unwrap();
        assert_eq!(read(&mut gates), "");
        gates.abort(1);
        assert_eq!(read(&mut gates), "ab");
        second.try_send([letters("1"), vec![barrier(1)], letters("2")].concat()).unwrap();
        assert_eq!(read(&mut gates), "12");
        second.try_send(vec![barrier(2)]).unwrap();
        assert_eq!(read(&mut gates), "|2|c");
    }

    #[tokio::test]
    async fn a_newer_barrier_ends_the_alignment_of_an_older_one() {
        let (mut gates, [first, second]) = gates().await;
        first.try_send([vec![barrier(1)], letters("a"), vec![barrier(2)], letters("b")].concat()).unwrap();
        second.try_send([vec![barrier(2)], letters("1")].concat()).unwrap();
        assert_eq!(read(&mut gates), "a|2|b1");
    }
}
