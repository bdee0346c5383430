//! What happens to a task executor, and what it is doing meanwhile.

use controller_events::{Event, EventState, NotRun, Reply};
use runtime_core::{AllocationId, Incarnation, InstanceId, JobId, Tick};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use wire::liveness::BeatEnd;
use wire::registration::Registered;
use wire::{RpcError, v1};

use crate::prepare::Prepared;
use crate::task::{CheckpointAnswer, TaskEvent};

/// The answer to a call that is waited for.
pub(crate) type Answer<T> = Reply<Result<T, RpcError>>;

/// Tells the links to one peer apart: what an earlier one still says is dropped.
pub(crate) type Life = u64;

/// Everything that can change a task executor's state. Each variant is one message, timer or answer.
pub(crate) enum TeEvent {
    /// The loop runs: the resource manager is looked for.
    Begin,
    RequestSlot(v1::RequestSlotRequest, Answer<v1::RequestSlotReply>),
    FreeSlot(v1::FreeSlotRequest, Answer<v1::Ack>),
    Submit(Box<Prepared>, Answer<v1::Ack>),
    CancelTask(v1::CancelTaskRequest, Answer<v1::Ack>),
    TriggerCheckpoint(v1::TriggerCheckpointRequest, Answer<v1::Ack>),
    /// First step of the registration done; the second takes what the slots are.
    ResourceManagerRegistered(Life, Registered, Reply<v1::SlotReport>),
    ResourceManagerConnected(Life, UnboundedSender<v1::TaskExecutorToResourceManager>),
    ResourceManagerSays(Life, v1::ResourceManagerToTaskExecutor),
    ResourceManagerLost(Life, String),
    ResourceManagerRejected(Life, String),
    ResourceManagerBeat(v1::HeartbeatToTaskExecutorRequest, Answer<v1::Ack>),
    ResourceManagerBeatAnswered(InstanceId, BeatEnd),
    /// No resource manager may have been found for too long.
    RegistrationClock,
    JobMasterConnected(JobId, Life, Registered, UnboundedSender<v1::TaskExecutorToJobMaster>),
    JobMasterSays(JobId, Life, v1::JobMasterToTaskExecutor),
    JobMasterLost(JobId, Life, String),
    JobMasterRejected(JobId, Life, String),
    /// What became of an attempt to register again.
    JobMasterAsked(JobId, Life, Option<RpcError>),
    JobMasterBeat(v1::HeartbeatFromJobMasterToTaskExecutorRequest, Answer<v1::Ack>),
    /// The last is when the answer was sent: if it was delivered, the job master has heard from here since.
    JobMasterBeatAnswered(JobId, Incarnation, BeatEnd, Tick),
    /// A lease may have ended.
    Fence,
    Offered(JobId, Life, OfferNumber, Vec<AllocationId>, Result<v1::OfferSlotsReply, RpcError>),
    /// It is time to offer again what could not be offered.
    OfferAgain(JobId),
    Task(TaskEvent),
    /// What came of a checkpoint in a task.
    Checkpoint(CheckpointAnswer),
    /// Somebody has been silent for too long, perhaps.
    Beat,
    /// A promised slot was not taken in time, perhaps.
    SlotTimeout,
    /// A task that was told to stop has not, perhaps.
    Cancellation,
    /// Time to tell what tasks have counted.
    Figures,
    /// The process is to end: the answer comes when all tasks have, with the links that say good-bye.
    Stop(String, Reply<Vec<JoinHandle<()>>>),
}

/// Of the offers to one job master only the newest counts.
pub(crate) type OfferNumber = u64;

/// What the loop is doing, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeState {
    Idle,
    Slots,
    Deployment,
    TaskUpdate,
    ResourceManagerConnection,
    JobMasterConnection,
    Heartbeat,
    Shutdown,
}

