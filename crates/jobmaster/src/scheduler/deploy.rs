//! From slots to running tasks.

use job::graph::Edge;
use runtime_core::{AttemptId, ResourceId, VertexId};

use super::{Deployment, Effect, Now, Phase, Scheduler, Timer};
use crate::execution::Execution;
use crate::status::JobStatus;

impl Scheduler {
    /// Begins to wait for slots.
    pub(super) fn wait_for_slots(&mut self, now: Now) {
        let slots = self.graph.slots();
        self.phase = Phase::WaitingForSlots;
        self.pool.require(slots);
        self.effects.push(Effect::Declare(slots));
        self.timer_number += 1;
        let deadline = now.tick + self.slot_request_timeout;
        self.effects.push(Effect::WakeAt(Timer::SlotRequest(self.timer_number), deadline));
        self.try_deploy(now);
    }

    /// Deploys everything once every group has a slot. Consumers go first, so that a producer's first records find
    /// somebody waiting for them.
    pub(super) fn try_deploy(&mut self, now: Now) {
        if self.phase != Phase::WaitingForSlots {
            return;
        }
        let Some(groups) = self.pool.assign(self.graph.slots()) else { return };
        self.place(&groups, now);
        self.phase = Phase::Executing;
        self.enter(JobStatus::Running, now);
        let mut deployments: Vec<Deployment> =
            self.executions.iter().filter_map(|execution| self.deployment(execution)).collect();
        deployments.reverse();
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
        })
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
