//! The cluster around the controller: brokers that beat and answer, and an administrator. The clock is moved by hand, so
//! every run is the same.

use crate::controller::{KafkaController, Request};
use crate::store::Store;
use controller_events::classic::{
    BrokerId, ControllerEvent, ControllerEventManager, PartitionErrors, TopicPartition,
};
use controller_events::{LoopOptions, MockClock, Reply};
use heartbeat::{Effect, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices};
use runtime_core::{Clock as _, EpochMillis};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

type Played = Result<(), Box<dyn Error>>;

/// Who the controller is among the brokers.
const CONTROLLER: BrokerId = 100;

pub(crate) struct Cluster {
    clock: MockClock,
    store: Store,
    manager: ControllerEventManager<KafkaController>,
    requests: Receiver<Request>,
    /// Asks each registered broker every ten seconds; 50 s of silence end its registration.
    heartbeats: HeartbeatManagerSender<BrokerId, u64>,
    dead: BTreeSet<BrokerId>,
}

impl Cluster {
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        let (clock, store) = (MockClock::new(), Store::default());
        let (send, requests) = channel();
        let controller = KafkaController::new(CONTROLLER, store.clone(), send);
        let options = LoopOptions::mocked(&clock);
        let mut manager = ControllerEventManager::with_options(CONTROLLER, controller, options);
        manager.start()?;
        let services = HeartbeatServices::new(HeartbeatOptions::default())?;
        let heartbeats = services.create_heartbeat_manager_sender("broker");
        Ok(Self { clock, store, manager, requests, heartbeats, dead: BTreeSet::new() })
    }

    /// Puts an event, waits for its end, and lets the brokers answer what it asked of them.
    pub(crate) fn put(&mut self, event: ControllerEvent) -> Played {
        self.manager.put(event)?.ticket().wait_finished()?;
        self.let_brokers_answer()
    }

    fn let_brokers_answer(&mut self) -> Played {
        while let Ok(request) = self.requests.try_recv() {
            let fine = |partitions: Vec<TopicPartition>| -> PartitionErrors {
                partitions.into_iter().map(|partition| (partition, Ok(()))).collect()
            };
            let (broker, answer) = match request {
                Request::LeaderAndIsr { broker, partitions } => {
                    let errors = fine(partitions);
                    (broker, ControllerEvent::LeaderAndIsrResponseReceived { broker_id: broker, errors })
                }
                Request::UpdateMetadata { broker } => (
                    broker,
                    ControllerEvent::UpdateMetadataResponseReceived { broker_id: broker, error: None },
                ),
                Request::DeleteReplicas { broker, partitions } => (
                    broker,
                    ControllerEvent::TopicDeletionStopReplicaResponseReceived {
                        replica_id: broker,
                        request_error: None,
                        partition_errors: fine(partitions),
                    },
                ),
            };
            if !self.dead.contains(&broker) {
                self.manager.put(answer)?.ticket().wait_finished()?;
            }
        }
        Ok(())
    }

    /// A broker comes, under a new epoch, and is watched.
    pub(crate) fn register(&mut self, broker: BrokerId) -> Played {
        let epoch = {
            let mut data = self.store.data();
            data.last_broker_epoch += 1;
            let epoch = data.last_broker_epoch;
            data.brokers.insert(broker, epoch);
            epoch
        };
        self.dead.remove(&broker);
        self.heartbeats.monitor_target(broker, epoch, self.clock.now());
        self.put(ControllerEvent::BrokerChange)
    }

    /// A broker stops beating. Nobody is told.
    pub(crate) fn kill(&mut self, broker: BrokerId) {
        self.dead.insert(broker);
    }

    /// Seconds pass; brokers that live answer their heartbeats, and of one that does not the registration ends.
    pub(crate) fn let_time_pass(&mut self, seconds: u32) -> Played {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            let now = self.clock.now();
            for effect in self.heartbeats.advance(now) {
                match effect {
                    Effect::Request { id, incarnation, .. } if !self.dead.contains(&id) => {
                        self.heartbeats.receive_heartbeat(&id, &incarnation, now, EpochMillis(0));
                    }
                    Effect::Verdict(verdict) => {
                        println!("   {verdict}");
                        self.store.data().brokers.remove(&verdict.id);
                        self.heartbeats.unmonitor_target(&verdict.id);
                        self.put(ControllerEvent::BrokerChange)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(crate) fn create(&mut self, topic: &str, replicas: &[&[BrokerId]]) -> Played {
        let partitions = replicas.iter().map(|replicas| replicas.to_vec()).collect();
        self.store.data().topics.insert(Arc::from(topic), partitions);
        self.put(ControllerEvent::TopicChange)
    }

    pub(crate) fn add_partition(&mut self, topic: &str, replicas: &[BrokerId]) -> Played {
        if let Some(partitions) = self.store.data().topics.get_mut(topic) {
            partitions.push(replicas.to_vec());
        }
        self.put(ControllerEvent::PartitionModifications { topic: Arc::from(topic) })
    }

    pub(crate) fn delete(&mut self, topic: &str) -> Played {
        self.store.data().topics_to_delete.insert(Arc::from(topic));
        self.put(ControllerEvent::TopicDeletion)
    }

    /// A broker has copied what it lacked: leaders take it among those in sync, and say so.
    pub(crate) fn catches_up(&mut self, broker: BrokerId) -> Played {
        {
            let mut data = self.store.data();
            let topics = data.topics.clone();
            let mut changed = Vec::new();
            for (partition, state) in &mut data.partitions {
                let replicas = topics.get(&partition.topic).zip(usize::try_from(partition.partition).ok());
                let has_replica =
                    replicas.and_then(|(all, n)| all.get(n)).is_some_and(|all| all.contains(&broker));
                if has_replica && state.leader.is_some() && !state.isr.contains(&broker) {
                    state.isr.push(broker);
                    changed.push(partition.clone());
                }
            }
            data.isr_changes.extend(changed);
        }
        self.put(ControllerEvent::IsrChangeNotification)
    }

    pub(crate) fn controlled_shutdown(&mut self, broker: BrokerId) -> Played {
        let broker_epoch = self.store.data().brokers.get(&broker).copied().unwrap_or_default();
        let (callback, left) = Reply::pair();
        self.put(ControllerEvent::ControlledShutdown { id: broker, broker_epoch, callback })?;
        println!("   broker {broker} hears that it still leads {:?}", left.wait()??);
        self.store.data().brokers.remove(&broker);
        self.heartbeats.unmonitor_target(&broker);
        self.put(ControllerEvent::BrokerChange)
    }

    pub(crate) fn reassign_through_the_store(
        &mut self,
        partition: TopicPartition,
        to: &[BrokerId],
    ) -> Played {
        self.store.data().reassign.insert(partition, to.to_vec());
        self.put(ControllerEvent::ZkPartitionReassignment)
    }

    pub(crate) fn log_dir_fails(&mut self, broker: BrokerId) -> Played {
        self.store.data().log_dir_failures.push(broker);
        self.put(ControllerEvent::LogDirEventNotification)
    }

    pub(crate) fn allow_unclean(&mut self, topic: Option<&str>) -> Played {
        match topic {
            Some(topic) => {
                self.store.data().unclean_topics.insert(Arc::from(topic));
                self.put(ControllerEvent::TopicUncleanLeaderElectionEnable { topic: Arc::from(topic) })
            }
            None => {
                self.store.data().unclean = true;
                self.put(ControllerEvent::UncleanLeaderElectionEnable)
            }
        }
    }

    /// The session of the controller expires: its node is gone, and nothing of the old session may run in the new one.
    pub(crate) fn expire(&mut self) -> Played {
        // A handler is at work: it has started, and waits for the store.
        let mut data = self.store.data();
        self.manager.put(ControllerEvent::TopicChange)?.await_processing()?;
        let (callback, answer) = Reply::pair();
        self.manager.put(ControllerEvent::ListPartitionReassignments { partitions: None, callback })?;
        data.controller = None;
        let expire = self.manager.clear_and_put(ControllerEvent::Expire)?;
        // What it waits for is let go before its end is waited for.
        drop(data);
        expire.await_processing()?;
        expire.ticket().wait_finished()?;
        let answer = answer.wait()?;
        println!(
            "   a request of the old session hears: {}",
            answer.err().map_or_else(String::new, |e| e.to_string())
        );
        Ok(())
    }

    pub(crate) fn elect_somebody_else(&mut self) -> Played {
        {
            let mut data = self.store.data();
            data.controller = Some(1);
            data.controller_epoch += 1;
        }
        self.put(ControllerEvent::ControllerChange)
    }

    pub(crate) fn nobody_is_elected(&mut self) -> Played {
        self.store.data().controller = None;
        Ok(())
    }

    /// Closes the manager and shows what it counted.
    pub(crate) fn stop(mut self) -> Played {
        let stats = self.manager.handle().stats();
        self.manager.close();
        println!(
            "\n{} events processed, {} preempted; all accounted for: {}",
            stats.done,
            stats.preempted,
            stats.is_conserved()
        );
        Ok(())
    }
}
