//! The bounded queue of batches that is a channel's local half.
//!
//! Both ends are polled by a task's loop, which waits at one place for everything: each end brings the
//! [`Notify`] it wants to be woken by. The lock is taken once a batch, never once a record.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::element::{Batch, ChannelId};

/// Which of a consumer's channels have batches; each stands in it at most once.
#[derive(Debug)]
pub(crate) struct ReadyList {
    ready: Mutex<VecDeque<usize>>,
    wake: Arc<Notify>,
}

impl ReadyList {
    pub(crate) fn new(wake: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { ready: Mutex::new(VecDeque::new()), wake })
    }

    fn put(&self, index: usize) {
        lock(&self.ready).push_back(index);
        self.wake.notify_one();
    }

    /// The next channel that has something.
    pub(crate) fn take(&self) -> Option<usize> {
        lock(&self.ready).pop_front()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while a lock is held, and the state is valid between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a channel's producing side came to an end without saying so in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The peer's task is gone; it tells the job master itself why.
    Gone,
    /// The way to the peer broke.
    Broken(String),
}

/// What a receiver finds.
#[derive(Debug)]
pub(crate) enum Received {
    Batch(Batch),
    Nothing,
    Closed(Closed),
}

struct State {
    batches: VecDeque<Batch>,
    /// Stands in the ready list.
    listed: bool,
    connected: bool,
    closed: Option<Closed>,
    receiver_gone: bool,
    producer_wake: Option<Arc<Notify>>,
    /// Batches that the consumer has taken out so far.
    taken: u64,
    /// The consumer wants nothing but barriers and ends.
    paused: bool,
}

/// One channel.
pub(crate) struct Channel {
    id: ChannelId,
    capacity: usize,
    index: usize,
    ready: Arc<ReadyList>,
    state: Mutex<State>,
}

impl Channel {
    /// A channel that stands at `index` of its consumer's `ready` list.
    pub(crate) fn new(id: ChannelId, capacity: usize, index: usize, ready: Arc<ReadyList>) -> Arc<Self> {
        let state = State {
            batches: VecDeque::with_capacity(capacity),
            listed: false,
            connected: false,
            closed: None,
            receiver_gone: false,
            producer_wake: None,
            taken: 0,
            paused: false,
        };
        Arc::new(Self { id, capacity, index, ready, state: Mutex::new(state) })
    }

    /// The producing end, given out once. `wake` is told when there is room again.
    pub(crate) fn connect(self: &Arc<Self>, wake: Option<Arc<Notify>>) -> Option<Sender> {
        let taken = std::mem::replace(&mut lock(&self.state).connected, true);
        (!taken).then(|| self.sender(wake))
    }

    /// The producing end of a channel that nobody else can connect to.
    pub(crate) fn sender(self: &Arc<Self>, wake: Option<Arc<Notify>>) -> Sender {
        lock(&self.state).producer_wake = wake;
        Sender { channel: Arc::clone(self), finished: false }
    }

    fn announce(&self, state: &mut State) {
        if !std::mem::replace(&mut state.listed, true) {
            self.ready.put(self.index);
        }
    }

    fn close(&self, how: Closed) {
        let mut state = lock(&self.state);
        if state.closed.is_none() {
            state.closed = Some(how);
            self.announce(&mut state);
        }
    }
}

/// A batch was not taken; it is given back where it can still be sent.
#[derive(Debug)]
pub(crate) enum SendError {
    Full(Batch),
    Gone,
}

/// The producing end. Dropped without [`Sender::finish`] it closes the channel as [`Closed::Gone`].
pub(crate) struct Sender {
    channel: Arc<Channel>,
    finished: bool,
}

impl Sender {
    pub(crate) fn id(&self) -> ChannelId {
        self.channel.id
    }

    pub(crate) fn try_send(&self, batch: Batch) -> Result<(), SendError> {
        let mut state = lock(&self.channel.state);
        if state.receiver_gone {
            return Err(SendError::Gone);
        }
        if state.batches.len() >= self.channel.capacity {
            return Err(SendError::Full(batch));
        }
        state.batches.push_back(batch);
        self.channel.announce(&mut state);
        Ok(())
    }

    pub(crate) fn receiver_gone(&self) -> bool {
        lock(&self.channel.state).receiver_gone
    }

    /// How many batches the receiver has taken.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.channel.state).taken
    }

    /// Whether the receiver wants nothing but barriers and ends for now.
    pub(crate) fn is_paused(&self) -> bool {
        lock(&self.channel.state).paused
    }

    /// The last batch has been sent.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// The way to the producer broke.
    pub(crate) fn fail(&mut self, cause: String) {
        self.finished = true;
        self.channel.close(Closed::Broken(cause));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.finished {
            self.channel.close(Closed::Gone);
        }
    }
}

/// The consuming end. Dropping it discards what is in the channel and whatever still comes.
pub(crate) struct Receiver {
    channel: Arc<Channel>,
}

impl Receiver {
    pub(crate) fn new(channel: Arc<Channel>) -> Self {
        Self { channel }
    }

    pub(crate) fn id(&self) -> ChannelId {
        self.channel.id
    }

    /// Asks the producer to send nothing but barriers and ends, or to go on.
    pub(crate) fn pause(&self, paused: bool) {
        let mut state = lock(&self.channel.state);
        state.paused = paused;
        if let Some(wake) = &state.producer_wake {
            wake.notify_one();
        }
    }

    /// Takes one batch. To be called when the ready list names this channel, which puts itself there again as long as
    /// it has more.
    pub(crate) fn take(&self) -> Received {
        let mut state = lock(&self.channel.state);
        state.listed = false;
        let Some(batch) = state.batches.pop_front() else {
            return state.closed.clone().map_or(Received::Nothing, Received::Closed);
        };
        if !state.batches.is_empty() || state.closed.is_some() {
            self.channel.announce(&mut state);
        }
        state.taken += 1;
        if let Some(wake) = &state.producer_wake {
            wake.notify_one();
        }
        Received::Batch(batch)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = lock(&self.channel.state);
        state.receiver_gone = true;
        let discarded = std::mem::take(&mut state.batches);
        if let Some(wake) = &state.producer_wake {
            wake.notify_one();
        }
        drop(state);
        drop(discarded);
    }
}
