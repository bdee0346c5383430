//! The workers that are started on demand: what the pool wants is carried out, and what becomes of them is told to it.

use std::sync::Arc;

use controller_events::Handle;
use runtime_core::ResourceId;
use runtime_core::metrics::Observe;
use wire::registration::{self, Registered};

use super::{ResourceManagerProcessor, schedule};
use crate::event::RmEvent;
use crate::workers::{DriverEvent, End, PoolEffect, StopReason, WorkerDriver, WorkerMetrics, WorkerPool};

/// A pool of workers with what starts and stops them.
pub(crate) struct Workers {
    pool: WorkerPool,
    driver: Arc<dyn WorkerDriver>,
    metrics: Arc<WorkerMetrics>,
}

impl Workers {
    pub(crate) fn new(pool: WorkerPool, driver: Arc<dyn WorkerDriver>) -> Self {
        Self { pool, driver, metrics: Arc::default() }
    }

    pub(super) fn metrics(&self) -> Arc<dyn Observe> {
        Arc::clone(&self.metrics) as _
    }

    pub(super) fn pending(&self) -> u32 {
        self.pool.pending()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.pool.trouble().map(str::to_owned)
    }
}

impl ResourceManagerProcessor {
    /// Tells the pool how things stand and carries out what follows.
    pub(super) fn settle_workers(&mut self, events: &Handle<RmEvent>) {
        let now = self.now();
        let Some(Workers { pool, driver, metrics }) = &mut self.parts.workers else { return };
        for (id, worker) in self.slots.workers() {
            pool.set_idle(id, worker.is_idle(), now);
        }
        let demand = self.slots.demand();
        pool.observe(demand, now);
        pool.advance(now);
        for effect in pool.take_effects() {
            match effect {
                PoolEffect::Start(id) => {
                    tracing::info!(worker = %id, missing = demand.missing, "starting a worker");
                    metrics.starts.increment();
                    driver.start(&id);
                }
                PoolEffect::Stop(id, why) => {
                    say_why(&id, &why);
                    metrics.stops.increment();
                    if matches!(why, StopReason::NotRegistered(_)) {
                        metrics.start_failures.increment();
                    }
                    // Its good-bye is on its way; until then nobody is to get a slot there.
                    if let Some(connection) = self.task_executors.get(&id) {
                        self.slots.remove_worker(&id, connection.instance, now);
                    }
                    driver.stop(&id);
                }
                PoolEffect::Full(text) => tracing::warn!("{text}"),
            }
        }
        metrics.running.set(pool.running().into());
        metrics.pending.set(pool.pending().into());
        metrics.missing_slots.set(demand.missing.into());
        metrics.set_failures_per_second(pool.failures_per_second(now));
        if let Some(at) = pool.next_wakeup() {
            schedule(events, "workers", at, RmEvent::WorkersDue);
        }
    }

    pub(super) fn workers_recovered(&mut self, ids: Vec<ResourceId>) {
        let now = self.now();
        if let Some(workers) = &mut self.parts.workers {
            workers.pool.recover(ids, now);
        }
    }

    /// What the driver says.
    pub(super) fn worker_event(&mut self, event: DriverEvent) {
        let now = self.now();
        match event {
            DriverEvent::Started(id) => {
                if let Some(workers) = &mut self.parts.workers {
                    workers.pool.started(&id, now);
                }
            }
            DriverEvent::NotStarted(id, cause) => self.worker_ended(&id, &cause),
            DriverEvent::Ended(id, ending) => self.worker_ended(&id, &ending.to_string()),
        }
    }

    fn worker_ended(&mut self, id: &ResourceId, cause: &str) {
        let now = self.now();
        let Some(Workers { pool, metrics, .. }) = &mut self.parts.workers else { return };
        metrics.ends.increment();
        match pool.ended(id, &format!("worker {id}: {cause}"), now) {
            End::Expected => tracing::info!(worker = %id, "a stopped worker has ended: {cause}"),
            End::Lost => tracing::warn!(worker = %id, "a worker is gone: {cause}"),
            End::Failed => {
                metrics.start_failures.increment();
                tracing::warn!(worker = %id, "a worker could not be started: {cause}");
            }
            End::Unknown => tracing::debug!(worker = %id, "an unknown worker has ended: {cause}"),
        }
        // Sooner than its streams or heartbeats could tell (C-053).
        if let Some(instance) = self.task_executors.get(id).map(|connection| connection.instance) {
            self.drop_task_executor(id, instance, &format!("the worker's process is gone: {cause}"));
        }
    }

    /// Never, if somebody is to be registered whom no driver of ours has started, or whom it is stopping (C-012): it would
    /// be counted, and nobody could stop it.
    pub(super) fn refuse_worker(&self, id: &ResourceId) -> Option<registration::Reply<Registered>> {
        let Workers { pool, metrics, .. } = self.parts.workers.as_ref()?;
        if pool.accepts(id) {
            return None;
        }
        metrics.rejected.increment();
        let reason = if pool.knows(id) {
            "it is being stopped".to_owned()
        } else {
            tracing::warn!(task_executor = %id, "rejected: only workers that this resource manager starts may register");
            "the resource manager starts its workers itself (worker.driver is not standalone) and has not started one of \
             this name"
                .to_owned()
        };
        Some(registration::Reply::Rejection(reason))
    }

    pub(super) fn worker_registered(&mut self, id: &ResourceId) {
        let now = self.now();
        if let Some(workers) = &mut self.parts.workers {
            workers.pool.registered(id, now);
        }
    }

    pub(super) fn worker_left(&mut self, id: &ResourceId) {
        let now = self.now();
        if let Some(workers) = &mut self.parts.workers {
            workers.pool.left(id, now);
        }
    }

    pub(super) fn give_up_worker(&mut self, id: &ResourceId) {
        let now = self.now();
        if let Some(workers) = &mut self.parts.workers {
            workers.pool.give_up(id, now);
        }
    }

    /// What runs goes on without a resource manager; what has nothing to do would only wait for one.
    pub(super) fn stop_workers_without_a_job(&self) {
        if let Some(Workers { pool, driver, .. }) = &self.parts.workers {
            pool.without_a_job().for_each(|id| driver.stop(id));
        }
    }
}

fn say_why(id: &ResourceId, why: &StopReason) {
    match why {
        StopReason::NotNeeded => tracing::info!(worker = %id, "stopping a worker that is no longer needed"),
        StopReason::Idle(time) => {
            tracing::info!(worker = %id, "stopping a worker that has had no job for {time:?}");
        }
        StopReason::NotRegistered(time) => tracing::warn!(
            worker = %id,
            "stopping a worker that has not registered within {time:?} (worker.registration-timeout); does its command \
             start a task executor with the arguments that it is given?"
        ),
        StopReason::Lost => tracing::warn!(worker = %id, "stopping a worker that is lost"),
    }
}
