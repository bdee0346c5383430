//! Checkpoints by hand: what a job master does about them, without one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use connectors::sink::file::commit;
use job::graph::JobGraph;
use runtime_core::{EpochMillis, VertexId};
use wire::v1;

use super::harness::Cluster;
use crate::task::{TaskHandle, TaskSnapshot, TaskState};

pub(super) type Handles = BTreeMap<(u32, u32), TaskHandle>;

/// A completed checkpoint: the part of every task, by vertex and subtask.
#[derive(Debug, Clone)]
pub(super) struct Completed {
    pub(super) checkpoint: u64,
    pub(super) parts: BTreeMap<(u32, u32), TaskSnapshot>,
    /// The splits that are read, those of earlier attempts included.
    pub(super) finished: BTreeSet<u32>,
    /// Of a savepoint: where its states are.
    pub(super) store: String,
}

impl Completed {
    /// What a subtask begins with: its own part, or where there are more or fewer subtasks now those of all.
    pub(super) fn for_subtask(&self, graph: &JobGraph, vertex: VertexId, subtask: u32) -> v1::RestoredState {
        let of_vertex = self.parts.iter().filter(|((of, _), _)| *of == vertex.0);
        let parallelism = of_vertex.clone().count() as u32;
        let same = parallelism == graph.vertices[vertex.0 as usize].parallelism;
        let given = of_vertex.filter(|((_, from), _)| !same || *from == subtask);
        let subtasks = given.map(|((_, from), part)| v1::RestoredSubtask {
            subtask: *from,
            state: part.state.clone(),
            committed_length: part.committed_length,
        });
        v1::RestoredState {
            checkpoint: self.checkpoint,
            subtasks: subtasks.collect(),
            parallelism,
            store: self.store.clone(),
            ..v1::RestoredState::default()
        }
    }

    /// Makes what all tasks have staged visible.
    pub(super) fn commit(&self) {
        self.parts.values().for_each(|part| commit(&part.staged).unwrap());
    }
}

impl Cluster {
    pub(super) fn trigger(&self, handles: &Handles, checkpoint: u64) {
        handles.values().for_each(|task| task.trigger(checkpoint, EpochMillis(1_000_000)));
    }

    /// The checkpoint, once every task has acknowledged it or finished; the first decline.
    pub(super) fn outcome(&self, handles: &Handles, checkpoint: u64) -> Option<Result<Completed, String>> {
        let mut parts = BTreeMap::new();
        for (place, task) in handles {
            let answers = self.answers.lock().unwrap();
            let mut own =
                answers.iter().filter(|a| a.attempt == task.attempt() && a.checkpoint == checkpoint);
            let answer = own.next().map(|answer| answer.outcome.clone());
            assert_eq!(own.next().map(|a| a.attempt), None, "a task answers once");
            drop(answers);
            let ended = self.terminal().into_iter().find(|event| event.attempt == task.attempt());
            match (answer, ended) {
                (Some(Ok(part)), _) => drop(parts.insert(*place, part)),
                (Some(Err(cause)), _) => return Some(Err(cause)),
                (None, Some(ended)) if ended.state == TaskState::Finished => {
                    parts.insert(*place, *ended.last.unwrap());
                }
                (None, _) => return None,
            }
        }
        Some(Ok(self.completed(checkpoint, parts)))
    }

    /// What earlier attempts have read is read.
    pub(super) fn completed(&self, checkpoint: u64, parts: BTreeMap<(u32, u32), TaskSnapshot>) -> Completed {
        let mut finished = self.restore.as_ref().map_or_else(BTreeSet::new, |before| before.finished.clone());
        finished.extend(parts.values().filter_map(|part| part.source.as_ref()).flat_map(|s| &s.finished));
        Completed { checkpoint, parts, finished, store: String::new() }
    }

    /// Takes a checkpoint, within this time of the paused clock.
    pub(super) async fn checkpoint_within(
        &self,
        handles: &Handles,
        checkpoint: u64,
        limit: Duration,
    ) -> Result<Completed, String> {
        self.trigger(handles, checkpoint);
        let taken = async {
            loop {
                if let Some(outcome) = self.outcome(handles, checkpoint) {
                    return outcome;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(limit, taken).await.unwrap_or_else(|_| {
            panic!("checkpoint {checkpoint} is not complete within {limit:?}: {:?}", self.terminal())
        })
    }

    /// Takes a checkpoint that completes within a second, makes its output visible and tells the tasks.
    pub(super) async fn checkpoint(&self, handles: &Handles, checkpoint: u64) -> Completed {
        let completed = self.checkpoint_within(handles, checkpoint, Duration::from_secs(1)).await.unwrap();
        completed.commit();
        handles.values().for_each(|task| task.confirm(checkpoint));
        completed
    }

    /// Stops all tasks as a crash would, and makes the next deployment begin with this checkpoint.
    pub(super) async fn crash(&mut self, handles: &Handles, restore: Option<Completed>) {
        handles.values().for_each(TaskHandle::cancel);
        self.ended(handles.len()).await;
        self.events.lock().unwrap().clear();
        self.answers.lock().unwrap().clear();
        self.life += 1;
        self.restore = restore;
    }

    /// Waits until all tasks have finished, and makes their last output visible.
    pub(super) async fn finish(&self, handles: &Handles) {
        for event in self.ended(handles.len()).await {
            assert_eq!((event.state, &event.error), (TaskState::Finished, &None), "{}", event.attempt);
            commit(&event.last.unwrap().staged).unwrap();
        }
    }
}
