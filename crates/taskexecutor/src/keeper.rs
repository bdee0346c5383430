//! Keeping a link up: register, open the stream, hand on what comes, and begin anew when it ends.
//!
//! One keeper is one task on the I/O runtime. It decides nothing: what happens to the link goes to the loop as events,
//! under the number of the link's life, and the loop ends a keeper by letting go of its [`KeeperHandle`].

mod job_master;
mod resource_manager;

use std::time::Duration;

use controller_events::Handle;
use futures::StreamExt;
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::MessageStream;
use wire::registration::{Registered, Rejected};

use crate::event::TeEvent;

pub(crate) use job_master::JobMasterPeer;
pub(crate) use resource_manager::ResourceManagerPeer;

/// A peer that takes registrations and drops their streams is not asked in a tight loop.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a link that is let go of waits for the peer to have heard the good-bye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Who is registered at.
pub(crate) trait Peer: Send + Sync + 'static {
    /// What it says on the stream.
    type Says: Send;

    /// Tries until it is registered or rejected.
    fn register(&mut self) -> impl Future<Output = Result<Registered, Rejected>> + Send;

    /// Opens the stream of a registration. Yields what comes in and the event that tells of the link.
    fn open(&self, registered: Registered)
    -> impl Future<Output = Result<Opened<Self::Says>, String>> + Send;

    fn says(&self, message: Self::Says) -> TeEvent;

    fn lost(&self, why: String) -> TeEvent;

    fn rejected(&self, reason: String) -> TeEvent;

    fn events(&self) -> &Handle<TeEvent>;
}

/// A stream that has been opened.
pub(crate) struct Opened<S> {
    pub(crate) incoming: MessageStream<S>,
    pub(crate) connected: TeEvent,
}

/// Holds a link. Dropping it ends the keeper; a stream that stands is given a moment to end in good order.
pub(crate) struct KeeperHandle {
    task: Option<JoinHandle<()>>,
    // Its drop is the sign to leave.
    _hold: watch::Sender<()>,
}

impl KeeperHandle {
    /// Begins to keep a link up, once the link `after`, to the same peer, has ended: its good-bye must not be taken
    /// for this one's.
    pub(crate) fn start(runtime: &runtime::Handle, peer: impl Peer, after: Option<JoinHandle<()>>) -> Self {
        let (hold, held) = watch::channel(());
        let task = runtime.spawn(async move {
            if let Some(after) = after {
                // An aborted task has ended as well.
                let _ = after.await;
            }
            keep(peer, held).await;
        });
        Self { task: Some(task), _hold: hold }
    }

    /// Lets go of the link. Yields its task, to be waited for.
    pub(crate) fn leave(mut self) -> Option<JoinHandle<()>> {
        self.task.take()
    }
}

/// Resolves when nobody holds the link any more.
async fn let_go(held: &mut watch::Receiver<()>) {
    while held.changed().await.is_ok() {}
}

async fn keep<P: Peer>(mut peer: P, mut held: watch::Receiver<()>) {
    loop {
        let opened = tokio::select! {
            biased;
            () = let_go(&mut held) => return,
            registered = peer.register() => match registered {
                Ok(registered) => registered,
                Err(rejected) => {
                    tell(&peer, peer.rejected(rejected.reason));
                    return;
                }
            },
        };
        let opened = tokio::select! {
            biased;
            () = let_go(&mut held) => return,
            opened = peer.open(opened) => opened,
        };
        let why = match opened {
            Ok(Opened { mut incoming, connected }) => {
                tell(&peer, connected);
                tokio::select! {
                    biased;
                    why = hand_on(&peer, &mut incoming) => why,
                    () = let_go(&mut held) => {
                        let ended = async { while incoming.next().await.is_some_and(|said| said.is_ok()) {} };
                        // A peer that does not end the stream in time is not waited for.
                        let _ = tokio::time::timeout(GOODBYE, ended).await;
                        return;
                    }
                }
            }
            Err(why) => why,
        };
        tell(&peer, peer.lost(why));
        tokio::select! {
            biased;
            () = let_go(&mut held) => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Hands on what a peer says until the stream ends; yields why it did.
async fn hand_on<P: Peer>(peer: &P, incoming: &mut MessageStream<P::Says>) -> String {
    loop {
        match incoming.next().await {
            Some(Ok(message)) => tell(peer, peer.says(message)),
            Some(Err(error)) => return error.to_string(),
            None => return "the peer has closed the stream".into(),
        }
    }
}

/// A loop that has ended holds no links: the keeper is about to be let go of.
fn tell<P: Peer>(peer: &P, event: TeEvent) {
    if peer.events().put(event).is_err() {
        tracing::debug!("the loop of the task executor has ended before one of its links");
    }
}
