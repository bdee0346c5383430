//! The 25 events, with what each carries and what its caller hears when it does not run.

use super::state::ControllerState;
use super::state::ControllerState as S;
use crate::event::{Event, NotRun};
use crate::reply::Reply;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A broker's number.
pub type BrokerId = i32;

/// A partition of a topic.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
}

impl TopicPartition {
    /// This partition of that topic.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What the caller of an event hears instead of a result. Kafka: `Errors`, as far as the controller uses them here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ControllerError {
    /// This node is not the controller, or ceased to be it before the event ran.
    #[error("this is not the controller: ask the others who is")]
    NotController,
    /// The controller moved while a broker wanted to shut down in an orderly way.
    #[error("the controller has moved: ask the new one")]
    ControllerMoved,
    /// A broker that is not known, or an earlier incarnation of it.
    #[error("the broker is not known under this epoch")]
    StaleBrokerEpoch,
    /// The partition does not exist.
    #[error("no such topic or partition")]
    UnknownTopicOrPartition,
    /// The replicas are not brokers, or there are none.
    #[error("the replica assignment is invalid")]
    InvalidReplicaAssignment,
    /// No replica is eligible.
    #[error("no replica can become the leader")]
    EligibleLeadersNotAvailable,
    /// The preferred replica is not alive or not in sync.
    #[error("the preferred leader is not available")]
    PreferredLeaderNotAvailable,
    /// The partition is led as wished already.
    #[error("no election was needed")]
    ElectionNotNeeded,
}

/// Which leader an election is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElectionType {
    /// The first replica of the assignment.
    Preferred,
    /// Any live replica, in sync or not: may lose records.
    Unclean,
}

/// Who asked for an election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElectionTrigger {
    /// The controller itself, to balance leaders.
    AutoTriggered,
    /// An administrator through the store.
    ZkTriggered,
    /// An administrator's request.
    AdminClientTriggered,
}

/// What became of each partition of a request.
pub type PartitionErrors = BTreeMap<TopicPartition, Result<(), ControllerError>>;
/// The new replicas of each partition; `None` cancels what is under way.
pub type Reassignments = BTreeMap<TopicPartition, Option<Vec<BrokerId>>>;
/// The present and the new replicas of each partition that is being reassigned.
pub type OngoingReassignments = BTreeMap<TopicPartition, (Vec<BrokerId>, Vec<BrokerId>)>;

/// What the controller processes. Kafka: the events of `KafkaController` in 2.5 and 2.6, by their names.
///
/// Events carry identities, not what was true when they were put: the handler looks that up.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum ControllerEvent {
    Startup,
    ControllerChange,
    Reelect,
    RegisterBrokerAndReelect,
    Expire,
    ShutdownEventThread,
    AutoPreferredReplicaLeaderElection,
    UncleanLeaderElectionEnable,
    TopicUncleanLeaderElectionEnable {
        topic: Arc<str>,
    },
    ControlledShutdown {
        id: BrokerId,
        broker_epoch: u64,
        callback: Reply<Result<Vec<TopicPartition>, ControllerError>>,
    },
    LeaderAndIsrResponseReceived {
        broker_id: BrokerId,
        errors: PartitionErrors,
    },
    UpdateMetadataResponseReceived {
        broker_id: BrokerId,
        error: Option<ControllerError>,
    },
    TopicDeletionStopReplicaResponseReceived {
        replica_id: BrokerId,
        request_error: Option<ControllerError>,
        partition_errors: PartitionErrors,
    },
    BrokerChange,
    BrokerModifications {
        broker_id: BrokerId,
    },
    TopicChange,
    LogDirEventNotification,
    PartitionModifications {
        topic: Arc<str>,
    },
    TopicDeletion,
    ZkPartitionReassignment,
    ApiPartitionReassignment {
        reassignments: Reassignments,
        callback: Reply<Result<PartitionErrors, ControllerError>>,
    },
    PartitionReassignmentIsrChange {
        partition: TopicPartition,
    },
    IsrChangeNotification,
    ReplicaLeaderElection {
        /// `None` for all partitions.
        partitions: Option<Vec<TopicPartition>>,
        election: ElectionType,
        trigger: ElectionTrigger,
        /// `None` where nobody asks for the result.
        callback: Option<Reply<PartitionErrors>>,
    },
    ListPartitionReassignments {
        /// `None` for all partitions.
        partitions: Option<Vec<TopicPartition>>,
        callback: Reply<Result<OngoingReassignments, ControllerError>>,
    },
}

