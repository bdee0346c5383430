//! The processor: which event does what.
//!
//! Everything here runs on the manager's one thread, so the state is plain. Events say what to look at, not what is
//! there: the handler reads the store. Whoever acts checks first that it is the controller, and every write is fenced.

use crate::partitions::Context;
use crate::store::{ControllerMoved, LeaderAndIsr, Store};
use controller_events::classic::{
    BrokerId, ControllerError, ControllerEvent, ControllerEventProcessor, ControllerState, ElectionTrigger,
    ElectionType, OngoingReassignments, PartitionErrors, Reassignments, TopicPartition,
};
use controller_events::{Event as _, EventState as _, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What the controller asks of a broker.
pub(crate) enum Request {
    LeaderAndIsr { broker: BrokerId, partitions: Vec<TopicPartition> },
    UpdateMetadata { broker: BrokerId },
    DeleteReplicas { broker: BrokerId, partitions: Vec<TopicPartition> },
}

pub(crate) struct KafkaController {
    id: BrokerId,
    store: Store,
    requests: Sender<Request>,
    /// The epoch of its election, while it is the controller.
    active: Option<u64>,
    context: Context,
    shown: String,
}

type Done = Result<(), ControllerMoved>;

impl ControllerEventProcessor for KafkaController {
    type Event = ControllerEvent;

    fn process(&mut self, event: ControllerEvent) {
        let (name, state) = (event.name(), event.state());
        if self.handle(event).is_err() {
            println!("   another controller has been elected: resigns");
            self.resign();
        }
        self.show(name, state);
    }
}

impl KafkaController {
    pub(crate) fn new(id: BrokerId, store: Store, requests: Sender<Request>) -> Self {
        Self { id, store, requests, active: None, context: Context::default(), shown: String::new() }
    }

    fn handle(&mut self, event: ControllerEvent) -> Done {
        use ControllerEvent as E;
        match event {
            E::Startup | E::Reelect => self.elect(),
            E::RegisterBrokerAndReelect => self.elect(),
            E::ControllerChange => {
                if self.store.data().controller != Some(self.id) {
                    self.resign();
                }
                Ok(())
            }
            E::Expire => {
                self.resign();
                Ok(())
            }
            // Swallowed by the manager.
            E::ShutdownEventThread => Ok(()),
            // Everything else is for the controller.
            event if self.active.is_none() => {
                event.answer_not_controller();
                Ok(())
            }
            E::AutoPreferredReplicaLeaderElection => {
                let all = self.context.all_partitions();
                self.elect_each(&all, ElectionType::Preferred, ElectionTrigger::AutoTriggered).map(drop)
            }
            E::UncleanLeaderElectionEnable => {
                self.context.unclean = self.store.data().unclean;
                self.elect_where_needed()
            }
            E::TopicUncleanLeaderElectionEnable { topic } => {
                self.context.unclean_topics.insert(topic);
                self.elect_where_needed()
            }
            E::ControlledShutdown { id, broker_epoch, callback } => {
                self.controlled_shutdown(id, broker_epoch, callback)
            }
            E::LeaderAndIsrResponseReceived { broker_id, errors } => {
                self.replicas_answered(broker_id, &errors)
            }
            E::UpdateMetadataResponseReceived { broker_id, error } => {
                if let Some(error) = error {
                    println!("   broker {broker_id} did not take the metadata: {error}");
                }
                Ok(())
            }
            E::TopicDeletionStopReplicaResponseReceived { replica_id, request_error, partition_errors } => {
                if let Some(error) = request_error {
                    println!("   broker {replica_id} did not delete: {error}");
                    return Ok(());
                }
                let gone = self.context.replicas_deleted(replica_id, &partition_errors);
                self.forget_topics(gone)
            }
            E::BrokerChange => self.broker_change(),
            E::BrokerModifications { broker_id } => {
                let _ = self.requests.send(Request::UpdateMetadata { broker: broker_id });
                Ok(())
            }
            E::TopicChange | E::PartitionModifications { .. } => {
                self.context.topics = self.store.data().topics.clone();
                self.elect_where_needed()
            }
            E::LogDirEventNotification => {
                let failed = std::mem::take(&mut self.store.data().log_dir_failures);
                for broker in failed {
                    let partitions = self.context.all_partitions().into_iter();
                    let errors = partitions
                        .filter(|p| self.context.replicas(p).contains(&broker))
                        .map(|p| (p, Err(ControllerError::EligibleLeadersNotAvailable)));
                    let errors = errors.collect();
                    self.replicas_answered(broker, &errors)?;
                }
                Ok(())
            }
            E::TopicDeletion => {
                let topics = self.store.data().topics_to_delete.clone();
                for topic in &topics {
                    for (broker, partitions) in self.context.begin_deletion(topic) {
                        let _ = self.requests.send(Request::DeleteReplicas { broker, partitions });
                    }
                }
                Ok(())
            }
            E::ZkPartitionReassignment => {
                let wanted = std::mem::take(&mut self.store.data().reassign);
                self.reassign(wanted.into_iter().map(|(p, to)| (p, Some(to))).collect()).map(drop)
            }
            E::ApiPartitionReassignment { reassignments, callback } => {
                callback.send(Ok(self.reassign(reassignments)?));
                Ok(())
            }
            E::PartitionReassignmentIsrChange { partition } => {
                self.read_isr(&partition);
                self.finish_reassignment(&partition)
            }
            E::IsrChangeNotification => {
                let changed = std::mem::take(&mut self.store.data().isr_changes);
                changed.iter().for_each(|partition| self.read_isr(partition));
                self.elect_where_needed()
            }
            E::ReplicaLeaderElection { partitions, election, trigger, callback } => {
                let partitions = partitions.unwrap_or_else(|| self.context.all_partitions());
                let results = self.elect_each(&partitions, election, trigger)?;
                if let Some(callback) = callback {
                    callback.send(results);
                }
                Ok(())
            }
            E::ListPartitionReassignments { partitions, callback } => {
                callback.send(Ok(self.under_way(partitions.as_deref())));
                Ok(())
            }
        }
    }

    fn elect(&mut self) -> Done {
        let (epoch, context) = {
            let mut data = self.store.data();
            match data.controller {
                Some(other) if other != self.id => {
                    println!("   {other} is the controller");
                    return Ok(());
                }
                // A second election of this one converges.
                _ => {}
            }
            data.controller = Some(self.id);
            data.controller_epoch += 1;
            (data.controller_epoch, Context::load(&data))
        };
        println!("   {} is the controller, epoch {epoch}", self.id);
        (self.active, self.context) = (Some(epoch), context);
        self.elect_where_needed()
    }

    /// Forgets everything: what comes later is read anew.
    fn resign(&mut self) {
        if self.active.take().is_some() {
            self.context = Context::default();
        }
    }

    fn broker_change(&mut self) -> Done {
        let live = self.store.data().brokers.clone();
        let back = |broker: &BrokerId| {
            live.contains_key(broker) && self.context.live.get(broker) != live.get(broker)
        };
        self.context.offline_replicas.retain(|(_, broker)| !back(broker));
        self.context.shutting_down.retain(|broker| live.contains_key(broker) && !back(broker));
        self.context.live = live;
        self.elect_where_needed()
    }

    fn controlled_shutdown(
        &mut self,
        id: BrokerId,
        broker_epoch: u64,
        callback: Reply<Result<Vec<TopicPartition>, ControllerError>>,
    ) -> Done {
        // An earlier incarnation of a broker that has come back must not shut the new one down.
        if self.context.live.get(&id) != Some(&broker_epoch) {
            callback.send(Err(ControllerError::StaleBrokerEpoch));
            return Ok(());
        }
        self.context.shutting_down.insert(id);
        self.elect_where_needed()?;
        let led = self.context.partitions.iter().filter(|(_, state)| state.leader == Some(id));
        callback.send(Ok(led.map(|(partition, _)| partition.clone()).collect()));
        Ok(())
    }

    fn replicas_answered(&mut self, broker: BrokerId, errors: &PartitionErrors) -> Done {
        let failed = errors.iter().filter(|(_, result)| result.is_err());
        self.context.offline_replicas.extend(failed.map(|(partition, _)| (partition.clone(), broker)));
        self.elect_where_needed()
    }

    fn elect_where_needed(&mut self) -> Done {
        let elections = self.context.elections();
        self.publish(elections)
    }

    fn elect_each(
        &mut self,
        partitions: &[TopicPartition],
        election: ElectionType,
        trigger: ElectionTrigger,
    ) -> Result<PartitionErrors, ControllerMoved> {
        let mut results = PartitionErrors::new();
        let mut elected = BTreeMap::new();
        for partition in partitions {
            let result = self.context.elect_on_request(partition, election);
            results.insert(partition.clone(), result.as_ref().map(|_| ()).map_err(|error| *error));
            elected.extend(result.ok().map(|state| (partition.clone(), state)));
        }
        println!("   {trigger:?}: {} of {} partitions elect", elected.len(), partitions.len());
        self.publish(elected)?;
        Ok(results)
    }

    /// Writes new states to the store, remembers them and tells the brokers.
    fn publish(&mut self, states: BTreeMap<TopicPartition, LeaderAndIsr>) -> Done {
        if states.is_empty() {
            return Ok(());
        }
        let Some(epoch) = self.active else { return Ok(()) };
        let mut by_broker: BTreeMap<BrokerId, Vec<TopicPartition>> = BTreeMap::new();
        for partition in states.keys() {
            for broker in
                self.context.replicas(partition).iter().filter(|b| self.context.live.contains_key(*b))
            {
                by_broker.entry(*broker).or_default().push(partition.clone());
            }
        }
        self.store.write(epoch, |data| data.partitions.extend(states.clone()))?;
        self.context.partitions.extend(states);
        for (broker, partitions) in by_broker {
            // Who plays the brokers is gone only when the program ends.
            let _ = self.requests.send(Request::LeaderAndIsr { broker, partitions });
        }
        Ok(())
    }

    fn reassign(&mut self, wanted: Reassignments) -> Result<PartitionErrors, ControllerMoved> {
        let mut results = PartitionErrors::new();
        for (partition, to) in wanted {
            let result = self.context.begin_reassignment(&partition, to.as_deref());
            self.write_assignment(&partition)?;
            results.insert(partition.clone(), result);
            self.finish_reassignment(&partition)?;
        }
        Ok(results)
    }

    fn finish_reassignment(&mut self, partition: &TopicPartition) -> Done {
        if self.context.try_to_finish_reassignment(partition) {
            self.write_assignment(partition)?;
            println!("   {partition} has moved to {:?}", self.context.replicas(partition));
            if let Some(state) = self.context.partitions.get(partition).cloned() {
                self.publish(BTreeMap::from([(partition.clone(), state)]))?;
            }
        }
        self.elect_where_needed()
    }

    fn write_assignment(&self, partition: &TopicPartition) -> Done {
        let Some(epoch) = self.active else { return Ok(()) };
        let assignment = self.context.topics.get(&partition.topic).cloned();
        self.store.write(epoch, |data| {
            if let Some(assignment) = assignment {
                data.topics.insert(Arc::clone(&partition.topic), assignment);
            }
        })
    }

    fn forget_topics(&self, gone: Vec<Arc<str>>) -> Done {
        let Some(epoch) = self.active else { return Ok(()) };
        self.store.write(epoch, |data| {
            for topic in gone {
                println!("   {topic} is gone");
                data.topics.remove(&topic);
                data.topics_to_delete.remove(&topic);
                data.partitions.retain(|partition, _| partition.topic != topic);
            }
        })
    }

    /// Brokers change who is in sync by themselves.
    fn read_isr(&mut self, partition: &TopicPartition) {
        if let Some(state) = self.store.data().partitions.get(partition) {
            self.context.partitions.insert(partition.clone(), state.clone());
        }
    }

    fn under_way(&self, partitions: Option<&[TopicPartition]>) -> OngoingReassignments {
        let wanted = |partition: &TopicPartition| partitions.is_none_or(|wanted| wanted.contains(partition));
        let moving = self.context.reassigning.iter().filter(|(partition, _)| wanted(partition));
        moving.map(|(p, to)| (p.clone(), (self.context.replicas(p).to_vec(), to.clone()))).collect()
    }

    fn show(&mut self, name: &str, state: ControllerState) {
        println!("{name} ({}, {})", state.name(), state.value());
        let leaders = match self.active {
            Some(_) => self.context.leaders(),
            None => "not the controller".to_owned(),
        };
        if leaders != self.shown && !leaders.is_empty() {
            println!("   {leaders}");
            self.shown = leaders;
        }
    }
}
