//! The receiving side of the exchange between task executors.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::convert::attempt_id;
use wire::{DataGateway, MessageStream, RpcError, RpcErrorKind, v1};

use super::CHANNEL_BATCHES;
use super::channel::{SendError, Sender};
use super::channels::{CONSUMER_WAIT, Channels, Refusal};
use super::codec::Decoder;
use super::credits::Grants;
use super::element::{ChannelId, Element};

/// Serves the channels of one task executor to the producers on others.
pub struct DataEndpoint {
    channels: Arc<Channels>,
}

impl DataEndpoint {
    /// An endpoint for these channels.
    #[must_use]
    pub fn new(channels: Arc<Channels>) -> Self {
        Self { channels }
    }
}

#[async_trait]
impl DataGateway for DataEndpoint {
    /// Takes one channel's stream. It answers at once: that a channel is refused is said on the stream of credits, since
    /// its consumer may be deployed seconds later.
    async fn exchange(
        &self,
        inbound: MessageStream<v1::Frame>,
    ) -> Result<MessageStream<v1::Credit>, RpcError> {
        let (credits, granted) = mpsc::unbounded_channel();
        let channels = Arc::clone(&self.channels);
        tokio::spawn(async move {
            if let Err(refused) = receive(&channels, inbound, &credits).await {
                tracing::warn!(kind = ?refused.kind, "a data channel ended early: {}", refused.message);
                // The producer has gone as well when nobody takes the refusal.
                let _ = credits.send(Err(refused));
            }
        });
        Ok(UnboundedReceiverStream::new(granted).boxed())
    }
}

type Credits = mpsc::UnboundedSender<Result<v1::Credit, RpcError>>;

async fn receive(
    channels: &Channels,
    mut inbound: MessageStream<v1::Frame>,
    credits: &Credits,
) -> Result<(), RpcError> {
    let Some(id) = hello(&mut inbound).await? else { return Ok(()) };
    let wake = Arc::new(Notify::new());
    let mut sender = channels.connect(id, Some(Arc::clone(&wake))).await.map_err(|refused| {
        let kind = match refused.refusal {
            Refusal::Unknown => RpcErrorKind::UnknownTarget,
            Refusal::Replaced { .. } | Refusal::NotExpected => RpcErrorKind::Fencing,
            Refusal::Connected => RpcErrorKind::Application,
        };
        RpcError { kind, message: refused.to_string() }
    })?;
    let outcome = read_on(&mut sender, &wake, inbound, credits).await;
    if let Err(broken) = &outcome {
        sender.fail(broken.message.clone());
    }
    outcome
}

/// The channel that the first frame names; none where the stream ended before it.
async fn hello(inbound: &mut MessageStream<v1::Frame>) -> Result<Option<ChannelId>, RpcError> {
    let first = tokio::time::timeout(CONSUMER_WAIT, inbound.next()).await;
    let Some(first) = first.map_err(|_| protocol("no first frame came within 10 s"))? else {
        return Ok(None);
    };
    let Some(v1::frame::Frame::Hello(hello)) = first?.frame else {
        return Err(protocol("the first frame of a channel has to name it"));
    };
    let producer = attempt_id(hello.producer.as_ref(), "producer")?;
    let consumer = attempt_id(hello.consumer.as_ref(), "consumer")?;
    Ok(Some(ChannelId { edge: hello.edge, producer, consumer }))
}

async fn read_on(
    sender: &mut Sender,
    wake: &Notify,
    mut inbound: MessageStream<v1::Frame>,
    credits: &Credits,
) -> Result<(), RpcError> {
    let mut grants = Grants::new(u32::try_from(CHANNEL_BATCHES).unwrap_or(u32::MAX));
    let mut decoder = Decoder::new(sender.id().consumer.job);
    let (mut number, mut paused) = (0, false);
    loop {
        let (due, pause) = (grants.due(sender.taken()), sender.is_paused());
        if due.is_some() || pause != paused {
            paused = pause;
            // Nobody to grant to: the end of the inbound stream is about to be seen.
            let _ = credits.send(Ok(v1::Credit { batches: due.unwrap_or(0), paused }));
        }
        let frame = tokio::select! {
            biased;
            frame = inbound.next() => frame,
            () = wake.notified() => {
                if sender.receiver_gone() {
                    return Ok(());
                }
                continue;
            }
        };
        let batch = match frame.transpose()?.map(|frame| frame.frame) {
            Some(Some(v1::frame::Frame::Batch(batch))) => batch,
            Some(_) => return Err(protocol("after its first frame a channel carries batches only")),
            // Without an end of input: the producer's task is gone, and says itself why.
            None => return Ok(()),
        };
        number += 1;
        if batch.number != number {
            return Err(protocol(&format!("batch {} came where {number} was expected", batch.number)));
        }
        let batch = decoder.decode(batch).map_err(|error| protocol(&error.to_string()))?;
        let ended = matches!(batch.last(), Some(Element::End));
        match sender.try_send(batch) {
            Ok(()) if ended => {
                sender.finish();
                return Ok(());
            }
            Ok(()) => {}
            Err(SendError::Gone) => return Ok(()),
            Err(SendError::Full(_)) => {
                return Err(protocol(&format!("batch {number} came without a credit")));
            }
        }
    }
}

fn protocol(message: &str) -> RpcError {
    RpcError::application(message)
}

#[cfg(test)]
mod tests;
