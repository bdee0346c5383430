//! Who leads: elections, and brokers that come and go. Pure decisions over the controller's own state.

use crate::store::{Data, LeaderAndIsr};
use controller_events::classic::{BrokerId, ControllerError, ElectionType, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a controller remembers between two events; forgotten when it resigns.
#[derive(Default)]
pub(crate) struct Context {
    pub(crate) live: BTreeMap<BrokerId, u64>,
    pub(crate) shutting_down: BTreeSet<BrokerId>,
    pub(crate) topics: BTreeMap<Arc<str>, Vec<Vec<BrokerId>>>,
    pub(crate) partitions: BTreeMap<TopicPartition, LeaderAndIsr>,
    pub(crate) offline_replicas: BTreeSet<(TopicPartition, BrokerId)>,
    pub(crate) reassigning: BTreeMap<TopicPartition, Vec<BrokerId>>,
    /// Replicas that have yet to say that they are deleted, by topic.
    pub(crate) deleting: BTreeMap<Arc<str>, BTreeSet<(TopicPartition, BrokerId)>>,
    pub(crate) unclean: bool,
    pub(crate) unclean_topics: BTreeSet<Arc<str>>,
}

impl Context {
    /// Everything as the store has it.
    pub(crate) fn load(data: &Data) -> Self {
        Self {
            live: data.brokers.clone(),
            topics: data.topics.clone(),
            partitions: data.partitions.clone(),
            unclean: data.unclean,
            unclean_topics: data.unclean_topics.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn replicas(&self, partition: &TopicPartition) -> &[BrokerId] {
        let of_topic = self.topics.get(&partition.topic);
        let number = usize::try_from(partition.partition).ok();
        of_topic.zip(number).and_then(|(all, n)| all.get(n)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all_partitions(&self) -> Vec<TopicPartition> {
        let of_topic = |(topic, partitions): (&Arc<str>, &Vec<Vec<BrokerId>>)| {
            let topic = Arc::clone(topic);
            (0..)
                .zip(partitions)
                .map(move |(n, _)| TopicPartition::new(Arc::clone(&topic), n))
                .collect::<Vec<_>>()
        };
        self.topics.iter().flat_map(of_topic).collect()
    }

    fn can_lead(&self, partition: &TopicPartition, broker: BrokerId) -> bool {
        self.live.contains_key(&broker)
            && !self.shutting_down.contains(&broker)
            && !self.offline_replicas.contains(&(partition.clone(), broker))
    }

    /// The partitions that should have another leader or a smaller set in sync, with what they should have.
    pub(crate) fn elections(&self) -> BTreeMap<TopicPartition, LeaderAndIsr> {
        let wanted = |partition: TopicPartition| {
            let now = self.partitions.get(&partition);
            let next = self.elect(&partition, now);
            (now != Some(&next)).then_some((partition, next))
        };
        self.all_partitions().into_iter().filter_map(wanted).collect()
    }

    /// Keeps a leader that can lead; else the first replica in sync that can; else any, if that is allowed.
    fn elect(&self, partition: &TopicPartition, now: Option<&LeaderAndIsr>) -> LeaderAndIsr {
        let replicas = self.replicas(partition);
        let can = |broker: &BrokerId| self.can_lead(partition, *broker);
        let Some(now) = now else {
            let isr: Vec<_> = replicas.iter().copied().filter(can).collect();
            return LeaderAndIsr { leader: isr.first().copied(), isr, leader_epoch: 0 };
        };
        let isr: Vec<_> = now.isr.iter().copied().filter(can).collect();
        let unclean = self.unclean || self.unclean_topics.contains(&partition.topic);
        let leader = now.leader.filter(can).filter(|leader| replicas.contains(leader));
        let leader = leader.or_else(|| replicas.iter().copied().find(|replica| isr.contains(replica)));
        let any = || replicas.iter().copied().find(|replica| unclean && can(replica));
        match leader {
            Some(leader) => now.led_by(leader, isr),
            // Records are lost: the new leader is the only one in sync.
            None => match any() {
                Some(leader) => now.led_by(leader, vec![leader]),
                // The last ones in sync are remembered: one of them has to come back.
                None if now.leader.is_none() => now.clone(),
                None => LeaderAndIsr { leader: None, leader_epoch: now.leader_epoch + 1, ..now.clone() },
            },
        }
    }

    /// An election that was asked for.
    pub(crate) fn elect_on_request(
        &self,
        partition: &TopicPartition,
        election: ElectionType,
    ) -> Result<LeaderAndIsr, ControllerError> {
        let now = self.partitions.get(partition).ok_or(ControllerError::UnknownTopicOrPartition)?;
        let replicas = self.replicas(partition);
        match election {
            ElectionType::Preferred => {
                let preferred = *replicas.first().ok_or(ControllerError::InvalidReplicaAssignment)?;
                if now.leader == Some(preferred) {
                    return Err(ControllerError::ElectionNotNeeded);
                }
                if !self.can_lead(partition, preferred) || !now.isr.contains(&preferred) {
                    return Err(ControllerError::PreferredLeaderNotAvailable);
                }
                Ok(now.led_by(preferred, now.isr.clone()))
            }
            ElectionType::Unclean => {
                if now.leader.is_some() {
                    return Err(ControllerError::ElectionNotNeeded);
                }
                let any = replicas.iter().copied().find(|replica| self.can_lead(partition, *replica));
                let leader = any.ok_or(ControllerError::EligibleLeadersNotAvailable)?;
                Ok(now.led_by(leader, vec![leader]))
            }
        }
    }

    /// The leaders in a few words.
    pub(crate) fn leaders(&self) -> String {
        let each = self.partitions.iter().map(|(partition, state)| match state.leader {
            Some(leader) => format!("{partition}: {leader} of {:?}", state.isr),
            None => format!("{partition}: none, waits for one of {:?}", state.isr),
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl LeaderAndIsr {
    fn led_by(&self, leader: BrokerId, isr: Vec<BrokerId>) -> Self {
        if self.leader == Some(leader) && self.isr == isr {
            return self.clone();
        }
        Self { leader: Some(leader), isr, leader_epoch: self.leader_epoch + 1 }
    }
}
