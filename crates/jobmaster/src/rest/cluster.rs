//! The cluster: what the resource manager says, or said last.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use runtime_core::{Clock, JobId, Tick};
use serde_json::{Value, json};
use wire::{ResourceManagerGateway, v1};

use super::Api;
use super::errors::ApiError;
use crate::status::JobStatus;

/// How long the resource manager is waited for before its last answer is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the resource manager, and remembers what it said last.
pub(crate) struct ClusterSource {
    gateway: Arc<dyn ResourceManagerGateway>,
    last: RwLock<Option<(Tick, v1::ClusterDescription)>>,
}

impl ClusterSource {
    pub(crate) fn new(gateway: Arc<dyn ResourceManagerGateway>) -> Self {
        Self { gateway, last: RwLock::new(None) }
    }

    /// The cluster and how old that answer is.
    async fn describe(&self, clock: &impl Clock) -> Result<(v1::ClusterDescription, Duration), ApiError> {
        let asked = self.gateway.describe_cluster(v1::DescribeClusterRequest {});
        let error = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(cluster)) => {
                let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
                *last = Some((clock.now(), cluster.clone()));
                return Ok((cluster, Duration::ZERO));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        match last.as_ref() {
            Some((at, cluster)) => Ok((cluster.clone(), clock.now().since(*at))),
            None => Err(ApiError::unavailable(format!("the resource manager has not answered yet: {error}"))),
        }
    }
}

pub(crate) async fn overview(State(api): State<Api>) -> Result<Json<Value>, ApiError> {
    let (cluster, age) = api.cluster.describe(&api.clock).await?;
    let sum = |of: fn(&v1::TaskExecutorDescription) -> u32| -> u64 {
        cluster.task_executors.iter().map(|t| u64::from(of(t))).sum()
    };
    let past = api.dispatcher.past();
    let views = api.dispatcher.all();
    let ended = |status: JobStatus| {
        let past = past.iter().filter(|p| p.result.state == status.as_str());
        let past = past.filter(|p| !views.iter().any(|v| v.id.to_string() == p.result.job_id)).count();
        past + views.iter().filter(|v| v.status == status).count()
    };
    Ok(Json(json!({
        "taskmanagers": cluster.task_executors.len(),
        "taskmanagers-blocked": 0,
        "numPendingTaskManagers": cluster.pending_workers,
        "workerTrouble": worker_trouble(&cluster),
        "slots-total": sum(|t| t.slots),
        "slots-available": sum(|t| t.free_slots),
        "slots-free-and-blocked": 0,
        "jobs-running": views.iter().filter(|v| !v.status.is_terminal()).count(),
        "jobs-finished": ended(JobStatus::Finished),
        "jobs-cancelled": ended(JobStatus::Canceled),
        "jobs-failed": ended(JobStatus::Failed),
        "resourceManagerAgeMs": millis(age),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

/// Why jobs lack slots and get none; null where nothing is known.
fn worker_trouble(cluster: &v1::ClusterDescription) -> Option<&str> {
    Some(cluster.worker_trouble.as_str()).filter(|trouble| !trouble.is_empty())
}

pub(crate) async fn config() -> Json<Value> {
    Json(json!({
        "refresh-interval": 3000,
        "timezone-name": "UTC",
        "timezone-offset": 0,
        "version": env!("CARGO_PKG_VERSION"),
        "features": {"web-submit": false, "web-cancel": false, "web-rescale": false, "web-history": false},
    }))
}

pub(crate) async fn task_managers(State(api): State<Api>) -> Result<Json<Value>, ApiError> {
    let (cluster, age) = api.cluster.describe(&api.clock).await?;
    let all: Vec<Value> = cluster.task_executors.iter().map(|t| shown(t, age)).collect();
    Ok(Json(json!({
        "taskmanagers": all,
        "numPendingTaskManagers": cluster.pending_workers,
        "workerTrouble": worker_trouble(&cluster),
        "resourceManagerAgeMs": millis(age),
    })))
}

pub(crate) async fn task_manager(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let (cluster, age) = api.cluster.describe(&api.clock).await?;
    let found = cluster.task_executors.iter().find(|t| t.resource_id == id);
    let task_executor =
        found.ok_or_else(|| ApiError::not_found(format!("there is no task executor `{id}`")))?;
    let mut value = shown(task_executor, age);
    let allocated: Vec<Value> = task_executor
        .slot_status
        .iter()
        .filter_map(|slot| JobId::try_from(slot.job_id.as_ref()).ok().map(|job| (slot.index, job)))
        .map(|(index, job)| json!({ "index": index, "jobId": job.to_string() }))
        .collect();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("allocatedSlots".into(), Value::Array(allocated));
    }
    Ok(Json(value))
}

fn shown(t: &v1::TaskExecutorDescription, age: Duration) -> Value {
    json!({
        "id": t.resource_id,
        "path": t.rpc_address,
        "dataPort": t.data_address.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse::<u16>().ok()),
        "dataAddress": t.data_address,
        // As in Flink this is the moment of the last heartbeat, whatever the name says; 0 before the first.
        "timeSinceLastHeartbeat": t.last_heartbeat,
        "heartbeatAgeMs": t.heartbeat_age_ms.saturating_add(millis(age)),
        // ALIVE, SUSPECT, or for a moment why it is given up.
        "livenessState": t.liveness,
        "livenessReason": Some(&t.liveness_reason).filter(|reason| !reason.is_empty()),
        "mainLoopAgeMs": t.main_loop_age_ms,
        // Of the adaptive detector; null with the fixed one.
        "phi": t.phi,
        "slotsNumber": t.slots,
        "freeSlots": t.free_slots,
        "hardware": {"cpuCores": t.cpu_cores, "physicalMemory": t.memory_bytes},
        "calls": t.rust_calls,
        "blocked": false,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
