//! Both directions of a numbered stream, with the stream of the moment.

use super::envelope::Envelope;
use super::{Inbox, Outbox};
use crate::error::RpcError;
use crate::transport::MessageStream;
use futures::stream::StreamExt as _;
use runtime_core::Tick;
use tokio::sync::mpsc;

/// One side of the conversation of two roles, from their registration to the end of either's life.
///
/// It lives in the role's state and is called from its loop; nothing in it waits. Whoever opens the stream hands
/// [`Duplex::connect`]'s messages to the gateway; whoever is asked returns them as its answer. When and whether to
/// open a stream again is the role's decision.
#[derive(Debug)]
pub struct Duplex<Out, In> {
    outbox: Outbox<Out>,
    inbox: Inbox,
    sender: Option<mpsc::UnboundedSender<Out>>,
    hears: std::marker::PhantomData<fn(In)>,
}

impl<Out: Envelope, In: Envelope> Duplex<Out, In> {
    /// A conversation that begins now; see [`Outbox::starting`].
    #[must_use]
    pub fn starting(now: Tick) -> Self {
        Self {
            outbox: Outbox::starting(now),
            inbox: Inbox::default(),
            sender: None,
            hears: std::marker::PhantomData,
        }
    }

    /// The messages of a new stream, which takes the place of the one before: the greeting, if there is one, then
    /// everything that is not acknowledged, then what is said later.
    pub fn connect(&mut self, greeting: Option<Out>) -> MessageStream<Out> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        for message in greeting.into_iter().chain(self.outbox.unacknowledged().cloned()) {
            // The receiver is in this function.
            let _ = sender.send(message);
        }
        self.sender = Some(sender);
        futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)).map(Ok).boxed()
    }

    /// Ends the stream of the moment. What is said from now on goes out on the next.
    pub fn disconnect(&mut self) {
        self.sender = None;
    }

    /// Whether there is a stream that takes messages.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Says something: it reaches the peer once, on this stream or on a later one.
    pub fn say(&mut self, message: Out) {
        let numbered = self.outbox.push(message);
        self.send(numbered);
    }

    /// Takes what came in. Yields what is to be acted upon: nothing for an acknowledgement or for what was heard
    /// before. What is new is acknowledged.
    pub fn hear(&mut self, message: In) -> Option<In> {
        if let Some(number) = message.acknowledged() {
            self.outbox.acknowledge(number);
            return None;
        }
        let new = self.inbox.take(message.number());
        if message.number() != 0 {
            // Old ones too: the acknowledgement may have been lost with the stream before.
            self.send(Out::ack(self.inbox.last()));
        }
        new.then_some(message)
    }

    /// How many messages the peer has not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.outbox.len()
    }

    fn send(&mut self, message: Out) {
        if let Some(sender) = &self.sender
            && sender.send(message).is_err()
        {
            self.sender = None;
        }
    }
}

/// Reads a stream to its end, telling each message. Yields why it ended: an error, or nothing where the peer ended it.
///
/// # Errors
///
/// The error that broke the stream.
pub async fn listen<T>(mut stream: MessageStream<T>, mut on: impl FnMut(T)) -> Result<(), RpcError> {
    while let Some(message) = stream.next().await {
        on(message?);
    }
    Ok(())
}
