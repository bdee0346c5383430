//! What a task needs of its task executor.

use std::sync::Arc;

use async_trait::async_trait;
use checkpoint::Stores;
use connectors::call::RustCalls;
use connectors::source::file::FileSplit;
use runtime_core::time::TokioClock;
use runtime_core::{AttemptId, ResourceId};
use tokio::runtime::Handle;
use wire::Transport;

use super::event::{CheckpointAnswers, TaskEvents};
use crate::exchange::Channels;

/// Where a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On a thread of its own with a current-thread runtime.
    Threads,
    /// As a future on the runtime of calls, which then has one thread: for simulations.
    Local,
}

impl Placement {
    /// Does work that may wait for a disk or a network, apart from every loop.
    pub(crate) fn block(self, io: &Handle, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Threads => drop(io.spawn_blocking(work)),
            Self::Local => drop(io.spawn(async move { work() })),
        }
    }
}

/// The answer to a request for a split.
#[derive(Debug, Clone, PartialEq)]
pub struct NextSplit {
    /// Absent: there is none left.
    pub split: Option<FileSplit>,
    /// Records per second for this subtask from now on; absent: no limit.
    pub max_rate: Option<f64>,
}

/// No answer about a split can be had; the task fails and may be restarted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no input split could be had: {0}")]
pub struct SplitError(pub String);

/// Hands out the splits of a job (Flink: `InputSplitProvider`).
#[async_trait]
pub trait SplitProvider: Send + Sync {
    /// The next split for an attempt. `request` counts up within the attempt; a repeated number is given the same split.
    ///
    /// # Errors
    ///
    /// The job master cannot be asked, after whatever repetition the provider sees fit.
    async fn next_split(&self, attempt: AttemptId, request: u64) -> Result<NextSplit, SplitError>;
}

/// What a task needs of its task executor. A clone is cheap.
#[derive(Clone)]
pub struct TaskServices {
    /// The task executor's name: a channel to itself does not leave it.
    pub task_executor: ResourceId,
    /// Where the task runs.
    pub placement: Placement,
    /// The time.
    pub clock: TokioClock,
    /// The runtime of calls and of the exchange.
    pub io: Handle,
    /// The channels of the task executor.
    pub channels: Arc<Channels>,
    /// The way to other task executors.
    pub transport: Arc<dyn Transport>,
    /// The calls written in Rust.
    pub calls: Arc<RustCalls>,
    /// Who hands out splits.
    pub splits: Arc<dyn SplitProvider>,
    /// Who is told what becomes of the task.
    pub events: TaskEvents,
    /// Who is told what came of checkpoints.
    pub answers: CheckpointAnswers,
    /// Where checkpoints are kept.
    pub stores: Arc<dyn Stores>,
}
