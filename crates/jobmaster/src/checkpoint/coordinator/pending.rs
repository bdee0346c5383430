//! A checkpoint whose parts come in.

use std::collections::BTreeMap;

use runtime_core::{AttemptId, EpochMillis, ResourceId, Tick};
use wire::v1;

use super::request::{Request, Stop};
use super::{Ack, AttemptsByPlace};
use crate::counts::add_records;
use crate::scheduler::Now;
use crate::splits::reading_of;

/// Who takes part in a checkpoint, and what is known of it beforehand.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The metadata without the subtasks' parts: vertices, all splits, those finished by earlier attempts, and in the
    /// figures what earlier attempts have asked of others.
    pub frame: v1::CheckpointMetadata,
    /// Every subtask of the job.
    pub participants: Vec<Participant>,
}

impl Plan {
    /// Whether every subtask has finished.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.participants.iter().all(|participant| matches!(participant.part, Part::Finished(_)))
    }
}

/// A subtask as it takes part.
#[derive(Debug, Clone)]
pub struct Participant {
    /// Its attempt.
    pub attempt: AttemptId,
    /// What earlier attempts had counted when this one began.
    pub base: v1::Figures,
    /// Of a source that began again: the split that it was to read on.
    pub resumed: Option<v1::SplitPosition>,
    /// Whether it still has to say something.
    pub part: Part,
}

/// What a subtask adds.
#[derive(Debug, Clone)]
pub enum Part {
    /// It runs there, and has to acknowledge.
    Running(ResourceId),
    /// It has finished with this.
    Finished(Box<v1::TaskSnapshot>),
}

/// One subtask's part as it is known.
#[derive(Debug)]
enum Known {
    Waiting(ResourceId),
    There { finished: bool, snapshot: Box<v1::TaskSnapshot> },
}

/// A checkpoint that has begun.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: u64,
    pub(super) begun: Tick,
    /// Somebody has asked for it.
    pub(super) request: Option<Request>,
    begun_at: EpochMillis,
    frame: v1::CheckpointMetadata,
    parts: BTreeMap<AttemptId, Of>,
}

/// What is known of one subtask.
#[derive(Debug)]
struct Of {
    base: v1::Figures,
    resumed: Option<v1::SplitPosition>,
    known: Known,
}

impl Pending {
    pub(super) fn new(id: u64, request: Option<Request>, plan: Plan, now: Now) -> Self {
        let parts = plan.participants.into_iter().map(|participant| {
            let known = match participant.part {
                Part::Running(place) => Known::Waiting(place),
                Part::Finished(snapshot) => Known::There { finished: true, snapshot },
            };
            (participant.attempt, Of { base: participant.base, resumed: participant.resumed, known })
        });
        Self { id, begun: now.tick, request, begun_at: now.wall, frame: plan.frame, parts: parts.collect() }
    }

    /// Of a savepoint: its folder, and how the job ends with it.
    pub(super) fn savepoint(&self) -> Option<(&str, Option<Stop>)> {
        self.request.as_ref()?.wanted.savepoint()
    }

    pub(super) fn acknowledge(
        &mut self,
        attempt: &AttemptId,
        snapshot: v1::TaskSnapshot,
        finished: bool,
    ) -> Ack {
        match self.parts.get_mut(attempt) {
            None => Ack::Unknown,
            Some(Of { known: Known::There { .. }, .. }) => Ack::Duplicate,
            Some(of) => {
                of.known = Known::There { finished, snapshot: Box::new(snapshot) };
                Ack::Success
            }
        }
    }

    pub(super) fn takes_part(&self, attempt: &AttemptId) -> bool {
        self.parts.contains_key(attempt)
    }

    pub(super) fn subtasks(&self) -> u32 {
        u32::try_from(self.parts.len()).unwrap_or(u32::MAX)
    }

    fn there(&self) -> impl Iterator<Item = &v1::TaskSnapshot> {
        self.parts.values().filter_map(|of| match &of.known {
            Known::There { snapshot, .. } => Some(&**snapshot),
            Known::Waiting(_) => None,
        })
    }

    pub(super) fn acknowledged(&self) -> u32 {
        u32::try_from(self.there().count()).unwrap_or(u32::MAX)
    }

    pub(super) fn state_size(&self) -> u64 {
        self.there().filter_map(|snapshot| snapshot.state.as_ref()).map(|state| state.length).sum()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.parts.values().all(|of| matches!(of.known, Known::There { .. }))
    }

    pub(super) fn waiting(&self) -> AttemptsByPlace {
        let mut waiting = AttemptsByPlace::new();
        for (attempt, of) in &self.parts {
            if let Known::Waiting(place) = &of.known {
                waiting.entry(place.clone()).or_default().push(*attempt);
            }
        }
        waiting
    }

    /// The attempts that are waited for, with their places.
    pub(super) fn missing(&self) -> String {
        let missing = self.parts.iter().filter_map(|(attempt, of)| match &of.known {
            Known::Waiting(place) => Some(format!("{attempt} on {place}")),
            Known::There { .. } => None,
        });
        missing.collect::<Vec<_>>().join(", ")
    }

    /// All of the checkpoint. The figures of each subtask are those of all its attempts, so that a later one can count on.
    pub(super) fn metadata(&self, completed_at: EpochMillis) -> v1::CheckpointMetadata {
        let mut metadata = self.frame.clone();
        metadata.checkpoint = self.id;
        metadata.savepoint = self.savepoint().is_some();
        // The input of a drained job has not ended, it was only left there.
        let drained = self.savepoint().is_some_and(|(_, stop)| stop == Some(Stop::Drain));
        metadata.begun_at = self.begun_at.0;
        metadata.completed_at = completed_at.0;
        let mut sum = metadata.figures.unwrap_or_default();
        for (attempt, Of { base, resumed, known }) in &self.parts {
            let Known::There { finished, snapshot } = known else { continue };
            let mut snapshot = (**snapshot).clone();
            let mut figures = snapshot.figures.take().unwrap_or_default();
            sum.calls += figures.calls;
            sum.retries += figures.retries;
            sum.timeouts += figures.timeouts;
            add_records(&mut figures, base);
            add_records(&mut sum, &figures);
            snapshot.figures = Some(figures);
            let reading = reading_of(snapshot.source.as_ref(), *resumed);
            if reading.is_some() || snapshot.source.is_some() {
                let source = snapshot.source.get_or_insert_default();
                source.reading = reading;
                metadata.finished_splits.extend(&source.finished);
            }
            if let Some(vertex) = metadata.vertices.iter_mut().find(|v| v.vertex == attempt.vertex.0) {
                vertex.subtasks.push(v1::SubtaskSnapshot {
                    subtask: attempt.subtask,
                    finished: *finished && !drained,
                    snapshot: Some(snapshot),
                });
            }
        }
        metadata.finished_splits.sort_unstable();
        metadata.finished_splits.dedup();
        metadata.figures = Some(sum);
        metadata
    }
}
