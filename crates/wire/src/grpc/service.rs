//! The server's side of a call: version and limits of what is answered.

use super::call::within_limit;
use super::options::GrpcOptions;
use super::{status, version};
use crate::error::RpcError;
use crate::transport::MessageStream;
use futures::stream::{BoxStream, StreamExt as _};
use tonic::{Response, Status, Streaming};

pub(crate) use super::version::VersionCheck;

/// The messages of an answer as tonic wants them.
pub(crate) type ReplyStream<T> = BoxStream<'static, Result<T, Status>>;

/// What the services of one server share.
#[derive(Clone, Copy)]
pub(crate) struct ServiceRules {
    pub(crate) message_limit: usize,
    pub(crate) protocol: u32,
}

impl ServiceRules {
    pub(super) const fn new(options: &GrpcOptions, message_limit: usize) -> Self {
        Self { message_limit, protocol: options.protocol_version }
    }

    /// The answer to a call.
    pub(crate) fn answer<T: prost::Message>(
        self,
        answer: Result<T, RpcError>,
    ) -> Result<Response<T>, Status> {
        let checked = answer.and_then(|answer| within_limit(&answer, self.message_limit).map(|()| answer));
        match checked {
            Ok(answer) => Ok(self.marked(answer)),
            Err(error) => Err(status::to_status(&error, self.protocol)),
        }
    }

    /// The messages that come in.
    pub(crate) fn inbound<T: Send + 'static>(self, messages: Streaming<T>) -> MessageStream<T> {
        messages
            .map(move |message| message.map_err(|error| status::from_status(&error, self.protocol)))
            .boxed()
    }

    /// The messages that go back.
    pub(crate) fn answer_stream<T: prost::Message + 'static>(
        self,
        answer: Result<MessageStream<T>, RpcError>,
    ) -> Result<Response<ReplyStream<T>>, Status> {
        let messages = answer.map_err(|error| status::to_status(&error, self.protocol))?;
        let checked = messages.map(move |message| {
            message
                .and_then(|message| within_limit(&message, self.message_limit).map(|()| message))
                .map_err(|error| status::to_status(&error, self.protocol))
        });
        Ok(self.marked(checked.boxed()))
    }

    fn marked<T>(self, answer: T) -> Response<T> {
        let mut response = Response::new(answer);
        version::mark(response.metadata_mut(), self.protocol);
        response
    }
}
