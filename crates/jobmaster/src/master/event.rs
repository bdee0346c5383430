//! What happens to the master of one job, and what it is doing meanwhile.

use controller_events::{Event, EventState, NotRun, Reply};
use runtime_core::{AttemptId, Incarnation, ResourceId};
use wire::liveness::BeatEnd;
use wire::registration::Registered;
use wire::{MessageStream, RpcError, v1};

use crate::checkpoint::coordinator::{Done, Wanted, WriteFailure};
use crate::checkpoint::{CheckpointPointer, CompletedCheckpoint};
use crate::scheduler::{Beginning, ReadFailure, SubmitFailure, Timer};

/// The answer to a call that is waited for.
pub(crate) type Answer<T> = Reply<Result<T, RpcError>>;

/// Everything that can change a job master's state. Each variant is one message, timer or answer.
pub(crate) enum JmEvent {
    /// The loop runs: the job begins.
    Begin,
    RegisterTaskExecutor(v1::RegisterAtJobMasterRequest, Answer<v1::RegistrationReply>),
    OfferSlots(v1::OfferSlotsRequest, Answer<v1::OfferSlotsReply>),
    NextSplit(v1::RequestNextInputSplitRequest, Answer<v1::RequestNextInputSplitReply>),
    /// A registered task executor opens its stream; the answer is the other direction.
    TaskExecutorStream(v1::TaskExecutorAtJobMasterHello, Answer<MessageStream<v1::JobMasterToTaskExecutor>>),
    TaskExecutorSays(ResourceId, Incarnation, Box<v1::TaskExecutorToJobMaster>),
    TaskExecutorStreamEnded(ResourceId, Incarnation, String),
    TaskExecutorBeat(v1::HeartbeatToJobMasterRequest, Answer<v1::Ack>),
    TaskExecutorBeatSent(ResourceId, Incarnation, BeatEnd),
    /// The resource manager has accepted the registration; the answer is what is said to it.
    ResourceManagerRegistered(Registered, Reply<MessageStream<v1::JobMasterToResourceManager>>),
    ResourceManagerSays(v1::ResourceManagerToJobMaster),
    ResourceManagerLost(String),
    ResourceManagerBeat(v1::HeartbeatFromResourceManagerRequest, Answer<v1::Ack>),
    ResourceManagerBeatAnswered(Incarnation, BeatEnd),
    /// Outputs are prepared and splits are listed.
    Prepared(Result<Box<Beginning>, String>),
    Submitted(AttemptId, Result<(), SubmitFailure>),
    CancelGaveUp(AttemptId),
    Swept(Result<(), String>),
    Committed(Result<(), String>),
    CheckpointsReserved(u64, Result<(), String>),
    /// A task executor could not be told of a checkpoint: why, and whether it does not know a task of it.
    TriggerFailed(ResourceId, u64, String, bool),
    CheckpointWritten(u64, Result<(), WriteFailure>),
    CheckpointCommitted(u64, Result<(), String>),
    /// The checkpoint to go on from, and those before it that are left.
    CheckpointRead(Result<Box<(CompletedCheckpoint, Vec<CheckpointPointer>)>, ReadFailure>),
    Wake(Timer),
    /// Somebody asks for the job's end; the answer says whether it will come.
    Cancel(Reply<bool>),
    /// Somebody wants a checkpoint or a savepoint; the answer says what became of it.
    Request(Wanted, Reply<Result<Done, String>>),
    /// A heartbeat is due, or somebody has been silent for too long.
    Beat,
    /// Slots that are not needed may have been idle for long enough.
    IdleSlots,
    /// Figures have changed: time to publish them.
    Publish,
}

/// What the loop is doing, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JmState {
    Idle,
    Scheduling,
    SlotPool,
    TaskUpdate,
    InputSplits,
    Checkpoint,
    Connection,
    Heartbeat,
}

