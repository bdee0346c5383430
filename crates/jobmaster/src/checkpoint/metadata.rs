//! A completed checkpoint as the scheduler restores from it.

use std::collections::BTreeSet;

use runtime_core::VertexId;
use wire::v1;

use super::CheckpointPointer;

/// A completed checkpoint: what is remembered of it and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedCheckpoint {
    /// Where it is.
    pub pointer: CheckpointPointer,
    /// What it consists of.
    pub metadata: v1::CheckpointMetadata,
}

impl CompletedCheckpoint {
    /// One subtask's part.
    #[must_use]
    pub fn subtask(&self, vertex: VertexId, subtask: u32) -> Option<&v1::SubtaskSnapshot> {
        let vertex = self.metadata.vertices.iter().find(|v| v.vertex == vertex.0)?;
        vertex.subtasks.iter().find(|s| s.subtask == subtask)
    }

    /// Everything that sinks have staged in it, in order within each.
    #[must_use]
    pub fn staged(&self) -> Vec<v1::StagedFile> {
        staged(&self.metadata)
    }

    /// Whether every subtask had come to the end of its input.
    #[must_use]
    pub fn all_finished(&self) -> bool {
        self.metadata.vertices.iter().flat_map(|v| &v.subtasks).all(|s| s.finished)
    }

    /// The splits that are read to their end.
    #[must_use]
    pub fn finished_splits(&self) -> BTreeSet<u32> {
        self.metadata.finished_splits.iter().copied().collect()
    }

    /// Of each source subtask, the split that it reads.
    pub fn reading(&self) -> impl Iterator<Item = (u32, &v1::SplitPosition)> {
        let subtasks = self.metadata.vertices.iter().filter(|v| v.vertex == 0).flat_map(|v| &v.subtasks);
        subtasks.filter_map(|s| Some((s.subtask, s.snapshot.as_ref()?.source.as_ref()?.reading.as_ref()?)))
    }
}

/// Everything that sinks have staged.
pub(crate) fn staged(metadata: &v1::CheckpointMetadata) -> Vec<v1::StagedFile> {
    let subtasks = metadata.vertices.iter().flat_map(|v| &v.subtasks);
    subtasks.filter_map(|s| s.snapshot.as_ref()).flat_map(|s| s.staged.iter().cloned()).collect()
}
