//! What `/metrics` shows of slots and tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtime_core::AttemptId;
use runtime_core::metrics::{Gauge, Observe, Visit};

use crate::task::TaskHandle;

/// The slots and the running tasks of one task executor.
#[derive(Default)]
pub(crate) struct TaskMetrics {
    pub(crate) slots: Gauge,
    pub(crate) free_slots: Gauge,
    tasks: Mutex<BTreeMap<AttemptId, TaskHandle>>,
}

impl TaskMetrics {
    /// A task runs.
    pub(crate) fn insert(&self, task: TaskHandle) {
        self.lock().insert(task.attempt(), task);
    }

    /// A task has ended: its figures are the job master's from now on.
    pub(crate) fn remove(&self, attempt: &AttemptId) {
        self.lock().remove(attempt);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, TaskHandle>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observe for TaskMetrics {
    fn observe(&self, visit: &mut dyn Visit) {
        visit.gauge("task_slots", "Slots offered.", &[], self.slots.get() as f64);
        visit.gauge("task_slots_free", "Slots that are nobody's.", &[], self.free_slots.get() as f64);
        let tasks: Vec<TaskHandle> = self.lock().values().cloned().collect();
        visit.gauge("tasks_running", "Tasks that have not ended.", &[], tasks.len() as f64);
        for task in tasks {
            observe_task(&task, visit);
        }
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn observe_task(task: &TaskHandle, visit: &mut dyn Visit) {
    let AttemptId { job, vertex, subtask, attempt, .. } = task.attempt();
    let texts = (job.to_string(), vertex.to_string(), subtask.to_string(), attempt.to_string());
    let labels = [("job", &*texts.0), ("vertex", &*texts.1), ("subtask", &*texts.2), ("attempt", &*texts.3)];
    let figures = task.figures();
    for (name, help, value) in [
        ("task_records_in", "Lines read by the source.", figures.records_in),
        ("task_records_out", "Records in the sink.", figures.records_out),
        ("task_filtered", "Records that a filter held back.", figures.filtered),
        ("task_dropped", "Records left out by a policy.", figures.dropped),
        ("task_dead_letters", "Dead letters made.", figures.dead_letters),
        ("task_bytes_in", "Bytes read by the source.", figures.bytes_in),
        ("task_bytes_out", "Bytes written by the sink.", figures.bytes_out),
        ("task_busy_milliseconds", "Time at work.", figures.busy_ms),
        ("task_backpressured_milliseconds", "Time waiting for room downstream.", figures.backpressured_ms),
        ("task_idle_milliseconds", "Time waiting for input or answers.", figures.idle_ms),
    ] {
        visit.counter(name, help, &labels, value);
    }
    let checkpoints = task.checkpoint_figures();
    for (name, help, value) in [
        ("task_checkpoints_started", "Checkpoints the task was told of.", checkpoints.started.get()),
        ("task_checkpoints_completed", "Checkpoints it has acknowledged.", load(&checkpoints.completed)),
        ("task_checkpoints_declined", "Checkpoints it could not take part in.", load(&checkpoints.declined)),
    ] {
        visit.counter(name, help, &labels, value);
    }
    for (name, help, value) in [
        (
            "task_checkpoint_alignment_milliseconds",
            "From the word of the last checkpoint to its barrier from all inputs.",
            checkpoints.alignment_ms.get(),
        ),
        (
            "task_checkpoint_state_bytes",
            "State of the steps in the last checkpoint.",
            load(&checkpoints.snapshot_bytes),
        ),
        ("task_parked", "Elements that wait beyond the capacity of steps.", checkpoints.parked.get()),
    ] {
        visit.gauge(name, help, &labels, value as f64);
    }
    for step in figures.steps {
        let [job, vertex, subtask, attempt] = labels;
        let labels = [job, vertex, subtask, attempt, ("step", &*step.name)];
        for (name, help, value) in [
            ("step_calls", "Attempts begun.", step.calls),
            ("step_retries", "Attempts beyond the first of a record.", step.retries),
            ("step_timeouts", "Attempts and records that exceeded their time.", step.timeouts),
            ("step_failures", "Records that have failed.", step.failures),
            ("step_empty", "Empty answers.", step.empty),
        ] {
            visit.counter(name, help, &labels, value);
        }
        for (name, help, value) in [
            ("step_in_flight", "Records whose call runs.", step.in_flight),
            ("step_capacity", "Records that the step may hold.", step.capacity),
            ("step_completed_waiting", "Records that wait for their turn.", step.completed_waiting),
            ("step_oldest_in_flight_milliseconds", "Age of the oldest call.", step.oldest_in_flight_ms),
        ] {
            visit.gauge(name, help, &labels, value as f64);
        }
    }
}
