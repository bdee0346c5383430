//! The parts of a job that fail and restart on their own.
//!
//! Flink: `PipelinedRegion` and `RestartPipelinedRegionFailoverStrategy`. A region is a connected component of subtasks
//! over the job's edges: an edge goes from every subtask of one vertex to every subtask of another, so that either a region
//! has whole vertices, or it is one subtask of a vertex that has no edge.

use std::collections::BTreeSet;

use job::graph::JobGraph;
use runtime_core::Tick;

use crate::execution::Subtask;

/// Where a region stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegionPhase {
    /// The job has not begun.
    Idle,
    /// It waits for slots until this timer.
    Waiting(u64),
    /// It runs, or has finished.
    Executing,
    /// Its attempts are being stopped.
    Stopping(FailOver),
    /// The pause before its restart, until this timer.
    Pausing(FailOver, u64),
    /// It is to begin again as soon as the outputs are not in use.
    Due(FailOver),
    /// The outputs are made fit for its new attempts.
    Restoring,
}

/// A restart: failures that come before it belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailOver {
    pub(super) number: u64,
    pub(super) at: Tick,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) phase: RegionPhase,
    pub(super) members: Vec<Subtask>,
}

impl Region {
    /// The slots that it needs.
    pub(super) fn groups(&self) -> BTreeSet<u32> {
        self.members.iter().map(|(_, subtask)| *subtask).collect()
    }

    /// Whether a failure is a new one for it, and does not belong to a restart that is on its way.
    pub(super) const fn takes_failures(&self) -> bool {
        matches!(self.phase, RegionPhase::Waiting(_) | RegionPhase::Executing | RegionPhase::Restoring)
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Regions(pub(super) Vec<Region>);

impl Regions {
    pub(super) fn of(graph: &JobGraph) -> Self {
        let mut component: Vec<usize> = (0..graph.vertices.len()).collect();
        for edge in &graph.edges {
            let of = |vertex: runtime_core::VertexId| component.get(vertex.0 as usize).copied();
            let (Some(from), Some(to)) = (of(edge.from), of(edge.to)) else { continue };
            for other in &mut component {
                if *other == to {
                    *other = from;
                }
            }
        }
        let whole = graph.checkpoints.is_none();
        let mut regions: Vec<(Option<usize>, Vec<Subtask>)> = Vec::new();
        for (index, vertex) in graph.vertices.iter().enumerate() {
            let connected = graph.edges.iter().any(|e| e.from == vertex.id || e.to == vertex.id);
            let key = if whole { Some(0) } else { component.get(index).copied().filter(|_| connected) };
            for subtask in 0..vertex.parallelism {
                let member = (vertex.id, subtask);
                match regions.iter_mut().find(|(of, _)| key.is_some() && *of == key) {
                    Some((_, members)) => members.push(member),
                    None => regions.push((key, vec![member])),
                }
            }
        }
        let regions = regions.into_iter();
        Self(regions.map(|(_, members)| Region { phase: RegionPhase::Idle, members }).collect())
    }

    pub(super) fn all(&self) -> BTreeSet<usize> {
        (0..self.0.len()).collect()
    }

    /// Those of these subtasks.
    pub(super) fn with(&self, subtasks: &[Subtask]) -> BTreeSet<usize> {
        let has = |region: &Region| region.members.iter().any(|member| subtasks.contains(member));
        self.select(has)
    }

    pub(super) fn select(&self, wanted: impl Fn(&Region) -> bool) -> BTreeSet<usize> {
        self.0.iter().enumerate().filter(|(_, region)| wanted(region)).map(|(index, _)| index).collect()
    }

    pub(super) fn set(&mut self, which: &BTreeSet<usize>, phase: RegionPhase) {
        for index in which {
            if let Some(region) = self.0.get_mut(*index) {
                region.phase = phase;
            }
        }
    }

    pub(super) fn members(&self, which: &BTreeSet<usize>) -> Vec<Subtask> {
        let regions = which.iter().filter_map(|index| self.0.get(*index));
        regions.flat_map(|region| region.members.iter().copied()).collect()
    }

    pub(super) fn groups(&self, which: &BTreeSet<usize>) -> BTreeSet<u32> {
        which.iter().filter_map(|index| self.0.get(*index)).flat_map(Region::groups).collect()
    }

    pub(super) fn all_executing(&self) -> bool {
        self.0.iter().all(|region| region.phase == RegionPhase::Executing)
    }
}
