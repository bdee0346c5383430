//! Starting a task, and the handle on it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use runtime_core::AttemptId;
use wire::v1;

use super::descriptor::TaskDescriptor;
use super::error::TaskError;
use super::event::{TaskEvent, TaskEvents, TaskState};
use super::mailbox::Mailbox;
use super::run::{End, Task, run};
use super::services::{Placement, TaskServices};
use crate::chain::steps_of;
use crate::figures::TaskFigures;

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
        Ok(Ok(End::Finished(staged))) => {
            reporter.tell(TaskEvent { staged, ..reporter.event(TaskState::Finished) });
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
            staged: Vec::new(),
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
