//! A savepoint of one job as another one begins with it.
//!
//! The other job's file may say another parallelism or order, and its chains may be cut at other places, so that vertices
//! and subtasks of the two are not the same. What belongs together is found by the names of steps and sinks. Where a step
//! has as many subtasks as before and records reach them in the same way, each takes its own part. Otherwise each is
//! given the parts of all, and takes what is its own by key group.

use std::collections::BTreeMap;

use job::graph::{JobGraph, OperatorSpec, Vertex};
use job::options::{FileSinkOptions, SourceOptions};
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
    let holds = |before: &&(&Vertex, &v1::VertexSnapshot)| {
        before.0.steps().any(|step| vertex.steps().any(|now| now.name == step.name))
    };
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
    if let Some(sink) = vertex.sink()
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
    let same = |vertex: &Vertex| vertex.sink().is_some_and(|s| s.path == sink.path && s.parts == sink.parts);
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

#[cfg(test)]
mod tests {
    use job::file::JobFile;

    use super::*;

    fn graph(parallelism: u32, order: &str, sink: &str) -> JobGraph {
        let text = format!(
            "name: j\nparallelism: {parallelism}\nsource: {{file: {{path: /in/}}}}\nsteps:\n  - enrich:\n      \
             {{name: e, order: {order}, key: k, into: a, call: {{table: {{file: /t.jsonl, key: k, by: k}}}}}}\n\
             sink: {{file: {{path: {sink}}}}}\n"
        );
        job::plan::plan(&JobFile::parse(&text, "j.yaml").unwrap()).unwrap()
    }

    fn handle(name: &str) -> v1::StateHandle {
        let place = Some(v1::state_handle::Place::Object(name.to_owned()));
        v1::StateHandle { place, length: 1, checksum: 0 }
    }

    /// Of a job that is two wide: source, step and sink are vertices of their own.
    fn metadata(old: &JobGraph) -> v1::CheckpointMetadata {
        let part = |vertex: u32, subtask: u32| {
            let figures = Some(v1::Figures { records_in: 5, ..v1::Figures::default() });
            let mut snapshot = v1::TaskSnapshot { figures, ..v1::TaskSnapshot::default() };
            match vertex {
                0 => {
                    let position = Some(v1::ReadPosition { offset: 100, line: 9 });
                    let reading = Some(v1::SplitPosition { split: subtask + 1, position });
                    snapshot.source = Some(v1::SourceProgress { finished: Vec::new(), reading });
                }
                1 => snapshot.state = Some(handle(&format!("step-{subtask}"))),
                _ => snapshot.committed_length = 77,
            }
            v1::SubtaskSnapshot { subtask, finished: false, snapshot: Some(snapshot) }
        };
        let vertices = old.vertices.iter().map(|vertex| v1::VertexSnapshot {
            vertex: vertex.id.0,
            parallelism: vertex.parallelism,
            subtasks: (0..vertex.parallelism).map(|subtask| part(vertex.id.0, subtask)).collect(),
            ..v1::VertexSnapshot::default()
        });
        v1::CheckpointMetadata {
            checkpoint: 9,
            vertices: vertices.collect(),
            splits: (0..4).map(|id| v1::FileSplit { id, ..v1::FileSplit::default() }).collect(),
            finished_splits: vec![0],
            ..v1::CheckpointMetadata::default()
        }
    }

    /// What a subtask begins with: the states by their names, the length that it continues, whether it shares.
    fn begins(new: &JobGraph, vertex: u32, subtask: u32) -> (Vec<String>, u64, bool) {
        let old = graph(2, "keyed", "/out.jsonl");
        assert_eq!(old.vertices.len(), 3);
        let mapping = Mapping::of(&metadata(&old), "file:///s", &old, new);
        let state = mapping.state((VertexId(vertex), subtask)).unwrap().clone();
        assert_eq!((state.checkpoint, state.store.as_str()), (9, "file:///s"));
        let name = |part: &v1::RestoredSubtask| match part.state.as_ref()?.place.as_ref()? {
            v1::state_handle::Place::Object(name) => Some(name.clone()),
            v1::state_handle::Place::Inline(_) => None,
        };
        let names = state.subtasks.iter().filter_map(name).collect();
        (names, state.subtasks.iter().map(|part| part.committed_length).max().unwrap_or(0), state.of_all)
    }

    #[test]
    fn a_subtask_takes_its_own_part_where_nothing_has_changed_and_else_its_share_of_all() {
        let same = graph(2, "keyed", "/out.jsonl");
        assert_eq!(begins(&same, 1, 1), (vec!["step-1".into()], 0, false));
        let wider = graph(3, "keyed", "/out.jsonl");
        assert_eq!(begins(&wider, 1, 2), (vec!["step-0".into(), "step-1".into()], 0, true));
        // As many, but records do not reach them by their keys any more.
        let other = graph(2, "unordered", "/out.jsonl");
        assert_eq!(begins(&other, 0, 1), (vec!["step-0".into(), "step-1".into()], 0, true));
    }

    #[test]
    fn what_belongs_together_is_found_by_name_where_chains_are_cut_elsewhere() {
        let one = graph(1, "keyed", "/out.jsonl");
        assert_eq!(one.vertices.len(), 1);
        assert_eq!(begins(&one, 0, 0), (vec!["step-0".into(), "step-1".into()], 77, true));
        assert_eq!(begins(&graph(1, "keyed", "/other.jsonl"), 0, 0).1, 0, "another output begins empty");
        assert_eq!(begins(&graph(3, "keyed", "/out.jsonl"), 2, 0).1, 77);
    }

    #[test]
    fn a_split_is_read_on_by_the_subtask_that_takes_over_what_is_in_flight_of_it() {
        let old = graph(2, "keyed", "/out.jsonl");
        for (parallelism, readers) in [(1, [Some(0), Some(0)]), (3, [Some(0), Some(1)])] {
            let splits = splits(&metadata(&old), &graph(parallelism, "keyed", "/out.jsonl"));
            assert_eq!([splits[1].subtask, splits[2].subtask], readers);
            assert!(splits[1].resume.is_some() && splits[2].resume.is_some());
            assert_eq!((splits[3].resume, splits[3].subtask), (None, None));
        }
    }

    #[test]
    fn the_counts_of_records_go_on() {
        let old = graph(2, "keyed", "/out.jsonl");
        for parallelism in [1, 2, 3] {
            let new = graph(parallelism, "keyed", "/out.jsonl");
            let mapping = Mapping::of(&metadata(&old), "file:///s", &old, &new);
            let read: u64 = mapping.figures.values().map(|figures| figures.records_in).sum();
            assert_eq!(read, 25, "five subtasks of five each");
        }
    }
}