impl EventState for TeState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[
        Self::Idle,
        Self::Slots,
        Self::Deployment,
        Self::TaskUpdate,
        Self::ResourceManagerConnection,
        Self::JobMasterConnection,
        Self::Heartbeat,
        Self::Shutdown,
    ];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Slots => "Slots",
            Self::Deployment => "Deployment",
            Self::TaskUpdate => "TaskUpdate",
            Self::ResourceManagerConnection => "ResourceManagerConnection",
            Self::JobMasterConnection => "JobMasterConnection",
            Self::Heartbeat => "Heartbeat",
            Self::Shutdown => "Shutdown",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Slots => Some("SlotsRateAndTimeMs"),
            Self::Deployment => Some("DeploymentRateAndTimeMs"),
            Self::TaskUpdate => Some("TaskUpdateRateAndTimeMs"),
            Self::ResourceManagerConnection => Some("ResourceManagerConnectionRateAndTimeMs"),
            Self::JobMasterConnection => Some("JobMasterConnectionRateAndTimeMs"),
            Self::Heartbeat => Some("HeartbeatRateAndTimeMs"),
            Self::Shutdown => Some("ShutdownRateAndTimeMs"),
        }
    }
}

impl Event for TeEvent {
    type State = TeState;

    fn state(&self) -> TeState {
        match self {
            Self::RequestSlot(..)
            | Self::FreeSlot(..)
            | Self::Offered(..)
            | Self::OfferAgain(_)
            | Self::SlotTimeout => TeState::Slots,
            Self::Submit(..) | Self::CancelTask(..) | Self::Cancellation | Self::TriggerCheckpoint(..) => {
                TeState::Deployment
            }
            Self::Task(_) | Self::Checkpoint(_) | Self::Figures => TeState::TaskUpdate,
            Self::Begin
            | Self::ResourceManagerRegistered(..)
            | Self::ResourceManagerConnected(..)
            | Self::ResourceManagerSays(..)
            | Self::ResourceManagerLost(..)
            | Self::ResourceManagerRejected(..)
            | Self::RegistrationClock => TeState::ResourceManagerConnection,
            Self::JobMasterConnected(..)
            | Self::JobMasterSays(..)
            | Self::JobMasterLost(..)
            | Self::JobMasterRejected(..)
            | Self::JobMasterAsked(..) => TeState::JobMasterConnection,
            Self::ResourceManagerBeat(..)
            | Self::ResourceManagerBeatAnswered(..)
            | Self::JobMasterBeat(..)
            | Self::JobMasterBeatAnswered(..)
            | Self::Fence
            | Self::Beat => TeState::Heartbeat,
            Self::Stop(..) => TeState::Shutdown,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Begin => "Begin",
            Self::RequestSlot(..) => "RequestSlot",
            Self::FreeSlot(..) => "FreeSlot",
            Self::Submit(..) => "Submit",
            Self::CancelTask(..) => "CancelTask",
            Self::TriggerCheckpoint(..) => "TriggerCheckpoint",
            Self::ResourceManagerRegistered(..) => "ResourceManagerRegistered",
            Self::ResourceManagerConnected(..) => "ResourceManagerConnected",
            Self::ResourceManagerSays(..) => "ResourceManagerSays",
            Self::ResourceManagerLost(..) => "ResourceManagerLost",
            Self::ResourceManagerRejected(..) => "ResourceManagerRejected",
            Self::ResourceManagerBeat(..) => "ResourceManagerBeat",
            Self::ResourceManagerBeatAnswered(..) => "ResourceManagerBeatAnswered",
            Self::RegistrationClock => "RegistrationClock",
            Self::JobMasterConnected(..) => "JobMasterConnected",
            Self::JobMasterSays(..) => "JobMasterSays",
            Self::JobMasterLost(..) => "JobMasterLost",
            Self::JobMasterRejected(..) => "JobMasterRejected",
            Self::JobMasterAsked(..) => "JobMasterAsked",
            Self::JobMasterBeat(..) => "JobMasterBeat",
            Self::JobMasterBeatAnswered(..) => "JobMasterBeatAnswered",
            Self::Fence => "Fence",
            Self::Offered(..) => "Offered",
            Self::OfferAgain(_) => "OfferAgain",
            Self::Task(_) => "Task",
            Self::Checkpoint(_) => "Checkpoint",
            Self::Beat => "Beat",
            Self::SlotTimeout => "SlotTimeout",
            Self::Cancellation => "Cancellation",
            Self::Figures => "Figures",
            Self::Stop(..) => "Stop",
        }
    }

    // Whoever waits for an answer hears of it: its reply answers when it is dropped.
    fn not_run(self, _why: NotRun) {}
}
