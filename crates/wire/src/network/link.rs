//! Calls across a link of the in-memory network.

use super::faults::CallFate;
use super::pipe;
use super::state::{Life, Path, Shared};
use crate::address::Address;
use crate::error::RpcError;
use crate::transport::{Endpoints, MessageStream};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The way from one life of a node to whoever serves at an address.
pub(crate) struct Link {
    shared: Arc<Shared>,
    from: Life,
    host_port: Arc<str>,
    node: Arc<str>,
}

/// Carries a request out at a gateway.
type Handler<G, Q, A> = fn(Arc<G>, Q) -> BoxFuture<'static, Result<A, RpcError>>;

impl Link {
    pub(super) fn new(shared: Arc<Shared>, from: Life, address: &Address) -> Self {
        let host_port = address.host_port();
        let node = host_port.rsplit_once(':').map_or(host_port, |(node, _)| node);
        Self { shared, from, host_port: host_port.into(), node: node.into() }
    }

    /// A call with one request and one answer.
    pub(crate) async fn unary<G, Q, A>(
        &self,
        name: &'static str,
        endpoint: fn(&Endpoints) -> Option<Arc<G>>,
        request: Q,
        handler: Handler<G, Q, A>,
    ) -> Result<A, RpcError>
    where
        G: ?Sized + Send + Sync + 'static,
        Q: Clone + Send + 'static,
        A: Send + 'static,
    {
        self.within_deadline(name, async {
            let (path, gateway) = self.reach(name, endpoint).await?;
            let (first, second) = self.send(&path, name, true).await?;
            if let Some(second) = second {
                let again = self.carry_out(&path, second, handler(Arc::clone(&gateway), request.clone()));
                // Nobody waits for the answer of the second.
                tokio::spawn(again);
            }
            let answer = spawned(self.carry_out(&path, first, handler(gateway, request))).await?;
            self.send_back(&path, name).await?;
            answer
        })
        .await
    }

    /// Opens a stream.
    pub(crate) async fn open<G, Q, A>(
        &self,
        name: &'static str,
        endpoint: fn(&Endpoints) -> Option<Arc<G>>,
        inbound: MessageStream<Q>,
        handler: Handler<G, MessageStream<Q>, MessageStream<A>>,
    ) -> Result<MessageStream<A>, RpcError>
    where
        G: ?Sized + Send + Sync + 'static,
        Q: Send + 'static,
        A: Send + 'static,
    {
        self.within_deadline(name, async {
            let (path, gateway) = self.reach(name, endpoint).await?;
            let (delay, _) = self.send(&path, name, false).await?;
            let there = pipe::pipe(&self.shared, path.clone(), format!("{name} >>"), inbound);
            let answer = spawned(self.carry_out(&path, delay, handler(gateway, there))).await?;
            self.send_back(&path, name).await?;
            Ok(pipe::pipe(&self.shared, path.back(), format!("{name} <<"), answer?))
        })
        .await
    }

    async fn within_deadline<A>(
        &self,
        name: &str,
        call: impl Future<Output = Result<A, RpcError>>,
    ) -> Result<A, RpcError> {
        let limit = self.shared.call_timeout;
        let answer = timeout(limit, call).await;
        let answer =
            answer.unwrap_or_else(|_| Err(RpcError::deadline(format!("no answer within {limit:?}"))));
        answer.map_err(|error| error.at(format_args!("{name} at http://{}", self.host_port)))
    }

    /// Who serves at the address, and the gateway that was asked for.
    async fn reach<G: ?Sized>(
        &self,
        name: &str,
        endpoint: fn(&Endpoints) -> Option<Arc<G>>,
    ) -> Result<(Path, Arc<G>), RpcError> {
        if !self.shared.is_alive(&self.from) {
            return Err(RpcError::unreachable("this node has crashed"));
        }
        let Some((to, endpoints)) = self.shared.find(&self.host_port) else {
            return match self.shared.refusal(&self.from.node, &self.node, format!("{name} >").into()) {
                Some(after) => {
                    sleep(after).await;
                    Err(RpcError::unreachable("connection refused"))
                }
                None => std::future::pending().await,
            };
        };
        let gateway = endpoint(&endpoints)
            .ok_or_else(|| RpcError::unknown_target(format!("`{name}` is not served there")))?;
        Ok((Path { from: self.from.clone(), to }, gateway))
    }

    /// Sends the request: when it arrives, and where it arrives twice, when the second does.
    async fn send(
        &self,
        path: &Path,
        name: &str,
        may_duplicate: bool,
    ) -> Result<(Duration, Option<Duration>), RpcError> {
        match self.shared.call(path, format!("{name} >").into(), may_duplicate) {
            CallFate::Deliver(after) => Ok((after, None)),
            CallFate::Twice(first, second) => Ok((first, Some(second))),
            CallFate::Silence { .. } => std::future::pending().await,
            CallFate::Unreachable(after) => unreachable_after(after).await,
        }
    }

    /// Waits while the answer travels.
    async fn send_back(&self, path: &Path, name: &str) -> Result<(), RpcError> {
        match self.shared.call(&path.back(), format!("{name} <").into(), false) {
            CallFate::Deliver(after) | CallFate::Twice(after, _) => {
                sleep(after).await;
                Ok(())
            }
            CallFate::Silence { .. } => std::future::pending().await,
            CallFate::Unreachable(after) => unreachable_after(after).await,
        }
    }

    /// What happens at the receiver: the request arrives and is carried out, unless the receiver dies over it. It goes
    /// on when the caller has given up.
    fn carry_out<A>(
        &self,
        path: &Path,
        after: Duration,
        work: BoxFuture<'static, Result<A, RpcError>>,
    ) -> impl Future<Output = Result<A, RpcError>> + use<A> {
        let shared = Arc::clone(&self.shared);
        let receiver = path.to.clone();
        async move {
            sleep(after).await;
            tokio::select! {
                biased;
                () = shared.ended(&receiver) => Err(RpcError::unreachable("connection reset: the peer has crashed")),
                answer = work => answer,
            }
        }
    }
}

async fn unreachable_after<A>(after: Duration) -> Result<A, RpcError> {
    sleep(after).await;
    Err(RpcError::unreachable("connection reset: a message was lost"))
}

/// Runs work in a task of its own, so that it goes on without whoever waits for it.
async fn spawned<A: Send + 'static>(
    work: impl Future<Output = Result<A, RpcError>> + Send + 'static,
) -> Result<Result<A, RpcError>, RpcError> {
    let (done, outcome) = oneshot::channel();
    tokio::spawn(async move {
        // The caller may have given up.
        let _ = done.send(work.await);
    });
    outcome.await.map_err(|_| RpcError::unreachable("connection reset: the peer broke off the call"))
}