/// Name and state of every event, in Kafka's order.
pub const EVENTS: [(&str, ControllerState); 25] = [
    ("Startup", S::ControllerChange),
    ("ControllerChange", S::ControllerChange),
    ("Reelect", S::ControllerChange),
    ("RegisterBrokerAndReelect", S::ControllerChange),
    ("Expire", S::ControllerChange),
    ("ShutdownEventThread", S::ControllerShutdown),
    ("AutoPreferredReplicaLeaderElection", S::AutoLeaderBalance),
    ("UncleanLeaderElectionEnable", S::UncleanLeaderElectionEnable),
    ("TopicUncleanLeaderElectionEnable", S::TopicUncleanLeaderElectionEnable),
    ("ControlledShutdown", S::ControlledShutdown),
    ("LeaderAndIsrResponseReceived", S::LeaderAndIsrResponseReceived),
    ("UpdateMetadataResponseReceived", S::UpdateMetadataResponseReceived),
    ("TopicDeletionStopReplicaResponseReceived", S::TopicDeletion),
    ("BrokerChange", S::BrokerChange),
    ("BrokerModifications", S::BrokerChange),
    ("TopicChange", S::TopicChange),
    ("LogDirEventNotification", S::LogDirChange),
    ("PartitionModifications", S::TopicChange),
    ("TopicDeletion", S::TopicDeletion),
    ("ZkPartitionReassignment", S::AlterPartitionReassignment),
    ("ApiPartitionReassignment", S::AlterPartitionReassignment),
    ("PartitionReassignmentIsrChange", S::AlterPartitionReassignment),
    ("IsrChangeNotification", S::IsrChange),
    ("ReplicaLeaderElection", S::ManualLeaderBalance),
    ("ListPartitionReassignments", S::ListPartitionReassignment),
];

impl ControllerEvent {
    /// The event's place in [`EVENTS`].
    const fn place(&self) -> usize {
        match self {
            Self::Startup => 0,
            Self::ControllerChange => 1,
            Self::Reelect => 2,
            Self::RegisterBrokerAndReelect => 3,
            Self::Expire => 4,
            Self::ShutdownEventThread => 5,
            Self::AutoPreferredReplicaLeaderElection => 6,
            Self::UncleanLeaderElectionEnable => 7,
            Self::TopicUncleanLeaderElectionEnable { .. } => 8,
            Self::ControlledShutdown { .. } => 9,
            Self::LeaderAndIsrResponseReceived { .. } => 10,
            Self::UpdateMetadataResponseReceived { .. } => 11,
            Self::TopicDeletionStopReplicaResponseReceived { .. } => 12,
            Self::BrokerChange => 13,
            Self::BrokerModifications { .. } => 14,
            Self::TopicChange => 15,
            Self::LogDirEventNotification => 16,
            Self::PartitionModifications { .. } => 17,
            Self::TopicDeletion => 18,
            Self::ZkPartitionReassignment => 19,
            Self::ApiPartitionReassignment { .. } => 20,
            Self::PartitionReassignmentIsrChange { .. } => 21,
            Self::IsrChangeNotification => 22,
            Self::ReplicaLeaderElection { .. } => 23,
            Self::ListPartitionReassignments { .. } => 24,
        }
    }

    fn described(&self) -> (&'static str, ControllerState) {
        // Every place is below 25.
        EVENTS.get(self.place()).copied().unwrap_or(("unknown", S::Idle))
    }

    /// Answers whoever waits for the event, because this node is not the controller or ceases to be it. Kafka: `preempt`, and
    /// what the handlers do when not active. (In 2.6 two events left their callers waiting.)
    pub fn answer_not_controller(self) {
        match self {
            Self::ControlledShutdown { callback, .. } => callback.send(Err(ControllerError::ControllerMoved)),
            Self::ApiPartitionReassignment { callback, .. } => {
                callback.send(Err(ControllerError::NotController))
            }
            Self::ListPartitionReassignments { callback, .. } => {
                callback.send(Err(ControllerError::NotController))
            }
            Self::ReplicaLeaderElection { partitions, callback: Some(callback), .. } => {
                let each = partitions.unwrap_or_default().into_iter();
                callback
                    .send(each.map(|partition| (partition, Err(ControllerError::NotController))).collect());
            }
            _ => {}
        }
    }
}

impl Event for ControllerEvent {
    type State = ControllerState;

    fn state(&self) -> ControllerState {
        self.described().1
    }

    fn name(&self) -> &'static str {
        self.described().0
    }

    fn not_run(self, _why: NotRun) {
        self.answer_not_controller();
    }
}
