//! The messages of a stream across a link of the in-memory network.

use super::faults::StreamFate;
use super::state::{Passage, Path, Shared};
use crate::error::RpcError;
use crate::transport::MessageStream;
use futures::stream::{self, StreamExt as _};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// So many messages are under way at most; then the sender waits, as on a connection whose buffers are full.
const UNDER_WAY: usize = 256;

/// A message and when it arrives; `None` is the end of the stream.
type Stamped<T> = (Instant, Option<Result<T, RpcError>>);

/// The stream as it comes out at the other end of `path`.
pub(super) fn pipe<T: Send + 'static>(
    shared: &Arc<Shared>,
    path: Path,
    message: String,
    source: MessageStream<T>,
) -> MessageStream<T> {
    let (sender, receiver) = mpsc::channel(UNDER_WAY);
    tokio::spawn(send(Arc::clone(shared), path.clone(), message.into(), source, sender));
    receive(Arc::clone(shared), path, receiver)
}

/// Takes messages from their sender and stamps them with their arrival, never before the one ahead.
async fn send<T: Send>(
    shared: Arc<Shared>,
    path: Path,
    message: Arc<str>,
    mut source: MessageStream<T>,
    sender: mpsc::Sender<Stamped<T>>,
) {
    let mut last = Instant::now();
    loop {
        let item = tokio::select! {
            biased;
            () = sender.closed() => return,
            () = shared.broken(&path) => return,
            item = source.next() => item,
        };
        let item = match shared.stream(&path, Arc::clone(&message)) {
            StreamFate::Deliver(after) => {
                last = last.max(Instant::now() + after);
                item
            }
            StreamFate::Break => Some(Err(broken_off())),
        };
        let ends = !matches!(item, Some(Ok(_)));
        if sender.send((last, item)).await.is_err() || ends {
            return;
        }
    }
}

/// Hands messages out when they arrive and while the link lets them pass.
fn receive<T: Send + 'static>(
    shared: Arc<Shared>,
    path: Path,
    receiver: mpsc::Receiver<Stamped<T>>,
) -> MessageStream<T> {
    let state = Some((shared, path, receiver));
    stream::unfold(state, |state| async move {
        let (shared, path, mut receiver) = state?;
        let item = tokio::select! {
            biased;
            () = shared.broken(&path) => Some(Err(broken_off())),
            item = arrival(&shared, &path, &mut receiver) => item,
        }?;
        let rest = item.is_ok().then_some((shared, path, receiver));
        Some((item, rest))
    })
    .boxed()
}

async fn arrival<T>(
    shared: &Shared,
    path: &Path,
    receiver: &mut mpsc::Receiver<Stamped<T>>,
) -> Option<Result<T, RpcError>> {
    let Some((at, item)) = receiver.recv().await else {
        // The sender's end was dropped without an end of the stream.
        return Some(Err(broken_off()));
    };
    sleep_until(at).await;
    shared.not_held(path).await;
    if shared.passage(path) == Passage::Broken { Some(Err(broken_off())) } else { item }
}

fn broken_off() -> RpcError {
    RpcError::unreachable("connection reset: the stream is broken")
}
