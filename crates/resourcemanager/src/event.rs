//! What happens to a resource manager, and what it is doing meanwhile.

use std::sync::Arc;

use controller_events::{Event, EventState, NotRun, Reply};
use runtime_core::{AllocationId, Incarnation, InstanceId, JobId, ResourceId};
use wire::liveness::BeatEnd;
use wire::{MessageStream, RpcError, v1};

use crate::workers::DriverEvent;

/// The answer to a call that is waited for.
pub(crate) type Answer<T> = Reply<Result<T, RpcError>>;

/// Everything that can change a resource manager's state. Each variant is one message, timer or answer.
pub(crate) enum RmEvent {
    RegisterTaskExecutor(v1::RegisterTaskExecutorRequest, Answer<v1::RegistrationReply>),
    SlotReport(v1::SendSlotReportRequest, Answer<v1::Ack>),
    RegisterJobMaster(v1::RegisterJobMasterRequest, Answer<v1::RegistrationReply>),
    /// A registered task executor opens its stream; the answer is the other direction.
    TaskExecutorStream(v1::TaskExecutorHello, Answer<MessageStream<v1::ResourceManagerToTaskExecutor>>),
    TaskExecutorSays(ResourceId, InstanceId, v1::TaskExecutorToResourceManager),
    TaskExecutorStreamEnded(ResourceId, InstanceId, String),
    /// A registered job master opens its stream; the answer is the other direction.
    JobMasterStream(v1::JobMasterHello, Answer<MessageStream<v1::ResourceManagerToJobMaster>>),
    JobMasterSays(JobId, Incarnation, v1::JobMasterToResourceManager),
    JobMasterStreamEnded(JobId, Incarnation, String),
    /// Somebody wants to know how the cluster is.
    Describe(Answer<Arc<v1::ClusterDescription>>),
    TaskExecutorBeat(v1::HeartbeatFromTaskExecutorRequest, Answer<v1::Ack>),
    JobMasterBeat(v1::HeartbeatFromJobMasterRequest, Answer<v1::Ack>),
    /// What became of a heartbeat that was sent.
    TaskExecutorBeatSent(ResourceId, InstanceId, BeatEnd),
    JobMasterBeatSent(JobId, Incarnation, BeatEnd),
    /// What a task executor answered to a request for a slot.
    SlotAnswered(AllocationId, Result<(), RpcError>),
    /// A heartbeat is due, or somebody has been silent for too long.
    Beat,
    /// A job may have waited for slots for too long.
    Overdue,
    /// A job may have been without a job master for too long.
    JobTimeout(JobId),
    /// The workers of before that still run: the first event of all, where there are any.
    WorkersRecovered(Vec<ResourceId>),
    /// What has become of a worker.
    Worker(DriverEvent),
    /// A worker is to be started, or stopped, or has not registered in time.
    WorkersDue,
}

/// What the loop is doing, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmState {
    Idle,
    Registration,
    SlotManagement,
    JobMasterConnection,
    TaskExecutorConnection,
    Heartbeat,
    Workers,
}

impl EventState for RmState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[
        Self::Idle,
        Self::Registration,
        Self::SlotManagement,
        Self::JobMasterConnection,
        Self::TaskExecutorConnection,
        Self::Heartbeat,
        Self::Workers,
    ];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Registration => "Registration",
            Self::SlotManagement => "SlotManagement",
            Self::JobMasterConnection => "JobMasterConnection",
            Self::TaskExecutorConnection => "TaskExecutorConnection",
            Self::Heartbeat => "Heartbeat",
            Self::Workers => "Workers",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Registration => Some("RegistrationRateAndTimeMs"),
            Self::SlotManagement => Some("SlotManagementRateAndTimeMs"),
            Self::JobMasterConnection => Some("JobMasterConnectionRateAndTimeMs"),
            Self::TaskExecutorConnection => Some("TaskExecutorConnectionRateAndTimeMs"),
            Self::Heartbeat => Some("HeartbeatRateAndTimeMs"),
            Self::Workers => Some("WorkersRateAndTimeMs"),
        }
    }
}

impl Event for RmEvent {
    type State = RmState;

    fn state(&self) -> RmState {
        match self {
            Self::RegisterTaskExecutor(..) | Self::RegisterJobMaster(..) => RmState::Registration,
            Self::SlotReport(..)
            | Self::SlotAnswered(..)
            | Self::Overdue
            | Self::JobTimeout(_)
            | Self::Describe(_) => RmState::SlotManagement,
            Self::JobMasterStream(..) | Self::JobMasterSays(..) | Self::JobMasterStreamEnded(..) => {
                RmState::JobMasterConnection
            }
            Self::TaskExecutorStream(..) | Self::TaskExecutorSays(..) | Self::TaskExecutorStreamEnded(..) => {
                RmState::TaskExecutorConnection
            }
            Self::TaskExecutorBeat(..)
            | Self::JobMasterBeat(..)
            | Self::TaskExecutorBeatSent(..)
            | Self::JobMasterBeatSent(..)
            | Self::Beat => RmState::Heartbeat,
            Self::WorkersRecovered(_) | Self::Worker(_) | Self::WorkersDue => RmState::Workers,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::RegisterTaskExecutor(..) => "RegisterTaskExecutor",
            Self::SlotReport(..) => "SlotReport",
            Self::RegisterJobMaster(..) => "RegisterJobMaster",
            Self::TaskExecutorStream(..) => "TaskExecutorStream",
            Self::TaskExecutorSays(..) => "TaskExecutorSays",
            Self::TaskExecutorStreamEnded(..) => "TaskExecutorStreamEnded",
            Self::JobMasterStream(..) => "JobMasterStream",
            Self::JobMasterSays(..) => "JobMasterSays",
            Self::JobMasterStreamEnded(..) => "JobMasterStreamEnded",
            Self::Describe(_) => "Describe",
            Self::TaskExecutorBeat(..) => "TaskExecutorBeat",
            Self::JobMasterBeat(..) => "JobMasterBeat",
            Self::TaskExecutorBeatSent(..) => "TaskExecutorBeatSent",
            Self::JobMasterBeatSent(..) => "JobMasterBeatSent",
            Self::SlotAnswered(..) => "SlotAnswered",
            Self::Beat => "Beat",
            Self::Overdue => "Overdue",
            Self::JobTimeout(_) => "JobTimeout",
            Self::WorkersRecovered(_) => "WorkersRecovered",
            Self::Worker(_) => "Worker",
            Self::WorkersDue => "WorkersDue",
        }
    }

    // Whoever waits for an answer hears of it: its reply answers when it is dropped.
    fn not_run(self, _why: NotRun) {}
}
