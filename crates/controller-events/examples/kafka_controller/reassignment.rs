//! Partitions that move: first the new replicas are added, and when all of them are in sync the old ones are dropped.

use crate::partitions::Context;
use controller_events::classic::{BrokerId, ControllerError, TopicPartition};

impl Context {
    /// Begins a move, or with `None` ends one where it is.
    pub(crate) fn begin_reassignment(
        &mut self,
        partition: &TopicPartition,
        to: Option<&[BrokerId]>,
    ) -> Result<(), ControllerError> {
        if !self.partitions.contains_key(partition) || self.deleting.contains_key(&partition.topic) {
            return Err(ControllerError::UnknownTopicOrPartition);
        }
        let Some(to) = to else {
            self.reassigning.remove(partition);
            return Ok(());
        };
        if to.is_empty() || to.iter().any(|broker| !self.live.contains_key(broker)) {
            return Err(ControllerError::InvalidReplicaAssignment);
        }
        let mut replicas = self.replicas(partition).to_vec();
        let added: Vec<_> = to.iter().copied().filter(|broker| !replicas.contains(broker)).collect();
        replicas.extend(added);
        self.set_replicas(partition, replicas);
        self.reassigning.insert(partition.clone(), to.to_vec());
        Ok(())
    }

    /// Ends a move if its new replicas are in sync. Returns whether it did.
    pub(crate) fn try_to_finish_reassignment(&mut self, partition: &TopicPartition) -> bool {
        let Some(to) = self.reassigning.get(partition) else { return false };
        let Some(state) = self.partitions.get(partition) else { return false };
        if to.iter().any(|broker| !state.isr.contains(broker)) {
            return false;
        }
        let to = to.clone();
        if let Some(state) = self.partitions.get_mut(partition) {
            state.isr.retain(|broker| to.contains(broker));
        }
        self.set_replicas(partition, to);
        self.reassigning.remove(partition);
        true
    }

    fn set_replicas(&mut self, partition: &TopicPartition, replicas: Vec<BrokerId>) {
        let number = usize::try_from(partition.partition).ok();
        let of_topic = self.topics.get_mut(&partition.topic);
        if let Some(place) = of_topic.zip(number).and_then(|(all, n)| all.get_mut(n)) {
            *place = replicas;
        }
    }
}
