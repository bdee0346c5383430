//! The checkpoints of a job: what has become of them, and when they are made.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use job::options::CheckpointOptions;
use serde_json::{Value, json};

use super::Api;
use super::errors::ApiError;
use super::jobs::{Found, find};
use crate::checkpoint::{CheckpointEntry, CheckpointStats, CheckpointStatus, RestoredCheckpoint};

pub(crate) async fn checkpoints(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let stats = match find(&api, &id)? {
        Found::Here(view) => view.checkpoints.clone(),
        Found::Past(past) => {
            let mut stats = CheckpointStats::default();
            stats.completed = past.result.checkpoints;
            Some(stats)
        }
    };
    Ok(Json(document(stats.as_ref())))
}

pub(crate) async fn config(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let options = match find(&api, &id)? {
        Found::Here(view) => view.checkpoint_options.clone(),
        Found::Past(_) => None,
    };
    let none =
        || ApiError::not_found(format!("checkpoints of job {id} are not configured, or it is of before"));
    Ok(Json(configuration(&options.ok_or_else(none)?)))
}

pub(crate) fn configuration(options: &CheckpointOptions) -> Value {
    json!({
        "mode": "exactly_once",
        "interval": millis(options.interval),
        "timeout": millis(options.timeout),
        "max_concurrent": 1,
        // A checkpoint belongs to its job and goes with it.
        "externalization": {"enabled": false, "delete_on_cancellation": true},
        "checkpoint_storage": options.dir,
        "retained": options.retain,
        "unaligned_checkpoints": false,
        "checkpoints_after_tasks_finish": true,
    })
}

/// All counts are 0 where the job takes none.
pub(crate) fn document(stats: Option<&CheckpointStats>) -> Value {
    let none = CheckpointStats::default();
    let stats = stats.unwrap_or(&none);
    json!({
        "counts": {
            "restored": stats.restored,
            "total": stats.total(),
            "in_progress": stats.in_progress,
            "completed": stats.completed,
            "failed": stats.failed,
        },
        "latest": {
            "completed": stats.latest_completed.as_ref().map(entry),
            "savepoint": stats.latest_savepoint.as_ref().map(entry),
            "failed": stats.latest_failed.as_ref().map(entry),
            "restored": stats.latest_restored.as_ref().map(restored),
        },
        "history": stats.history().map(entry).collect::<Vec<_>>(),
    })
}

/// The last field tells how it ended; Flink shows it by the class of the document.
pub(crate) fn entry(entry: &CheckpointEntry) -> Value {
    let mut value = json!({
        "className": entry.status.as_str().to_lowercase(),
        "id": entry.id,
        "status": entry.status.as_str(),
        "is_savepoint": entry.savepoint,
        "trigger_timestamp": entry.triggered_at.0,
        // Flink's word for "none yet".
        "latest_ack_timestamp": entry.latest_ack_at.map_or(-1, |at| at.0),
        "checkpointed_size": entry.state_size,
        "state_size": entry.state_size,
        "end_to_end_duration": millis(entry.duration),
        "alignment_buffered": 0,
        "num_subtasks": entry.subtasks,
        "num_acknowledged_subtasks": entry.acknowledged,
        "checkpoint_type": if entry.savepoint { "SAVEPOINT" } else { "CHECKPOINT" },
    });
    let more = match &entry.status {
        CheckpointStatus::InProgress => json!({}),
        CheckpointStatus::Completed { path } => json!({ "external_path": path, "discarded": false }),
        CheckpointStatus::Failed { at, cause } => {
            json!({ "failure_timestamp": at.0, "failure_message": cause })
        }
    };
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), more) {
        fields.extend(more);
    }
    value
}

fn restored(restored: &RestoredCheckpoint) -> Value {
    json!({
        "id": restored.id,
        "restore_timestamp": restored.at.0,
        "is_savepoint": restored.savepoint,
        "external_path": restored.path,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
