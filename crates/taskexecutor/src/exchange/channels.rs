//! The channels that end on one task executor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime_core::{AttemptId, Epoch};
use tokio::sync::Notify;

use super::CHANNEL_BATCHES;
use super::channel::{Channel, ReadyList, Receiver, Sender};
use super::element::ChannelId;
use super::gate::InputGates;
use crate::task::InputGate;

/// How long a producer waits for its consumer to be deployed: tasks of one job are submitted at once, in no order.
pub(crate) const CONSUMER_WAIT: Duration = Duration::from_secs(10);

/// A producer is not let into a channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the channel {channel} was refused: {refusal}")]
pub struct ConnectError {
    /// Which channel.
    pub channel: Box<ChannelId>,
    /// Why.
    pub refusal: Refusal,
}

/// Why a producer is not let into a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such consumer was deployed here in time.
    #[error("the consumer was not deployed here within 10 s")]
    Unknown,
    /// The consumer's subtask runs, in a later life than the one meant.
    #[error("the consumer has been replaced by attempt {attempt} of term {term}")]
    Replaced {
        /// The later life's term.
        term: Epoch,
        /// Its attempt within the term.
        attempt: u32,
    },
    /// The consumer runs and expects another producer.
    #[error("the consumer does not expect this producer")]
    NotExpected,
    /// The channel has its producer already.
    #[error("it is already connected")]
    Connected,
}

type ByProducer = BTreeMap<(u32, AttemptId), Arc<Channel>>;

/// The registry: consumers register when they are deployed, producers connect by name, in either order.
#[derive(Default)]
pub struct Channels {
    consumers: Mutex<BTreeMap<AttemptId, ByProducer>>,
    changed: Notify,
}

impl Channels {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Opens the receiving ends of a consumer; they close and leave the registry when the gates are dropped.
    pub(crate) fn register(
        self: &Arc<Self>,
        consumer: AttemptId,
        gates: &[InputGate],
        wake: Arc<Notify>,
    ) -> InputGates {
        let ready = ReadyList::new(wake);
        let mut by_producer = ByProducer::new();
        let mut receivers = Vec::new();
        for gate in gates {
            for &producer in &gate.producers {
                let id = ChannelId { edge: gate.edge, producer, consumer };
                let channel = Channel::new(id, CHANNEL_BATCHES, receivers.len(), Arc::clone(&ready));
                receivers.push(Receiver::new(Arc::clone(&channel)));
                by_producer.insert((gate.edge, producer), channel);
            }
        }
        self.lock().insert(consumer, by_producer);
        self.changed.notify_waiters();
        InputGates::new(receivers, ready, Arc::clone(self), consumer)
    }

    pub(crate) fn unregister(&self, consumer: AttemptId) {
        self.lock().remove(&consumer);
    }

    /// The producing end of a channel; waits until the consumer has been deployed.
    ///
    /// # Errors
    ///
    /// The consumer did not come, was replaced, does not expect this producer, or has it already.
    pub(crate) async fn connect(
        &self,
        id: ChannelId,
        wake: Option<Arc<Notify>>,
    ) -> Result<Sender, ConnectError> {
        let found = async {
            loop {
                // Made before looking, so that no registration falls in between.
                let changed = self.changed.notified();
                if let Some(channel) = self.look(id)? {
                    return Ok(channel);
                }
                changed.await;
            }
        };
        let refused = |refusal| ConnectError { channel: Box::new(id), refusal };
        let found = tokio::time::timeout(CONSUMER_WAIT, found).await;
        let channel = found.unwrap_or(Err(Refusal::Unknown)).map_err(refused)?;
        channel.connect(wake).ok_or_else(|| refused(Refusal::Connected))
    }

    fn look(&self, id: ChannelId) -> Result<Option<Arc<Channel>>, Refusal> {
        let consumers = self.lock();
        if let Some(by_producer) = consumers.get(&id.consumer) {
            let channel = by_producer.get(&(id.edge, id.producer)).ok_or(Refusal::NotExpected)?;
            return Ok(Some(Arc::clone(channel)));
        }
        let same_subtask = |other: &&AttemptId| {
            let of = |attempt: &AttemptId| (attempt.job, attempt.vertex, attempt.subtask);
            let life = |attempt: &AttemptId| (attempt.term, attempt.attempt);
            of(other) == of(&id.consumer) && life(other) > life(&id.consumer)
        };
        match consumers.keys().find(same_subtask) {
            Some(&AttemptId { term, attempt, .. }) => Err(Refusal::Replaced { term, attempt }),
            None => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, ByProducer>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::{JobId, VertexId};

    fn attempt(vertex: u32, attempt: u32) -> AttemptId {
        AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(vertex), subtask: 0, attempt }
    }

    fn channel(producer: AttemptId, consumer: AttemptId) -> ChannelId {
        ChannelId { edge: 0, producer, consumer }
    }

    async fn refusal(channels: &Channels, id: ChannelId) -> Option<Refusal> {
        channels.connect(id, None).await.err().map(|error| error.refusal)
    }

    fn gate(producer: AttemptId) -> [InputGate; 1] {
        [InputGate { edge: 0, producers: vec![producer] }]
    }

    #[tokio::test(start_paused = true)]
    async fn a_producer_that_comes_first_waits_for_its_consumer() {
        let channels = Channels::new();
        let id = channel(attempt(0, 0), attempt(1, 0));
        let connecting = channels.connect(id, None);
        let registering = async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            channels.register(id.consumer, &gate(id.producer), Arc::default())
        };
        let (connected, _gates) = tokio::join!(connecting, registering);
        assert_eq!(connected.map(|sender| sender.id()), Ok(id));
    }

    #[tokio::test(start_paused = true)]
    async fn a_consumer_that_does_not_come_within_ten_seconds_is_unknown() {
        let channels = Channels::new();
        let id = channel(attempt(0, 0), attempt(1, 0));
        let start = tokio::time::Instant::now();
        let refused = refusal(&channels, id).await;
        assert_eq!(refused, Some(Refusal::Unknown));
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_producer_of_another_attempt_is_refused_at_once() {
        let channels = Channels::new();
        let _gates = channels.register(attempt(1, 1), &gate(attempt(0, 1)), Arc::default());
        let start = tokio::time::Instant::now();
        let old_consumer = channel(attempt(0, 0), attempt(1, 0));
        let refused = refusal(&channels, old_consumer).await;
        assert_eq!(refused, Some(Refusal::Replaced { term: Epoch(1), attempt: 1 }));
        let old_producer = channel(attempt(0, 0), attempt(1, 1));
        assert_eq!(refusal(&channels, old_producer).await, Some(Refusal::NotExpected));
        let right = channel(attempt(0, 1), attempt(1, 1));
        let _first = channels.connect(right, None).await.unwrap();
        assert_eq!(refusal(&channels, right).await, Some(Refusal::Connected));
        assert!(start.elapsed().is_zero());
    }
}
