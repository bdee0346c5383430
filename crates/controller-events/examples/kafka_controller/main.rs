//! Kafka's controller, small: brokers, topics and partitions on the classic face.
//! `cargo run --example kafka_controller -p controller-events`
//!
//! The script: three brokers and two topics; leaders are elected; a broker is killed and found by its silence; the
//! administrator's requests; the controller's session expires, which is a barrier; a new session takes over. Each event is
//! printed with its state, and the leaders after it where they have changed.
//!
//! | part | what it is |
//! |---|---|
//! | `store` | what ZooKeeper is to Kafka: shared, with fenced writes |
//! | `controller` | the processor: which event does what |
//! | `partitions`, `topics`, `reassignment` | the controller's work on its own state |
//! | `cluster` | the brokers: they beat, and answer the controller's requests |

mod cluster;
mod controller;
mod partitions;
mod reassignment;
mod store;
mod topics;

use cluster::Cluster;
use controller_events::Reply;
use controller_events::classic::{
    ControllerEvent, ElectionTrigger, ElectionType, Reassignments, TopicPartition,
};
use std::collections::BTreeMap;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::start()?;
    let say = |what: &str| println!("\n== {what}");

    say("the controller starts and is elected");
    cluster.put(ControllerEvent::Startup)?;
    say("three brokers register");
    for broker in [1, 2, 3] {
        cluster.register(broker)?;
    }
    say("two topics are created");
    cluster.create("orders", &[&[1, 2, 3], &[2, 3, 1]])?;
    cluster.create("clicks", &[&[3, 1]])?;

    say("broker 2 is killed: its heartbeats stop");
    cluster.kill(2);
    cluster.let_time_pass(60)?;
    say("broker 2 comes back and catches up");
    cluster.register(2)?;
    cluster.catches_up(2)?;
    say("leaders go back to the preferred replicas");
    cluster.put(ControllerEvent::AutoPreferredReplicaLeaderElection)?;
    cluster.put(ControllerEvent::BrokerModifications { broker_id: 2 })?;

    say("broker 3 is to shut down in an orderly way");
    cluster.controlled_shutdown(3)?;
    cluster.register(3)?;
    cluster.catches_up(3)?;
    let (callback, elected) = Reply::pair();
    cluster.put(ControllerEvent::ReplicaLeaderElection {
        partitions: Some(vec![TopicPartition::new("clicks", 0)]),
        election: ElectionType::Preferred,
        trigger: ElectionTrigger::AdminClientTriggered,
        callback: Some(callback),
    })?;
    println!("   the administrator hears: {:?}", elected.wait()?);

    say("clicks moves from brokers 3 and 1 to 1 and 2");
    let to: Reassignments = BTreeMap::from([(TopicPartition::new("clicks", 0), Some(vec![1, 2]))]);
    let (callback, accepted) = Reply::pair();
    cluster.put(ControllerEvent::ApiPartitionReassignment { reassignments: to, callback })?;
    println!("   the administrator hears: {:?}", accepted.wait()?);
    let (callback, list) = Reply::pair();
    cluster.put(ControllerEvent::ListPartitionReassignments { partitions: None, callback })?;
    println!("   under way: {:?}", list.wait()?);
    cluster.catches_up(2)?;
    cluster.put(ControllerEvent::PartitionReassignmentIsrChange {
        partition: TopicPartition::new("clicks", 0),
    })?;
    say("and back, by the older way through the store");
    cluster.reassign_through_the_store(TopicPartition::new("clicks", 0), &[3, 1])?;
    cluster.catches_up(3)?;
    cluster.put(ControllerEvent::PartitionReassignmentIsrChange {
        partition: TopicPartition::new("clicks", 0),
    })?;

    say("a disk of broker 1 fails");
    cluster.log_dir_fails(1)?;
    cluster.catches_up(1)?;
    say("orders gets a third partition");
    cluster.add_partition("orders", &[3, 2, 1])?;

    say("clicks loses both brokers; unclean election is switched on for it, then for all");
    cluster.kill(1);
    cluster.let_time_pass(60)?;
    cluster.kill(3);
    cluster.let_time_pass(60)?;
    cluster.register(1)?;
    cluster.allow_unclean(Some("clicks"))?;
    cluster.allow_unclean(None)?;

    say("topic clicks is deleted");
    cluster.register(3)?;
    cluster.delete("clicks")?;

    say("the controller's session expires while requests wait: everything old is told, then it resigns");
    cluster.expire()?;
    say("in the new session somebody else is elected first, then goes away");
    cluster.elect_somebody_else()?;
    cluster.put(ControllerEvent::RegisterBrokerAndReelect)?;
    cluster.nobody_is_elected()?;
    cluster.put(ControllerEvent::Reelect)?;
    cluster.stop()
}
