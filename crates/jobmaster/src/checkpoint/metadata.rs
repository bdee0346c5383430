//! A completed checkpoint as the scheduler restores from it.

use std::collections::BTreeSet;

use runtime_core::VertexId;
use wire::v1;

use super::{CheckpointPointer, Mapping};
use crate::counts::records_of;

/// A completed checkpoint: what is remembered of it and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedCheckpoint {
    /// Where it is.
    pub pointer: CheckpointPointer,
    /// What it consists of.
    pub metadata: v1::CheckpointMetadata,
    /// Of a savepoint of another job: what this one's subtasks begin with.
    pub mapping: Option<Box<Mapping>>,
}

impl CompletedCheckpoint {
    /// A checkpoint of the job itself.
    #[must_use]
    pub fn own(pointer: CheckpointPointer, metadata: v1::CheckpointMetadata) -> Self {
        Self { pointer, metadata, mapping: None }
    }

    /// What a subtask begins with, of so many; less what concerns only the job master.
    #[must_use]
    pub fn restored_state(
        &self,
        vertex: VertexId,
        subtask: u32,
        parallelism: u32,
    ) -> Option<v1::RestoredState> {
        if let Some(mapping) = &self.mapping {
            return mapping.state((vertex, subtask)).cloned();
        }
        let snapshot = self.subtask(vertex, subtask)?.snapshot.as_ref()?;
        let (state, committed_length) = (snapshot.state.clone(), snapshot.committed_length);
        Some(v1::RestoredState {
            checkpoint: self.pointer.id,
            subtasks: vec![v1::RestoredSubtask { subtask, state, committed_length }],
            parallelism,
            ..v1::RestoredState::default()
        })
    }

    /// The counts of records with which a subtask begins.
    #[must_use]
    pub fn records(&self, vertex: VertexId, subtask: u32) -> v1::Figures {
        let figures = match &self.mapping {
            Some(mapping) => mapping.figures((vertex, subtask)),
            None => self.subtask(vertex, subtask).and_then(|s| s.snapshot.as_ref()?.figures.as_ref()),
        };
        figures.map(records_of).unwrap_or_default()
    }

    /// One subtask's part; of another job's savepoint none is.
    #[must_use]
    pub fn subtask(&self, vertex: VertexId, subtask: u32) -> Option<&v1::SubtaskSnapshot> {
        if self.mapping.is_some() {
            return None;
        }
        let vertex = self.metadata.vertices.iter().find(|v| v.vertex == vertex.0)?;
        vertex.subtasks.iter().find(|s| s.subtask == subtask)
    }

    /// Everything that sinks have staged in it, in order within each. That of a savepoint is visible before the job begins.
    #[must_use]
    pub fn staged(&self) -> Vec<v1::StagedFile> {
        if self.mapping.is_some() {
            return Vec::new();
        }
        staged(&self.metadata)
    }

    /// Whether every subtask had come to the end of its input.
    #[must_use]
    pub fn all_finished(&self) -> bool {
        let mut subtasks = self.metadata.vertices.iter().flat_map(|v| &v.subtasks);
        self.mapping.is_none() && subtasks.all(|s| s.finished)
    }

    /// The splits that are read to their end.
    #[must_use]
    pub fn finished_splits(&self) -> BTreeSet<u32> {
        self.metadata.finished_splits.iter().copied().collect()
    }

    /// Of each source subtask, the split that it reads. Of a savepoint the splits themselves say where to read on.
    pub fn reading(&self) -> impl Iterator<Item = (u32, &v1::SplitPosition)> {
        let own = self.mapping.is_none();
        let subtasks =
            self.metadata.vertices.iter().filter(move |v| own && v.vertex == 0).flat_map(|v| &v.subtasks);
        subtasks.filter_map(|s| Some((s.subtask, s.snapshot.as_ref()?.source.as_ref()?.reading.as_ref()?)))
    }
}

/// Everything that sinks have staged.
pub(crate) fn staged(metadata: &v1::CheckpointMetadata) -> Vec<v1::StagedFile> {
    let subtasks = metadata.vertices.iter().flat_map(|v| &v.subtasks);
    subtasks.filter_map(|s| s.snapshot.as_ref()).flat_map(|s| s.staged.iter().cloned()).collect()
}
