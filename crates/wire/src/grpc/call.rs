//! The client's side of a call: version, limits, deadline, and what a failure means.

use super::channels::Connection;
use super::options::GrpcOptions;
use super::{status, version};
use crate::error::RpcError;
use crate::transport::MessageStream;
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tonic::{Request, Response, Status, Streaming};

/// What the calls of one gateway share.
pub(crate) struct Calls {
    connection: Arc<Connection>,
    timeout: Duration,
    limit: usize,
    protocol: u32,
}

/// Tells why the outgoing messages of a stream ended before their time.
pub(crate) type Broken = oneshot::Receiver<RpcError>;

/// Outgoing messages. A type of its own, because the compiler cannot see through a boxed stream that the future of a
/// call is `Send`.
pub(crate) struct Outgoing<M>(BoxStream<'static, M>);

impl<M> Stream for Outgoing<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<M>> {
        self.0.poll_next_unpin(cx)
    }
}

impl Calls {
    pub(super) fn new(connection: Arc<Connection>, options: &GrpcOptions, limit: usize) -> Self {
        Self { connection, timeout: options.call_timeout, limit, protocol: options.protocol_version }
    }

    pub(crate) fn channel(&self) -> tonic::transport::Channel {
        self.connection.channel()
    }

    pub(crate) const fn message_limit(&self) -> usize {
        self.limit
    }

    /// The request as it is sent.
    pub(crate) fn request<M: prost::Message>(&self, name: &str, message: M) -> Result<Request<M>, RpcError> {
        within_limit(&message, self.limit).map_err(|error| self.at(name, error))?;
        Ok(self.marked(message))
    }

    /// The outgoing messages as they are sent. They end at the first error or message that is too large.
    pub(crate) fn stream_request<M: prost::Message + 'static>(
        &self,
        name: &'static str,
        inbound: MessageStream<M>,
    ) -> (Request<Outgoing<M>>, Broken) {
        let (broken, told) = oneshot::channel();
        let limit = self.limit;
        let outgoing = stream::unfold((inbound, Some(broken)), move |(mut inbound, mut broken)| async move {
            let message = inbound.next().await?;
            match message.and_then(|message| within_limit(&message, limit).map(|()| message)) {
                Ok(message) => Some((message, (inbound, broken))),
                Err(error) => {
                    if let Some(broken) = broken.take() {
                        // Whoever waits for answers is told; if nobody does, nobody needs to know.
                        let _ = broken.send(error.at(name));
                    }
                    None
                }
            }
        });
        (self.marked(Outgoing(outgoing.boxed())), told)
    }

    /// Awaits the answer of a call.
    pub(crate) async fn unary<T>(
        &self,
        name: &str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, RpcError> {
        self.answer(name, call).await
    }

    /// Awaits the opening of a stream.
    pub(crate) async fn open<T: Send + 'static>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<Response<Streaming<T>>, Status>>,
        broken: Broken,
    ) -> Result<MessageStream<T>, RpcError> {
        let incoming = self.answer(name, call).await?;
        // The connection lives as long as its streams, even where the gateway was dropped.
        let held = Arc::clone(&self.connection);
        let protocol = self.protocol;
        let state = Some((incoming, Some(broken), held));
        let messages = stream::unfold(state, move |state| async move {
            let (mut incoming, mut broken, held) = state?;
            let next = tokio::select! {
                biased;
                error = told(&mut broken) => Some(Err(error)),
                message = incoming.next() => message.map(|message| {
                    message.map_err(|refused| {
                        status::from_status(&refused, protocol).at(format_args!("{name} at {}", held.address()))
                    })
                }),
            }?;
            let rest = next.is_ok().then_some((incoming, broken, held));
            Some((next, rest))
        });
        Ok(messages.boxed())
    }

    async fn answer<T>(
        &self,
        name: &str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, RpcError> {
        let answer = match tokio::time::timeout(self.timeout, call).await {
            Err(_) => Err(RpcError::deadline(format!("no answer within {:?}", self.timeout))),
            Ok(Err(refused)) => Err(status::from_status(&refused, self.protocol)),
            Ok(Ok(response)) => {
                version::check(response.metadata(), self.protocol).map(|()| response.into_inner())
            }
        };
        answer.map_err(|error| self.at(name, error))
    }

    fn marked<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        version::mark(request.metadata_mut(), self.protocol);
        request
    }

    fn at(&self, name: &str, error: RpcError) -> RpcError {
        error.at(format_args!("{name} at {}", self.connection.address()))
    }
}

/// Waits until something is told; where nothing can be told any more, for ever.
async fn told(broken: &mut Option<Broken>) -> RpcError {
    if let Some(receiver) = broken {
        if let Ok(error) = receiver.await {
            return error;
        }
        *broken = None;
    }
    std::future::pending().await
}

/// Refuses a message that the peer would refuse, before it is sent.
pub(super) fn within_limit<M: prost::Message>(message: &M, limit: usize) -> Result<(), RpcError> {
    let length = message.encoded_len();
    if length <= limit {
        return Ok(());
    }
    Err(RpcError::too_large(format!("a message of {length} bytes is over the limit of {limit} bytes")))
}
