//! From slots to running tasks.

use std::collections::{BTreeMap, BTreeSet};

use job::graph::Edge;
use runtime_core::{AttemptId, ResourceId, VertexId};
use wire::v1;

use super::regions::RegionPhase;
use super::{Deployment, Effect, Now, Phase, Scheduler, Timer};
use crate::execution::{Execution, Location};
use crate::slot_pool::PooledSlot;
use crate::status::{ExecutionState, JobStatus};

impl Scheduler {
    /// Regions begin to wait for slots.
    pub(super) fn wait_for_slots(&mut self, regions: &BTreeSet<usize>, now: Now) {
        if regions.is_empty() {
            return;
        }
        self.declare_slots();
        self.timer_number += 1;
        self.regions.set(regions, RegionPhase::Waiting(self.timer_number));
        let deadline = now.tick + self.slot_request_timeout;
        self.effects.push(Effect::WakeAt(Timer::SlotRequest(self.timer_number), deadline));
    }

    pub(super) fn declare_slots(&mut self) {
        let slots = self.graph.slots();
        self.pool.require(slots);
        self.effects.push(Effect::Declare(slots));
    }

    /// Deploys the regions that wait, once every group of them has a slot; if there are too few for all of them after
    /// failures, those for which there are enough.
    pub(super) fn try_deploy(&mut self, now: Now) {
        if self.phase != Phase::Active {
            return;
        }
        let waiting = self.regions.select(|region| matches!(region.phase, RegionPhase::Waiting(_)));
        if waiting.is_empty() {
            return;
        }
        if let Some(groups) = self.pool.assign(&self.regions.groups(&waiting)) {
            self.deploy(&waiting, &groups, now);
        } else if self.status == JobStatus::Restarting {
            for index in waiting {
                let region = BTreeSet::from([index]);
                if let Some(groups) = self.pool.assign(&self.regions.groups(&region)) {
                    self.deploy(&region, &groups, now);
                }
            }
        }
        if self.regions.all_executing() {
            self.enter(JobStatus::Running, now);
            self.checkpoints.start(now);
        }
    }

    /// Consumers go first, so that a producer's first records find somebody waiting for them.
    fn deploy(&mut self, regions: &BTreeSet<usize>, groups: &BTreeMap<u32, PooledSlot>, now: Now) {
        let mut members = self.regions.members(regions);
        members.sort_unstable();
        for member in &members {
            let (Some(execution), Some(slot)) = (self.executions.get_mut(*member), groups.get(&member.1))
            else {
                continue;
            };
            execution.state = ExecutionState::Deploying;
            execution.started_at = Some(now.wall);
            execution.location =
                Some(Location { allocation: slot.allocation, task_executor: slot.task_executor.clone() });
        }
        self.regions.set(regions, RegionPhase::Executing);
        let executions = members.iter().rev().filter_map(|member| self.executions.get(*member));
        let deployments: Vec<Deployment> = executions.filter_map(|e| self.deployment(e)).collect();
        self.effects.extend(deployments.into_iter().map(|d| Effect::Submit(Box::new(d))));
    }

    fn deployment(&self, execution: &Execution) -> Option<Deployment> {
        let location = execution.location.as_ref()?;
        let vertex = execution.id.vertex;
        Some(Deployment {
            attempt: execution.id,
            allocation: location.allocation,
            task_executor: location.task_executor.clone(),
            inputs: self.edges(|e| e.to == vertex).map(|e| (e.id, self.attempts(e.from))).collect(),
            outputs: self.edges(|e| e.from == vertex).map(|e| (e.id, self.placed(e.to))).collect(),
            restore: self.restored_state(execution),
        })
    }

    /// What a subtask has of the latest checkpoint, or of the savepoint that the job began with.
    fn restored_state(&self, execution: &Execution) -> Option<v1::RestoredState> {
        let (vertex, subtask) = execution.subtask();
        let parallelism = self.graph.vertices.get(vertex.0 as usize).map_or(0, |v| v.parallelism);
        self.checkpoints.latest()?.restored_state(vertex, subtask, parallelism)
    }

    fn edges(&self, wanted: impl Fn(&Edge) -> bool) -> impl Iterator<Item = &Edge> {
        self.graph.edges.iter().filter(move |edge| wanted(edge))
    }

    fn attempts(&self, vertex: VertexId) -> Vec<AttemptId> {
        self.executions.of_vertex(vertex).iter().map(|e| e.id).collect()
    }

    fn placed(&self, vertex: VertexId) -> Vec<(AttemptId, ResourceId)> {
        let of = |e: &Execution| Some((e.id, e.location.as_ref()?.task_executor.clone()));
        self.executions.of_vertex(vertex).iter().filter_map(of).collect()
    }
}
