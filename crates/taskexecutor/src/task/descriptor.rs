//! What is to run.

use std::sync::Arc;

use job::graph::{JobGraph, Vertex};
use runtime_core::{AttemptId, JobId, ResourceId, VertexId};
use wire::{Address, v1};

/// One subtask of one vertex (Flink: `TaskDeploymentDescriptor`).
#[derive(Debug, Clone)]
pub struct TaskDescriptor {
    /// Its name, with subtask and attempt.
    pub attempt: AttemptId,
    /// The planned job.
    pub graph: Arc<JobGraph>,
    /// Which chain of it.
    pub vertex: VertexId,
    /// The job that first read the records; idempotency keys are made of it.
    pub origin_job: JobId,
    /// The edges that come in.
    pub inputs: Vec<InputGate>,
    /// The edges that go out.
    pub outputs: Vec<OutputGate>,
    /// What it begins with; absent: nothing.
    pub restore: Option<v1::RestoredState>,
}

impl TaskDescriptor {
    /// The chain, if the graph has it.
    #[must_use]
    pub fn chain(&self) -> Option<&Vertex> {
        self.graph.vertices.get(self.vertex.0 as usize)
    }

    /// The task's name for people, as in Flink: `source -> customer (2/4)`.
    #[must_use]
    pub fn name(&self) -> String {
        let (name, parallelism) = self.chain().map_or(("unknown", 0), |v| (&v.name, v.parallelism));
        format!("{name} ({}/{parallelism})", self.attempt.subtask + 1)
    }
}

/// An edge that comes in: one channel from each subtask upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputGate {
    /// The edge of the job graph.
    pub edge: u32,
    /// The attempts that write into it.
    pub producers: Vec<AttemptId>,
}

/// An edge that goes out: one channel to each subtask downstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputGate {
    /// The edge of the job graph.
    pub edge: u32,
    /// Where its channels lead, by subtask.
    pub consumers: Vec<ChannelTarget>,
}

/// Where a channel leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelTarget {
    /// Who reads it.
    pub attempt: AttemptId,
    /// On which task executor.
    pub task_executor: ResourceId,
    /// Where that takes data.
    pub data_address: Address,
}
