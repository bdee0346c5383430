//! Tests of numbered streams.

use super::{Duplex, Envelope as _, Inbox, Outbox};
use crate::v1;
use futures::future::FutureExt as _;
use futures::stream::StreamExt as _;
use proptest::prelude::*;
use runtime_core::Tick;

type Up = v1::TaskExecutorToResourceManager;
type Down = v1::ResourceManagerToTaskExecutor;

fn says(cause: &str) -> Up {
    let disconnect = v1::Disconnect { cause: cause.to_owned() };
    let message = Some(v1::task_executor_to_resource_manager::Message::Disconnect(disconnect));
    Up { number: 0, message }
}

fn cause(message: &Up) -> &str {
    match &message.message {
        Some(v1::task_executor_to_resource_manager::Message::Disconnect(disconnect)) => &disconnect.cause,
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn numbers_count_from_one_and_kept_is_what_is_not_acknowledged() {
    let mut outbox = Outbox::starting(Tick::ZERO);
    assert_eq!(outbox.push(says("a")).number, 1);
    assert_eq!(outbox.push(says("b")).number, 2);
    assert_eq!(outbox.push(says("c")).number, 3);
    outbox.acknowledge(2);
    assert_eq!(outbox.unacknowledged().map(cause).collect::<Vec<_>>(), ["c"]);
    outbox.acknowledge(1);
    assert_eq!(outbox.len(), 1, "an older acknowledgement changes nothing");
    outbox.acknowledge(u64::MAX);
    assert!(outbox.is_empty());
    assert_eq!(outbox.push(says("d")).number, 4);
}

#[test]
fn old_numbers_are_dropped_gaps_and_the_unnumbered_pass() {
    let mut inbox = Inbox::default();
    for (number, taken, last) in
        [(0, true, 0), (1, true, 1), (1, false, 1), (4, true, 4), (3, false, 4), (0, true, 4), (5, true, 5)]
    {
        assert_eq!(inbox.take(number), taken, "{number}");
        assert_eq!(inbox.last(), last);
    }
}

/// Takes what a stream holds now.
fn drain(stream: &mut crate::MessageStream<Up>) -> Vec<Up> {
    let mut messages = Vec::new();
    while let Some(Some(Ok(message))) = stream.next().now_or_never() {
        messages.push(message);
    }
    messages
}

#[test]
fn a_new_stream_begins_with_the_greeting_and_all_that_is_not_acknowledged() {
    let mut duplex = Duplex::<Up, Down>::starting(Tick::ZERO);
    duplex.say(says("before there is a stream"));
    let mut first = duplex.connect(Some(says("hello")));
    duplex.say(says("on the first"));
    let sent = drain(&mut first);
    let sent: Vec<_> = sent.iter().map(|message| (message.number, cause(message))).collect();
    assert_eq!(sent, [(0, "hello"), (1, "before there is a stream"), (2, "on the first")]);

    assert_eq!(duplex.hear(Down::ack(1)), None);
    drop(first);
    assert!(!duplex.is_connected());
    duplex.say(says("between"));
    let mut second = duplex.connect(None);
    let sent: Vec<_> = drain(&mut second).iter().map(|message| message.number).collect();
    assert_eq!(sent, [2, 3]);
}

#[test]
fn a_stream_that_is_replaced_ends() {
    let mut duplex = Duplex::<Up, Down>::starting(Tick::ZERO);
    let mut first = duplex.connect(None);
    let _second = duplex.connect(None);
    assert!(matches!(first.next().now_or_never(), Some(None)));
}

#[test]
fn what_is_heard_twice_is_acted_upon_once_and_acknowledged_twice() {
    let mut duplex = Duplex::<Up, Down>::starting(Tick::ZERO);
    let mut stream = duplex.connect(None);
    let news = Down { number: 1, message: None };
    assert_eq!(duplex.hear(news.clone()), Some(news.clone()));
    assert_eq!(duplex.hear(news), None);
    let sent: Vec<_> = drain(&mut stream).iter().map(Up::acknowledged).collect();
    assert_eq!(sent, [Some(1), Some(1)]);
    assert!(duplex.hear(Down { number: 0, message: None }).is_some(), "a greeting has no number");
    assert!(drain(&mut stream).is_empty(), "and is not acknowledged");
}

/// The next message of a stream, if there is one now.
fn ready<T>(stream: &mut crate::MessageStream<T>) -> Option<T> {
    stream.next().now_or_never().flatten().and_then(Result::ok)
}

proptest! {
    /// Streams break at any place, and what is under way on them is lost.
    #[test]
    fn whatever_breaks_each_message_is_taken_once_and_in_order(
        steps in proptest::collection::vec((0_u8..4, 1_usize..5), 1..80),
    ) {
        let mut sender = Duplex::<Up, Down>::starting(Tick::ZERO);
        let mut receiver = Duplex::<Down, Up>::starting(Tick::ZERO);
        let (mut up, mut down) = (sender.connect(None), receiver.connect(None));
        let (mut said, mut heard) = (0, Vec::new());
        let end = [(3, 1), (1, usize::MAX), (2, usize::MAX)];
        for (step, times) in steps.into_iter().chain(end) {
            match step {
                0 => {
                    for _ in 0..times {
                        said += 1;
                        sender.say(says("x"));
                    }
                }
                1 => {
                    let arrived = std::iter::from_fn(|| ready(&mut up)).take(times);
                    heard.extend(arrived.filter_map(|message| receiver.hear(message)).map(|message| message.number));
                }
                2 => {
                    for acknowledgement in std::iter::from_fn(|| ready(&mut down)).take(times) {
                        prop_assert!(sender.hear(acknowledgement).is_none());
                    }
                }
                _ => (up, down) = (sender.connect(None), receiver.connect(None)),
            }
        }
        prop_assert_eq!(heard, (1..=said).collect::<Vec<u64>>());
        prop_assert_eq!(sender.unacknowledged(), 0);
    }
}

#[tokio::test]
async fn listening_tells_each_message_and_how_the_stream_ended() {
    let broken = crate::RpcError::unreachable("gone");
    let items = [Ok(says("a")), Ok(says("b")), Err(broken.clone()), Ok(says("c"))];
    let mut told = Vec::new();
    let outcome = super::listen(futures::stream::iter(items).boxed(), |message| told.push(message)).await;
    assert_eq!(outcome, Err(broken));
    assert_eq!(told.iter().map(cause).collect::<Vec<_>>(), ["a", "b"]);
    let ended = super::listen::<Up>(futures::stream::iter([]).boxed(), |_| ()).await;
    assert_eq!(ended, Ok(()));
}
