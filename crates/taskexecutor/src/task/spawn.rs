//! Starting a task, and the handle on it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use runtime_core::{AttemptId, EpochMillis};
use wire::v1;

use super::descriptor::TaskDescriptor;
use super::error::TaskError;
use super::event::{TaskEvent, TaskEvents, TaskState};
use super::mailbox::{Mailbox, Order};
use super::run::{End, Task, run};
use super::savepoint::SavepointTarget;
use super::services::{Placement, TaskServices};
use crate::chain::steps_of;
use crate::figures::{CheckpointFigures, TaskFigures};

/// A running task. Dropping the handle does not stop it.
#[derive(Clone)]
pub struct TaskHandle {
    attempt: AttemptId,
    mailbox: Arc<Mailbox>,
    figures: Arc<TaskFigures>,
}

impl TaskHandle {
    /// Whose handle it is.
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Tells the task to stop. It does so within milliseconds, emits nothing more, removes its unfinished files and says
    /// [`TaskState::Canceled`]. A task that has ended stays as it is.
    pub fn cancel(&self) {
        self.mailbox.cancel();
    }

    /// A savepoint will begin with this number; to be said to all tasks of the job before it does.
    pub fn announce(&self, checkpoint: u64, target: SavepointTarget) {
        self.mailbox.put_order(Order::Announce { checkpoint, target });
    }

    /// The job is drained: a source reads no further, as if its input ended here. Other tasks come to their end behind it.
    pub fn drain(&self) {
        self.mailbox.put_order(Order::Drain);
    }

    /// A checkpoint has begun. The task answers once it has had its part, or cannot have it.
    pub fn trigger(&self, checkpoint: u64, begun_at: EpochMillis) {
        self.mailbox.put_order(Order::Trigger { checkpoint, begun_at });
    }

    /// A checkpoint is complete and its output visible, and with it that of every earlier one.
    pub fn confirm(&self, checkpoint: u64) {
        self.mailbox.put_order(Order::Confirm(checkpoint));
    }

    /// A checkpoint is given up, and with it every earlier one.
    pub fn abort(&self, checkpoint: u64) {
        self.mailbox.put_order(Order::Abort(checkpoint));
    }

    /// Whether it was told to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.mailbox.is_cancelled()
    }

    /// What it did for checkpoints so far.
    #[must_use]
    pub fn checkpoint_figures(&self) -> &CheckpointFigures {
        &self.figures.checkpoints
    }

    /// What it has counted so far.
    #[must_use]
    pub fn figures(&self) -> v1::Figures {
        self.figures.snapshot()
    }
}

/// Starts a task. Its input channels are registered before this returns, so that its producers find them.
///
/// All that goes wrong, a thread that cannot be started included, is told as [`TaskState::Failed`].
pub fn spawn(descriptor: TaskDescriptor, services: TaskServices) -> TaskHandle {
    let mailbox = Arc::new(Mailbox::default());
    let figures = TaskFigures::new(descriptor.chain().into_iter().flat_map(steps_of));
    let attempt = descriptor.attempt;
    let handle = TaskHandle { attempt, mailbox: Arc::clone(&mailbox), figures: Arc::clone(&figures) };
    let gates = services.channels.register(attempt, &descriptor.inputs, Arc::clone(mailbox.wake()));
    let reporter = Reporter {
        attempt,
        name: descriptor.name(),
        events: Arc::clone(&services.events),
        figures: Arc::clone(&figures),
    };
    let (placement, io) = (services.placement, services.io.clone());
    let life = live(Task { descriptor, services, mailbox, figures, gates }, reporter.clone());
    match placement {
        Placement::Local => drop(io.spawn(life)),
        Placement::Threads => start_thread(reporter, life),
    }
    handle
}

fn start_thread(reporter: Reporter, life: impl Future<Output = ()> + Send + 'static) {
    let failed = reporter.clone();
    let started = std::thread::Builder::new().name(reporter.name.clone()).spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime.block_on(life),
            Err(error) => {
                reporter.failed(&TaskError::recoverable(format!("its runtime did not start: {error}")))
            }
        }
    });
    if let Err(error) = started {
        failed.failed(&TaskError::recoverable(format!("its thread did not start: {error}")));
    }
}

async fn live(task: Task, reporter: Reporter) {
    reporter.state(TaskState::Initializing);
    let running = run(task, |state| reporter.state(state));
    match AssertUnwindSafe(running).catch_unwind().await {
        Ok(Ok(End::Finished(last))) => {
            reporter.tell(TaskEvent { last: Some(last), ..reporter.event(TaskState::Finished) });
        }
        Ok(Ok(End::Canceled)) => reporter.state(TaskState::Canceled),
        Ok(Err(error)) => reporter.failed(&error),
        Err(_) => reporter.failed(&TaskError::recoverable("it panicked; the log says where")),
    }
}

/// Tells what becomes of one task.
#[derive(Clone)]
struct Reporter {
    attempt: AttemptId,
    name: String,
    events: TaskEvents,
    figures: Arc<TaskFigures>,
}

impl Reporter {
    fn event(&self, state: TaskState) -> TaskEvent {
        TaskEvent {
            attempt: self.attempt,
            state,
            error: None,
            unrecoverable: false,
            figures: self.figures.snapshot(),
            last: None,
        }
    }

    fn state(&self, state: TaskState) {
        self.tell(self.event(state));
    }

    fn failed(&self, error: &TaskError) {
        let sentence = format!("task {}: {}", self.name, error.message);
        let event = self.event(TaskState::Failed);
        self.tell(TaskEvent { error: Some(sentence), unrecoverable: error.unrecoverable, ..event });
    }

    fn tell(&self, event: TaskEvent) {
        tracing::debug!(attempt = %self.attempt, state = ?event.state, error = event.error, "task {}", self.name);
        (self.events)(event);
    }
}
