//! What an endpoint does with streams that do not keep the protocol, and with those that do.

use bytes::Bytes;
use futures::stream::BoxStream;
use runtime_core::{AttemptId, Epoch, JobId, VertexId};

use super::*;
use crate::exchange::gate::InputGates;
use crate::exchange::{CHANNEL_BATCHES, encode};
use crate::task::InputGate;

fn attempt(vertex: u32) -> AttemptId {
    AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(vertex), subtask: 0, attempt: 0 }
}

fn hello() -> v1::Frame {
    let hello =
        v1::ChannelHello { edge: 0, producer: Some(attempt(0).into()), consumer: Some(attempt(1).into()) };
    v1::Frame { frame: Some(v1::frame::Frame::Hello(hello)) }
}

fn letter(number: u64) -> Element {
    Element::DeadLetter(Bytes::from(number.to_string()))
}

fn batch(number: u64, elements: Vec<Element>) -> v1::Frame {
    v1::Frame { frame: Some(v1::frame::Frame::Batch(encode(number, elements))) }
}

struct Channel {
    frames: mpsc::UnboundedSender<Result<v1::Frame, RpcError>>,
    credits: BoxStream<'static, Result<v1::Credit, RpcError>>,
    gates: InputGates,
}

impl Channel {
    async fn open() -> Self {
        let channels = Channels::new();
        let gate = InputGate { edge: 0, producers: vec![attempt(0)] };
        let gates = channels.register(attempt(1), &[gate], Arc::default());
        let (frames, inbound) = mpsc::unbounded_channel();
        let inbound = UnboundedReceiverStream::new(inbound).boxed();
        let credits = DataEndpoint::new(channels).exchange(inbound).await.unwrap();
        Self { frames, credits, gates }
    }

    fn send(&self, frame: v1::Frame) {
        self.frames.send(Ok(frame)).unwrap();
    }

    async fn credit(&mut self) -> Option<Result<u32, String>> {
        self.credits.next().await.map(|c| c.map(|c| c.batches).map_err(|error| error.message))
    }

    fn read(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        while let Ok(Some(Element::DeadLetter(line))) = self.gates.next_element() {
            lines.push(line);
        }
        lines
    }
}

#[tokio::test(start_paused = true)]
async fn credits_are_granted_at_first_and_for_each_batch_taken_and_the_end_closes_the_stream() {
    let mut channel = Channel::open().await;
    channel.send(hello());
    assert_eq!(channel.credit().await, Some(Ok(CHANNEL_BATCHES as u32)));
    channel.send(batch(1, vec![letter(1), letter(2)]));
    channel.send(batch(2, vec![letter(3)]));
    tokio::task::yield_now().await;
    assert_eq!(channel.read(), ["1", "2", "3"]);
    assert_eq!(channel.credit().await, Some(Ok(2)));
    channel.send(batch(3, vec![letter(4), Element::End]));
    assert_eq!(channel.credit().await, None);
    assert_eq!(channel.read(), ["4"]);
    assert!(channel.gates.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_keep_the_protocol_is_refused_and_breaks_its_channel() {
    let overrun = (1..=5).map(|n| batch(n, vec![letter(n)])).collect();
    let cases: [(&str, Vec<v1::Frame>); 4] = [
        ("batch 5 came without a credit", overrun),
        ("batch 2 came where 1 was expected", vec![batch(2, vec![letter(1)])]),
        ("carries batches only", vec![hello()]),
        ("carries batches only", vec![v1::Frame { frame: None }]),
    ];
    for (message, frames) in cases {
        let mut channel = Channel::open().await;
        channel.send(hello());
        assert_eq!(channel.credit().await, Some(Ok(4)));
        frames.into_iter().for_each(|frame| channel.send(frame));
        let refused = channel.credit().await.unwrap().unwrap_err();
        assert!(refused.contains(message), "{refused}");
        let broken =
            std::iter::repeat_with(|| channel.gates.next_element()).find(|next| !matches!(next, Ok(Some(_))));
        assert!(broken.unwrap().unwrap_err().to_string().contains(message));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_name_is_refused() {
    for first in [batch(1, vec![letter(1)]), v1::Frame { frame: None }] {
        let mut channel = Channel::open().await;
        channel.send(first);
        let refused = channel.credit().await.unwrap().unwrap_err();
        assert!(refused.contains("has to name it"), "{refused}");
    }
    let mut silent = Channel::open().await;
    let refused = silent.credit().await.unwrap().unwrap_err();
    assert!(refused.contains("within 10 s"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_an_error_and_one_that_ends_early_is_a_producer_that_is_gone() {
    let mut broken = Channel::open().await;
    broken.send(hello());
    broken.frames.send(Err(RpcError::unreachable("connection reset"))).unwrap();
    assert_eq!(broken.credit().await, Some(Ok(4)));
    assert!(broken.credit().await.unwrap().is_err());
    assert!(broken.gates.next_element().unwrap_err().to_string().contains("connection reset"));

    let mut ended = Channel::open().await;
    ended.send(hello());
    assert_eq!(ended.credit().await, Some(Ok(4)));
    let Channel { frames, mut credits, mut gates } = ended;
    drop(frames);
    assert!(credits.next().await.is_none());
    assert!(gates.next_element().unwrap().is_none());
    assert_eq!(gates.gone().map(|id| id.producer), Some(attempt(0)));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_gone_ends_the_stream() {
    let mut channel = Channel::open().await;
    channel.send(hello());
    assert_eq!(channel.credit().await, Some(Ok(4)));
    let Channel { frames: _frames, mut credits, gates } = channel;
    drop(gates);
    assert!(credits.next().await.is_none());
}
