//! Tasks: started, stopped, and told of.

use std::sync::Arc;
use std::time::Duration;

use controller_events::Handle;
use entrypoint::Placement;
use wire::convert::attempt_id;
use wire::v1::task_executor_to_job_master::Message;
use wire::{RpcError, v1};

use super::TaskExecutorProcessor;
use super::job::{Established, Job, Task};
use crate::event::TeEvent;
use crate::prepare::Prepared;
use crate::splits::JobMasterSplits;
use crate::task::{self, TaskEvent, TaskServices, TaskState};

/// How often tasks tell what they have counted.
pub(super) const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

impl TaskExecutorProcessor {
    /// Starts a task in a slot of its job, which makes the slot active: the task may overtake the answer to the offer
    /// (FLINK-9932). A task that is here already is not started twice.
    pub(super) fn submit_task(
        &mut self,
        prepared: Prepared,
        events: &Handle<TeEvent>,
    ) -> Result<v1::Ack, RpcError> {
        self.check_running()?;
        let Prepared { fence, allocation, descriptor, calls } = prepared;
        let (attempt, now) = (descriptor.attempt, self.now());
        let Some(job) = self.jobs.get_mut(&attempt.job) else {
            self.plans.forget(attempt.job);
            return Err(RpcError::unknown_target(format!(
                "no slot is allocated for job {} here",
                attempt.job
            )));
        };
        let sender = Established { epoch: fence.epoch, incarnation: fence.incarnation };
        if job.established != Some(sender) {
            let known =
                job.established.map_or_else(|| "none".to_owned(), |e| format!("that of term {}", e.epoch));
            return Err(RpcError::fencing(format!(
                "the task is from the job master of term {}, connected is {known}",
                fence.epoch
            )));
        }
        if job.tasks.contains_key(&attempt) {
            return Ok(Self::ack());
        }
        self.slots
            .add_task(allocation, attempt)
            .map_err(|error| RpcError::unknown_target(error.to_string()))?;
        self.activated.entry(allocation).or_insert(now);
        let name = descriptor.name();
        tracing::info!(%attempt, %allocation, "starting task {name}");
        let (told, answered) = (events.clone(), events.clone());
        let services = TaskServices {
            task_executor: self.shared.resource_id.clone(),
            placement: match self.shared.placement {
                Placement::Threads => task::Placement::Threads,
                Placement::Tasks => task::Placement::Local,
            },
            clock: self.shared.clock.clone(),
            io: self.shared.runtime.clone(),
            channels: Arc::clone(&self.shared.channels),
            transport: Arc::clone(&self.shared.transport),
            calls: Arc::clone(&self.shared.calls),
            splits: Arc::new(JobMasterSplits {
                gateway: Arc::clone(&job.gateway),
                fence: self.shared.fence(fence.epoch),
                clock: self.shared.clock.clone(),
            }),
            events: Arc::new(move |event| {
                if told.put(TeEvent::Task(event)).is_err() {
                    tracing::debug!("a task has ended after the loop of its task executor");
                }
            }),
            answers: Arc::new(move |answer| {
                if answered.put(TeEvent::Checkpoint(answer)).is_err() {
                    tracing::debug!("a task has answered a checkpoint after the loop of its task executor");
                }
            }),
            stores: Arc::clone(&self.shared.stores),
        };
        let handle = task::spawn(descriptor, services);
        self.task_metrics.insert(handle.clone());
        job.tasks.insert(
            attempt,
            Task { handle, name, cancelled: None, failing: None, ended: None, _calls: calls },
        );
        Ok(Self::ack())
    }

    /// Stops a task; its end is told on the stream.
    pub(super) fn cancel_task(&mut self, request: &v1::CancelTaskRequest) -> Result<v1::Ack, RpcError> {
        let attempt = attempt_id(request.attempt.as_ref(), "attempt")?;
        let now = self.now();
        let task = self.jobs.get_mut(&attempt.job).and_then(|job| job.tasks.get_mut(&attempt));
        let task = task.ok_or_else(|| RpcError::unknown_target(format!("task {attempt} is not here")))?;
        task.cancel(now);
        Ok(Self::ack())
    }

    /// What has become of a task is told to its job master; with its end the slot loses it.
    pub(super) fn task_event(&mut self, event: TaskEvent) {
        let attempt = event.attempt;
        let Some(job) = self.jobs.get_mut(&attempt.job) else { return };
        let Some(known) = job.tasks.get(&attempt) else { return };
        let terminal = event.state.is_terminal();
        let update = state_update(event, known);
        let number = job.say(Message::TaskState(update));
        if !terminal {
            return;
        }
        if let Some(task) = job.tasks.get_mut(&attempt) {
            task.ended = Some(number);
            task._calls.clear();
        }
        self.task_metrics.remove(&attempt);
        if let Some(freed) = self.slots.remove_task(&attempt) {
            self.freed(freed);
        }
    }

    pub(super) fn send_figures(&mut self) {
        for job in self.jobs.values_mut().filter(|job| job.is_connected()) {
            for figures in figures_of(job) {
                job.say(Message::Figures(figures));
            }
        }
    }

    pub(super) fn cancel_all_tasks(&mut self) {
        let now = self.now();
        for task in self.jobs.values_mut().flat_map(|job| job.tasks.values_mut()) {
            task.cancel(now);
        }
    }
}

fn figures_of(job: &Job) -> Vec<v1::TaskFigures> {
    let running = job.tasks.iter().filter(|(_, task)| task.ended.is_none());
    let figures = running.map(|(attempt, task)| v1::TaskFigures {
        attempt: Some(attempt.into()),
        figures: Some(task.handle.figures()),
    });
    figures.collect()
}

/// A task that was stopped without its job master's wish has failed, in the job master's eyes.
fn state_update(event: TaskEvent, task: &Task) -> v1::TaskStateUpdate {
    let (state, error) = match (event.state, &task.failing) {
        (TaskState::Canceled, Some(cause)) => (v1::TaskState::Failed, format!("task {}: {cause}", task.name)),
        (state, _) => (state_out(state), event.error.unwrap_or_default()),
    };
    v1::TaskStateUpdate {
        attempt: Some(event.attempt.into()),
        state: state.into(),
        error,
        unrecoverable: event.unrecoverable,
        figures: Some(event.figures),
        last: event.last.map(|last| (*last).into()),
    }
}

const fn state_out(state: TaskState) -> v1::TaskState {
    match state {
        TaskState::Initializing => v1::TaskState::Initializing,
        TaskState::Running => v1::TaskState::Running,
        TaskState::Finished => v1::TaskState::Finished,
        TaskState::Canceled => v1::TaskState::Canceled,
        TaskState::Failed => v1::TaskState::Failed,
    }
}
