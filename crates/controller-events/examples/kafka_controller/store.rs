//! What all nodes share and only the elected controller may write: its writes carry its epoch, so that one that has been
//! replaced without knowing it is refused.

use controller_events::classic::{BrokerId, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Leader and replicas in sync of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeaderAndIsr {
    pub(crate) leader: Option<BrokerId>,
    pub(crate) isr: Vec<BrokerId>,
    pub(crate) leader_epoch: u32,
}

/// The writer is no longer the controller.
#[derive(Debug)]
pub(crate) struct ControllerMoved;

#[derive(Default, Debug)]
pub(crate) struct Data {
    /// Registered brokers, with the epoch of each registration.
    pub(crate) brokers: BTreeMap<BrokerId, u64>,
    /// Replicas of each partition, by topic.
    pub(crate) topics: BTreeMap<Arc<str>, Vec<Vec<BrokerId>>>,
    pub(crate) partitions: BTreeMap<TopicPartition, LeaderAndIsr>,
    pub(crate) controller: Option<BrokerId>,
    pub(crate) controller_epoch: u64,
    pub(crate) last_broker_epoch: u64,
    pub(crate) topics_to_delete: BTreeSet<Arc<str>>,
    pub(crate) reassign: BTreeMap<TopicPartition, Vec<BrokerId>>,
    pub(crate) isr_changes: Vec<TopicPartition>,
    pub(crate) log_dir_failures: Vec<BrokerId>,
    pub(crate) unclean: bool,
    pub(crate) unclean_topics: BTreeSet<Arc<str>>,
}

#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Data>>);

impl Store {
    /// Anybody reads, and brokers and administrators write what is theirs.
    pub(crate) fn data(&self) -> MutexGuard<'_, Data> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What only the controller of this epoch may write.
    pub(crate) fn write<T>(
        &self,
        epoch: u64,
        write: impl FnOnce(&mut Data) -> T,
    ) -> Result<T, ControllerMoved> {
        let mut data = self.data();
        if data.controller_epoch == epoch && data.controller.is_some() {
            Ok(write(&mut data))
        } else {
            Err(ControllerMoved)
        }
    }
}
