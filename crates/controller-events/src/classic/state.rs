//! The 17 states.

use crate::event::EventState;

/// What the controller is doing. Values, names and metrics are those of Kafka 2.5 and 2.6 and never change.
///
/// Kafka: `ControllerState`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum ControllerState {
    Idle,
    ControllerChange,
    BrokerChange,
    TopicChange,
    TopicDeletion,
    AlterPartitionReassignment,
    AutoLeaderBalance,
    ManualLeaderBalance,
    ControlledShutdown,
    IsrChange,
    LeaderAndIsrResponseReceived,
    LogDirChange,
    ControllerShutdown,
    UncleanLeaderElectionEnable,
    TopicUncleanLeaderElectionEnable,
    ListPartitionReassignment,
    UpdateMetadataResponseReceived,
}

impl EventState for ControllerState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[
        Self::Idle,
        Self::ControllerChange,
        Self::BrokerChange,
        Self::TopicChange,
        Self::TopicDeletion,
        Self::AlterPartitionReassignment,
        Self::AutoLeaderBalance,
        Self::ManualLeaderBalance,
        Self::ControlledShutdown,
        Self::IsrChange,
        Self::LeaderAndIsrResponseReceived,
        Self::LogDirChange,
        Self::ControllerShutdown,
        Self::UncleanLeaderElectionEnable,
        Self::TopicUncleanLeaderElectionEnable,
        Self::ListPartitionReassignment,
        Self::UpdateMetadataResponseReceived,
    ];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::ControllerChange => "ControllerChange",
            Self::BrokerChange => "BrokerChange",
            Self::TopicChange => "TopicChange",
            Self::TopicDeletion => "TopicDeletion",
            Self::AlterPartitionReassignment => "AlterPartitionReassignment",
            Self::AutoLeaderBalance => "AutoLeaderBalance",
            Self::ManualLeaderBalance => "ManualLeaderBalance",
            Self::ControlledShutdown => "ControlledShutdown",
            Self::IsrChange => "IsrChange",
            Self::LeaderAndIsrResponseReceived => "LeaderAndIsrResponseReceived",
            Self::LogDirChange => "LogDirChange",
            Self::ControllerShutdown => "ControllerShutdown",
            Self::UncleanLeaderElectionEnable => "UncleanLeaderElectionEnable",
            Self::TopicUncleanLeaderElectionEnable => "TopicUncleanLeaderElectionEnable",
            Self::ListPartitionReassignment => "ListPartitionReassignment",
            Self::UpdateMetadataResponseReceived => "UpdateMetadataResponseReceived",
        }
    }

    /// The name of the state with `RateAndTimeMs`; of two it is an older one, and two have none.
    fn rate_metric(self) -> Option<&'static str> {
        Some(match self {
            Self::Idle | Self::UpdateMetadataResponseReceived => return None,
            Self::ControllerChange => "ControllerChangeRateAndTimeMs",
            // Kept from before there were states.
            Self::BrokerChange => "LeaderElectionRateAndTimeMs",
            Self::TopicChange => "TopicChangeRateAndTimeMs",
            Self::TopicDeletion => "TopicDeletionRateAndTimeMs",
            // The state was renamed in 2.4, the metric was not.
            Self::AlterPartitionReassignment => "PartitionReassignmentRateAndTimeMs",
            Self::AutoLeaderBalance => "AutoLeaderBalanceRateAndTimeMs",
            Self::ManualLeaderBalance => "ManualLeaderBalanceRateAndTimeMs",
            Self::ControlledShutdown => "ControlledShutdownRateAndTimeMs",
            Self::IsrChange => "IsrChangeRateAndTimeMs",
            Self::LeaderAndIsrResponseReceived => "LeaderAndIsrResponseReceivedRateAndTimeMs",
            Self::LogDirChange => "LogDirChangeRateAndTimeMs",
            Self::ControllerShutdown => "ControllerShutdownRateAndTimeMs",
            Self::UncleanLeaderElectionEnable => "UncleanLeaderElectionEnableRateAndTimeMs",
            Self::TopicUncleanLeaderElectionEnable => "TopicUncleanLeaderElectionEnableRateAndTimeMs",
            Self::ListPartitionReassignment => "ListPartitionReassignmentRateAndTimeMs",
        })
    }
}
