//! A job's restarts and checkpoints at `/metrics`, as its view shows them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use runtime_core::metrics::{Observe, Visit};

use super::view::JobView;

/// The metrics of one job. Flink: `numRestarts`, `lastCompletedCheckpointId`, `lastCheckpointDuration`,
/// `lastCheckpointSize`, `numberOfCompletedCheckpoints`, `numberOfFailedCheckpoints`.
pub(crate) struct JobMetrics(pub(crate) Arc<ArcSwap<JobView>>);

impl Observe for JobMetrics {
    fn observe(&self, visit: &mut dyn Visit) {
        let view = self.0.load();
        let id = view.id.to_string();
        let labels = [("job", id.as_str())];
        let restarts = "How often the job was begun again.";
        visit.counter("jobmaster_job_restarts", restarts, &labels, view.restarts);
        let Some(checkpoints) = &view.checkpoints else { return };
        let completed = "Checkpoints of the job that were completed.";
        visit.counter("jobmaster_checkpoints_completed", completed, &labels, checkpoints.completed);
        let failed = "Checkpoints of the job that were given up in this term.";
        visit.counter("jobmaster_checkpoints_failed", failed, &labels, checkpoints.failed);
        let Some(latest) = &checkpoints.latest_completed else { return };
        let id = "The number of the newest completed checkpoint.";
        visit.gauge("jobmaster_last_completed_checkpoint_id", id, &labels, latest.id as f64);
        let duration = "From the beginning of the newest completed checkpoint until its output was visible.";
        let seconds = latest.duration.as_secs_f64();
        visit.gauge("jobmaster_last_checkpoint_duration_seconds", duration, &labels, seconds);
        let size = "The state in the newest completed checkpoint.";
        visit.gauge("jobmaster_last_checkpoint_size_bytes", size, &labels, latest.state_size as f64);
    }
}
