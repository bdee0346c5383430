//! Accepted connections: without delay for small packets, closed when they stay silent, all closable at once.

use futures::stream::{self, Stream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tonic::transport::server::Connected;

/// After an accept that failed (mostly: no file descriptor left) the next is tried this much later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Closes every connection of a server.
#[derive(Clone, Default)]
pub(super) struct KillSwitch(Arc<(AtomicBool, Notify)>);

impl KillSwitch {
    pub(super) fn pull(&self) {
        let (pulled, notify) = &*self.0;
        pulled.store(true, Ordering::SeqCst);
        notify.notify_waiters();
    }

    /// Resolves once it was pulled.
    async fn pulled(self) {
        let (pulled, notify) = &*self.0;
        // Listening before looking: a pull in between is not missed.
        let mut notified = std::pin::pin!(notify.notified());
        notified.as_mut().enable();
        if !pulled.load(Ordering::SeqCst) {
            notified.await;
        }
    }
}

/// The connections that come in. It never ends and never fails: a server outlives what its port is sent.
pub(super) fn accept(
    listener: TcpListener,
    kill: KillSwitch,
    first_byte: Duration,
) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold((listener, kill), move |(listener, kill)| async move {
        loop {
            match listener.accept().await {
                Ok((socket, peer)) => {
                    if let Err(error) = socket.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "the connection was closed while it was accepted");
                        continue;
                    }
                    let end: Ending = Box::pin(end(kill.clone(), first_byte));
                    let waits: Ending = Box::pin(kill.clone().pulled());
                    let connection = Connection { socket, silent: Some(end), killed: waits };
                    return Some((Ok(connection), (listener, kill)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

async fn end(kill: KillSwitch, first_byte: Duration) {
    tokio::select! {
        biased;
        () = kill.pulled() => {}
        () = tokio::time::sleep(first_byte) => {}
    }
}

type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One connection. A server always reads, so reading is where it learns that the connection is to be closed.
pub(super) struct Connection {
    socket: TcpStream,
    /// Until the first byte has come.
    silent: Option<Ending>,
    killed: Ending,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.silent.as_mut().unwrap_or(&mut this.killed).as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut this.socket).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            this.silent = None;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
