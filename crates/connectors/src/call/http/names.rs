//! Looking up the names of services: one look-up of a name at a time, however many calls wait for it.
//!
//! A step that begins has hundreds of calls under way and no connection yet, and the same after a service was away. The
//! system's look-up holds a thread until it ends: without this, each of those connections would take one, hundreds of
//! threads in a moment, and the name server would get as many questions. Nothing is remembered beyond that: a service
//! that has moved is found by the next connection.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What the system says; shared by all who wait.
type Found = Result<Arc<[SocketAddr]>, Arc<io::Error>>;
type LookUp = Shared<BoxFuture<'static, Found>>;

/// Asks for the addresses of a host.
type Ask = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// The look-ups that are under way.
pub(super) struct Names {
    ask: Box<Ask>,
    under_way: Mutex<HashMap<String, LookUp>>,
}

impl Names {
    /// By the system's means: its files, its name servers.
    pub(super) fn of_the_system() -> Self {
        Self::asking(|host| {
            async move { Ok(tokio::net::lookup_host((host.as_str(), 0)).await?.collect()) }.boxed()
        })
    }

    fn asking(
        ask: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self { ask: Box::new(ask), under_way: Mutex::default() }
    }

    /// The look-up of this host that is under way, or a new one.
    fn look_up(&self, host: &str) -> LookUp {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended are of no use to anybody who comes now.
        under_way.retain(|_, look_up| look_up.peek().is_none());
        if let Some(look_up) = under_way.get(host) {
            return look_up.clone();
        }
        let found = (self.ask)(host.to_owned()).map(|found| found.map(Arc::from).map_err(Arc::new));
        let look_up = found.boxed().shared();
        under_way.insert(host.to_owned(), look_up.clone());
        look_up
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let look_up = self.look_up(name.as_str());
        Box::pin(async move {
            let found: Vec<SocketAddr> = look_up.await?.to_vec();
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::channel::oneshot;

    use super::*;

    type Answers = Arc<Mutex<Vec<oneshot::Sender<io::Result<Vec<SocketAddr>>>>>>;

    /// Names whose look-ups end when the test says so, and how many there were.
    fn held() -> (Names, Arc<AtomicUsize>, Answers) {
        let (count, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, holding) = (count.clone(), held.clone());
        let names = Names::asking(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let (answer, answered) = oneshot::channel();
            holding.lock().unwrap().push(answer);
            async move { answered.await.unwrap_or_else(|gone| Err(io::Error::other(gone))) }.boxed()
        });
        (names, count, held)
    }

    async fn addresses(look_up: Resolving) -> Vec<SocketAddr> {
        look_up.await.unwrap().collect()
    }

    #[tokio::test]
    async fn calls_that_wait_for_one_name_share_its_look_up() {
        let (names, count, held) = held();
        let waiting: Vec<_> = (0..100).map(|_| names.resolve("lookup".parse().unwrap())).collect();
        let other = names.resolve("other".parse().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 2, "one for each name");
        let address = SocketAddr::from(([10, 0, 0, 1], 0));
        for answer in held.lock().unwrap().drain(..) {
            answer.send(Ok(vec![address])).unwrap();
        }
        for look_up in waiting {
            assert_eq!(addresses(look_up).await, [address]);
        }
        assert_eq!(addresses(other).await, [address]);
    }

    #[tokio::test]
    async fn what_was_found_or_not_found_is_not_remembered() {
        let (names, count, held) = held();
        let first = names.resolve("lookup".parse().unwrap());
        held.lock().unwrap().remove(0).send(Err(io::Error::other("no such name"))).unwrap();
        assert!(first.await.err().unwrap().to_string().contains("no such name"));
        let second = names.resolve("lookup".parse().unwrap());
        let moved = SocketAddr::from(([10, 0, 0, 2], 0));
        held.lock().unwrap().remove(0).send(Ok(vec![moved])).unwrap();
        assert_eq!(addresses(second).await, [moved]);
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_takes_the_look_up_from_nobody() {
        let (names, count, held) = held();
        let gives_up = names.resolve("lookup".parse().unwrap());
        let waits = names.resolve("lookup".parse().unwrap());
        drop(gives_up);
        let address = SocketAddr::from(([10, 0, 0, 1], 0));
        held.lock().unwrap().remove(0).send(Ok(vec![address])).unwrap();
        assert_eq!(addresses(waits).await, [address]);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