impl EventState for JmState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[
        Self::Idle,
        Self::Scheduling,
        Self::SlotPool,
        Self::TaskUpdate,
        Self::InputSplits,
        Self::Checkpoint,
        Self::Connection,
        Self::Heartbeat,
    ];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Scheduling => "Scheduling",
            Self::SlotPool => "SlotPool",
            Self::TaskUpdate => "TaskUpdate",
            Self::InputSplits => "InputSplits",
            Self::Checkpoint => "Checkpoint",
            Self::Connection => "Connection",
            Self::Heartbeat => "Heartbeat",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Scheduling => Some("SchedulingRateAndTimeMs"),
            Self::SlotPool => Some("SlotPoolRateAndTimeMs"),
            Self::TaskUpdate => Some("TaskUpdateRateAndTimeMs"),
            Self::InputSplits => Some("InputSplitsRateAndTimeMs"),
            Self::Checkpoint => Some("CheckpointRateAndTimeMs"),
            Self::Connection => Some("ConnectionRateAndTimeMs"),
            Self::Heartbeat => Some("HeartbeatRateAndTimeMs"),
        }
    }
}

impl Event for JmEvent {
    type State = JmState;

    fn state(&self) -> JmState {
        match self {
            Self::Begin
            | Self::Prepared(_)
            | Self::Submitted(..)
            | Self::CancelGaveUp(_)
            | Self::Swept(_)
            | Self::Committed(_)
            | Self::Wake(_)
            | Self::Cancel(_) => JmState::Scheduling,
            Self::OfferSlots(..) | Self::IdleSlots => JmState::SlotPool,
            Self::TaskExecutorSays(..) | Self::Publish => JmState::TaskUpdate,
            Self::NextSplit(..) => JmState::InputSplits,
            Self::CheckpointsReserved(..)
            | Self::TriggerFailed(..)
            | Self::CheckpointWritten(..)
            | Self::CheckpointCommitted(..)
            | Self::CheckpointRead(_)
            | Self::Request(..) => JmState::Checkpoint,
            Self::RegisterTaskExecutor(..)
            | Self::TaskExecutorStream(..)
            | Self::TaskExecutorStreamEnded(..)
            | Self::ResourceManagerRegistered(..)
            | Self::ResourceManagerSays(_)
            | Self::ResourceManagerLost(_) => JmState::Connection,
            Self::TaskExecutorBeat(..)
            | Self::TaskExecutorBeatSent(..)
            | Self::ResourceManagerBeat(..)
            | Self::ResourceManagerBeatAnswered(..)
            | Self::Beat => JmState::Heartbeat,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Begin => "Begin",
            Self::RegisterTaskExecutor(..) => "RegisterTaskExecutor",
            Self::OfferSlots(..) => "OfferSlots",
            Self::NextSplit(..) => "NextSplit",
            Self::TaskExecutorStream(..) => "TaskExecutorStream",
            Self::TaskExecutorSays(..) => "TaskExecutorSays",
            Self::TaskExecutorStreamEnded(..) => "TaskExecutorStreamEnded",
            Self::TaskExecutorBeat(..) => "TaskExecutorBeat",
            Self::TaskExecutorBeatSent(..) => "TaskExecutorBeatSent",
            Self::ResourceManagerRegistered(..) => "ResourceManagerRegistered",
            Self::ResourceManagerSays(_) => "ResourceManagerSays",
            Self::ResourceManagerLost(_) => "ResourceManagerLost",
            Self::ResourceManagerBeat(..) => "ResourceManagerBeat",
            Self::ResourceManagerBeatAnswered(..) => "ResourceManagerBeatAnswered",
            Self::Prepared(_) => "Prepared",
            Self::Submitted(..) => "Submitted",
            Self::CancelGaveUp(_) => "CancelGaveUp",
            Self::Swept(_) => "Swept",
            Self::CheckpointsReserved(..) => "CheckpointsReserved",
            Self::TriggerFailed(..) => "TriggerFailed",
            Self::CheckpointWritten(..) => "CheckpointWritten",
            Self::CheckpointCommitted(..) => "CheckpointCommitted",
            Self::CheckpointRead(_) => "CheckpointRead",
            Self::Committed(_) => "Committed",
            Self::Wake(_) => "Wake",
            Self::Cancel(_) => "Cancel",
            Self::Request(..) => "Request",
            Self::Beat => "Beat",
            Self::IdleSlots => "IdleSlots",
            Self::Publish => "Publish",
        }
    }

    // Whoever waits for an answer hears of it: its reply answers when it is dropped.
    fn not_run(self, _why: NotRun) {}
}
