//! Both directions of a stream end together.

use futures::stream::StreamExt as _;
use tokio::sync::oneshot;

use crate::transport::MessageStream;

/// Ends the stream that it belongs to when it is dropped.
#[derive(Debug)]
pub struct Tie {
    _ended: oneshot::Sender<()>,
}

/// Ties what is answered on a stream to whoever reads what is asked on it. A peer whose messages reach nobody any more
/// must see the end of the answers, or it would say its messages into the void for as long as its calls succeed.
#[must_use]
pub fn tied<T: Send + 'static>(answers: MessageStream<T>) -> (MessageStream<T>, Tie) {
    let (ended, end) = oneshot::channel();
    (answers.take_until(end).boxed(), Tie { _ended: ended })
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn answers_end_with_the_reader_of_what_is_asked() {
        let (mut answers, tie) = tied(stream::iter([Ok(1), Ok(2)]).chain(stream::pending()).boxed());
        assert_eq!(answers.next().await, Some(Ok(1)));
        assert_eq!(answers.next().await, Some(Ok(2)));
        drop(tie);
        assert_eq!(answers.next().await, None);
    }
}
