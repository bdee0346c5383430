//! The subtasks of a job and the attempt that each is at.
//!
//! Flink: `ExecutionGraph`, reduced to what one term of a job master needs. A pure table; `scheduler` decides.

use job::graph::{JobGraph, Vertex};
use runtime_core::{AllocationId, AttemptId, Epoch, EpochMillis, JobId, ResourceId, Tick, VertexId};
use wire::v1;

use crate::status::ExecutionState;

/// A subtask of a vertex.
pub type Subtask = (VertexId, u32);

/// Where an attempt runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The slot.
    pub allocation: AllocationId,
    /// Whose slot.
    pub task_executor: ResourceId,
}

/// A subtask and its current attempt.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The current attempt.
    pub id: AttemptId,
    /// How far it has got.
    pub state: ExecutionState,
    /// Where it runs, once it has been placed.
    pub location: Option<Location>,
    /// What it has counted, as last reported.
    pub figures: v1::Figures,
    /// What earlier attempts had counted in the checkpoint from which this one began.
    pub base: v1::Figures,
    /// Once it has finished: its part of every later checkpoint.
    pub last: Option<Box<v1::TaskSnapshot>>,
    /// When it was deployed.
    pub started_at: Option<EpochMillis>,
    /// When it ended.
    pub ended_at: Option<EpochMillis>,
    /// Since when it is known that the task executor has the task.
    pub acknowledged: Option<Tick>,
}

/// All subtasks of a job, by vertex and subtask.
#[derive(Debug)]
pub struct Executions {
    job: JobId,
    term: Epoch,
    by_vertex: Vec<Vec<Execution>>,
}

impl Executions {
    /// The subtasks of `graph`, none of them deployed.
    #[must_use]
    pub fn new(job: JobId, term: Epoch, graph: &JobGraph) -> Self {
        let of = |vertex: &Vertex| {
            (0..vertex.parallelism)
                .map(|subtask| Execution {
                    id: AttemptId { job, term, vertex: vertex.id, subtask, attempt: 0 },
                    state: ExecutionState::Created,
                    location: None,
                    figures: v1::Figures::default(),
                    base: v1::Figures::default(),
                    last: None,
                    started_at: None,
                    ended_at: None,
                    acknowledged: None,
                })
                .collect()
        };
        Self { job, term, by_vertex: graph.vertices.iter().map(of).collect() }
    }

    /// The subtasks of one vertex.
    #[must_use]
    pub fn of_vertex(&self, vertex: VertexId) -> &[Execution] {
        self.by_vertex.get(vertex.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// All subtasks, vertex by vertex.
    pub fn iter(&self) -> impl Iterator<Item = &Execution> {
        self.by_vertex.iter().flatten()
    }

    /// All subtasks, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Execution> {
        self.by_vertex.iter_mut().flatten()
    }

    /// The subtask of which `id` is the current attempt.
    pub fn current_mut(&mut self, id: &AttemptId) -> Option<&mut Execution> {
        if id.job != self.job || id.term != self.term {
            return None;
        }
        let execution = self.by_vertex.get_mut(id.vertex.0 as usize)?.get_mut(id.subtask as usize)?;
        (execution.id == *id).then_some(execution)
    }

    /// Whether every attempt is over.
    #[must_use]
    pub fn all_terminal(&self) -> bool {
        self.iter().all(|e| e.state.is_terminal())
    }

    /// Whether every attempt has done its work.
    #[must_use]
    pub fn all_finished(&self) -> bool {
        self.iter().all(|e| e.state == ExecutionState::Finished)
    }

    /// One subtask.
    pub fn get(&self, (vertex, subtask): Subtask) -> Option<&Execution> {
        self.by_vertex.get(vertex.0 as usize)?.get(subtask as usize)
    }

    /// One subtask, to be changed.
    pub fn get_mut(&mut self, (vertex, subtask): Subtask) -> Option<&mut Execution> {
        self.by_vertex.get_mut(vertex.0 as usize)?.get_mut(subtask as usize)
    }
}

impl Execution {
    /// Which subtask it is of.
    #[must_use]
    pub const fn subtask(&self) -> Subtask {
        (self.id.vertex, self.id.subtask)
    }

    /// Begins a new attempt, which counts on from `base`; the old one counts nothing any more.
    pub fn renew(&mut self, base: v1::Figures) {
        self.id.attempt += 1;
        self.state = ExecutionState::Created;
        self.location = None;
        self.figures = v1::Figures::default();
        self.base = base;
        self.last = None;
        self.started_at = None;
        self.ended_at = None;
        self.acknowledged = None;
    }
}
