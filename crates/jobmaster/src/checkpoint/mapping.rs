//! A savepoint of one job as another one begins with it.
//!
//! The other job's file may say another parallelism or order, and its chains may be cut at other places, so that vertices
//! and subtasks of the two are not the same. What belongs together is found by the names of steps and sinks. Where a step
//! has as many subtasks as before and records reach them in the same way, each takes its own part. Otherwise each is
//! given the parts of all, and takes what is its own by key group.

use std::collections::BTreeMap;

use job::graph::{JobGraph, OperatorSpec, Vertex};
use job::options::{FileSinkOptions, SinkOptions, SourceOptions};
use runtime_core::VertexId;
use wire::v1;

use crate::counts::add_records;
use crate::execution::Subtask;

/// What the subtasks of a job begin with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mapping {
    states: BTreeMap<Subtask, v1::RestoredState>,
    figures: BTreeMap<Subtask, v1::Figures>,
}

impl Mapping {
    /// `metadata` is that of the savepoint `store`, taken of the job `old`.
    #[must_use]
    pub fn of(metadata: &v1::CheckpointMetadata, store: &str, old: &JobGraph, new: &JobGraph) -> Self {
        let mut mapping = Self::default();
        for vertex in &new.vertices {
            for subtask in 0..vertex.parallelism {
                let state = state(metadata, store, old, vertex, subtask);
                mapping.states.insert((vertex.id, subtask), state);
            }
        }
        // What was counted is nobody's in particular: the first subtask counts on.
        for (vertex, of) in old.vertices.iter().zip(&metadata.vertices) {
            let heir = new.vertices.iter().find(|v| names(v).next() == names(vertex).next());
            let sum = mapping.figures.entry((heir.map_or(VertexId(0), |v| v.id), 0)).or_default();
            let counted = of.subtasks.iter().filter_map(|s| s.snapshot.as_ref()?.figures.as_ref());
            counted.for_each(|figures| add_records(sum, figures));
        }
        mapping
    }

    pub(super) fn state(&self, subtask: Subtask) -> Option<&v1::RestoredState> {
        self.states.get(&subtask)
    }

    pub(super) fn figures(&self, subtask: Subtask) -> Option<&v1::Figures> {
        self.figures.get(&subtask)
    }
}

fn state(
    metadata: &v1::CheckpointMetadata,
    store: &str,
    old: &JobGraph,
    vertex: &Vertex,
    subtask: u32,
) -> v1::RestoredState {
    let holds = |before: &&(&Vertex, &v1::VertexSnapshot)| steps(before.0).any(|name| has_step(vertex, name));
    let all: Vec<(&Vertex, &v1::VertexSnapshot)> = old.vertices.iter().zip(&metadata.vertices).collect();
    let relevant: Vec<_> = all.iter().filter(holds).collect();
    let own = matches!(relevant.as_slice(), [before] if is_same(before.0, vertex));
    let parts = relevant.iter().flat_map(|(_, before)| &before.subtasks);
    let parts = parts.filter(|part| !own || part.subtask == subtask);
    let mut subtasks: Vec<v1::RestoredSubtask> = parts
        .filter_map(|part| {
            let state = part.snapshot.as_ref()?.state.clone()?;
            Some(v1::RestoredSubtask { subtask: part.subtask, state: Some(state), committed_length: 0 })
        })
        .collect();
    if let Some(sink) = sink(vertex)
        && let Some(committed_length) = committed_length(metadata, old, sink)
    {
        subtasks.push(v1::RestoredSubtask { subtask, state: None, committed_length });
    }
    v1::RestoredState {
        checkpoint: metadata.checkpoint,
        subtasks,
        parallelism: vertex.parallelism,
        store: store.to_owned(),
        of_all: !own,
    }
}

/// How long the savepoint has made a file, if it is an output of the job that took it.
#[must_use]
pub fn committed_length(
    metadata: &v1::CheckpointMetadata,
    old: &JobGraph,
    sink: &FileSinkOptions,
) -> Option<u64> {
    let same =
        |vertex: &Vertex| self::sink(vertex).is_some_and(|s| s.path == sink.path && s.parts == sink.parts);
    let (_, of) = old.vertices.iter().zip(&metadata.vertices).find(|(vertex, _)| same(vertex))?;
    let lengths = of.subtasks.iter().filter_map(|s| Some(s.snapshot.as_ref()?.committed_length));
    Some(lengths.max().unwrap_or(0))
}

/// The splits of the job that begins: those that were being read are read on, by the subtask that takes over the records
/// of them that are in flight.
#[must_use]
pub fn splits(metadata: &v1::CheckpointMetadata, new: &JobGraph) -> Vec<v1::FileSplit> {
    let parallelism = new.vertices.first().map_or(1, |source| source.parallelism).max(1);
    let mut splits = metadata.splits.clone();
    for split in &mut splits {
        split.subtask = split.subtask.map(|subtask| subtask % parallelism);
    }
    let source = metadata.vertices.iter().filter(|vertex| vertex.vertex == 0).flat_map(|v| &v.subtasks);
    for part in source {
        let progress = part.snapshot.as_ref().and_then(|snapshot| snapshot.source.as_ref());
        let Some(reading) = progress.and_then(|progress| progress.reading) else { continue };
        if let Some(split) = splits.iter_mut().find(|split| split.id == reading.split) {
            split.resume = reading.position.or(split.resume);
            split.subtask = Some(part.subtask % parallelism);
        }
    }
    splits
}

/// Whether each subtask holds what it held before.
fn is_same(before: &Vertex, vertex: &Vertex) -> bool {
    let routes = |vertex: &Vertex| -> Vec<_> {
        let enrich = |operator: &OperatorSpec| match operator {
            OperatorSpec::Enrich(enrich) => Some((enrich.order, enrich.key.clone())),
            _ => None,
        };
        vertex.operators.iter().map(enrich).collect()
    };
    before.parallelism == vertex.parallelism
        && names(before).eq(names(vertex))
        && routes(before) == routes(vertex)
}

/// Names by which operators of two job files are the same. A source is one, whatever its path.
fn names(vertex: &Vertex) -> impl Iterator<Item = String> + '_ {
    vertex.operators.iter().map(|operator| match operator {
        OperatorSpec::Source(SourceOptions::File(_)) => "source".to_owned(),
        other => other.name(),
    })
}

fn steps(vertex: &Vertex) -> impl Iterator<Item = &str> {
    vertex.operators.iter().filter_map(|operator| match operator {
        OperatorSpec::Enrich(enrich) => Some(enrich.name.as_str()),
        _ => None,
    })
}

fn has_step(vertex: &Vertex, name: &str) -> bool {
    steps(vertex).any(|step| step == name)
}

fn sink(vertex: &Vertex) -> Option<&FileSinkOptions> {
    match vertex.operators.last() {
        Some(OperatorSpec::Sink(SinkOptions::File(sink))) => Some(sink),
        _ => None,
    }
}
