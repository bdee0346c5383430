//! Topics that are to be deleted: each replica is told, and when all have answered the topic is forgotten.

use crate::partitions::Context;
use controller_events::classic::{BrokerId, PartitionErrors, TopicPartition};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Context {
    /// Begins a deletion. Returns the replicas that must be told; a topic with a dead replica waits for it.
    pub(crate) fn begin_deletion(&mut self, topic: &Arc<str>) -> Vec<(BrokerId, Vec<TopicPartition>)> {
        let partitions = self.all_partitions().into_iter().filter(|p| p.topic == *topic);
        let replicas: BTreeSet<(TopicPartition, BrokerId)> = partitions
            .flat_map(|p| self.replicas(&p).iter().map(move |b| (p.clone(), *b)).collect::<Vec<_>>())
            .collect();
        let brokers: BTreeSet<BrokerId> = replicas.iter().map(|(_, broker)| *broker).collect();
        let on =
            |broker: BrokerId| replicas.iter().filter(move |(_, b)| *b == broker).map(|(p, _)| p.clone());
        let told = brokers.into_iter().map(|broker| (broker, on(broker).collect())).collect();
        self.deleting.insert(Arc::clone(topic), replicas);
        told
    }

    /// A broker has deleted replicas. Returns the topics of which nothing is left.
    pub(crate) fn replicas_deleted(&mut self, broker: BrokerId, results: &PartitionErrors) -> Vec<Arc<str>> {
        for (partition, result) in results {
            if result.is_ok()
                && let Some(left) = self.deleting.get_mut(&partition.topic)
            {
                left.remove(&(partition.clone(), broker));
            }
        }
        let gone: Vec<_> =
            self.deleting.iter().filter(|(_, left)| left.is_empty()).map(|(t, _)| Arc::clone(t)).collect();
        for topic in &gone {
            self.deleting.remove(topic);
            self.topics.remove(topic);
            self.partitions.retain(|partition, _| partition.topic != *topic);
        }
        gone
    }
}
