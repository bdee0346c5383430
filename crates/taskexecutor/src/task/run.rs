//! The life of a task, from its operators' making to its end.

use std::sync::Arc;
use std::time::Duration;

use connectors::sink::file::Mode;
use runtime_core::{Clock, Tick};

use super::acknowledge::Acknowledger;
use super::descriptor::TaskDescriptor;
use super::error::TaskError;
use super::event::TaskState;
use super::mailbox::Mailbox;
use super::outputs::open_outputs;
use super::restore::{Restored, restore};
use super::services::TaskServices;
use super::snapshot::TaskSnapshot;
use super::turn::{Head, Runner, Turn};
use crate::chain::{Parts, build};
use crate::exchange::InputGates;
use crate::figures::{Count, TaskFigures};

/// How a task came to its end.
#[derive(Debug)]
pub(crate) enum End {
    Finished(Box<TaskSnapshot>),
    Canceled,
}

/// What a task runs with.
pub(crate) struct Task {
    pub(crate) descriptor: TaskDescriptor,
    pub(crate) services: TaskServices,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) figures: Arc<TaskFigures>,
    pub(crate) gates: InputGates,
}

/// Runs a task to its end. `running` is called once its operators and channels are open. When it returns, nothing of the
/// task is left: calls are given up, unfinished files removed, channels closed.
pub(crate) async fn run(task: Task, running: impl FnOnce(TaskState)) -> Result<End, TaskError> {
    let Task { descriptor, services, mailbox, figures, gates } = task;
    let outputs = tokio::select! {
        biased;
        () = mailbox.cancelled() => return Ok(End::Canceled),
        outputs = open_outputs(&descriptor, &services, &mailbox) => outputs?,
    };
    let restored = tokio::select! {
        biased;
        () = mailbox.cancelled() => return Ok(End::Canceled),
        restored = restore(&descriptor, &services) => restored?,
    };
    let vertex = descriptor.chain().ok_or_else(|| TaskError::unrecoverable("the plan has no such vertex"))?;
    let (source, mut chain) = build(Parts {
        vertex,
        attempt: descriptor.attempt,
        origin_job: descriptor.origin_job,
        output: output_mode(&descriptor, &restored),
        calls: &services.calls,
        io: &services.io,
        wake: mailbox.wake(),
        figures: Arc::clone(&figures),
        records: outputs.records,
        dead_letters: outputs.dead_letters,
    })?;
    let head = source.map_or_else(|| Head::Gates(Box::new(gates)), |source| Head::Source(Box::new(source)));
    chain.cx.begin_turn(services.clock.now(), services.clock.wall());
    chain.restore(restored.steps)?;
    let mut runner = Runner::new(descriptor.attempt.job, head, chain, Arc::clone(&mailbox));
    running(TaskState::Running);
    let end = drive(&mut runner, &descriptor, &services, &mailbox, &figures).await;
    runner.publish_last();
    end
}

/// A job that was started from a savepoint continues its output also where it takes no checkpoints of its own.
fn output_mode(descriptor: &TaskDescriptor, restored: &Restored) -> Mode {
    if descriptor.graph.checkpoints.is_none() && descriptor.restore.is_none() {
        Mode::WithoutCheckpoints
    } else {
        Mode::WithCheckpoints(restored.sink)
    }
}

async fn drive(
    runner: &mut Runner,
    descriptor: &TaskDescriptor,
    services: &TaskServices,
    mailbox: &Arc<Mailbox>,
    figures: &Arc<TaskFigures>,
) -> Result<End, TaskError> {
    let clock = &services.clock;
    let url = descriptor.graph.checkpoints.as_ref().map(|options| options.dir.clone());
    let mut acknowledger = Acknowledger::new(descriptor.attempt, url, services, mailbox, figures);
    let mut times = Times { since: clock.now(), spent_on: &figures.busy_nanos };
    while !mailbox.is_cancelled() {
        let now = clock.now();
        times.switch(now, &figures.busy_nanos);
        let turn = runner.turn(now, clock.wall())?;
        for taken in runner.take_taken() {
            acknowledger.answer(taken);
        }
        match turn {
            Turn::Busy => tokio::task::yield_now().await,
            Turn::Ask(request) => ask(request, descriptor, services, mailbox),
            Turn::Wait { until, backpressured } => {
                let waiting = if backpressured { &figures.backpressured_nanos } else { &figures.idle_nanos };
                times.switch(clock.now(), waiting);
                tokio::select! {
                    biased;
                    () = mailbox.wake().notified() => {}
                    () = clock.sleep_until(until.unwrap_or(Tick::MAX)), if until.is_some() => {}
                }
            }
            Turn::Ended => {
                tokio::select! {
                    biased;
                    () = mailbox.cancelled() => return Ok(End::Canceled),
                    () = acknowledger.settled() => return Ok(End::Finished(Box::new(runner.finish()?))),
                }
            }
            // Its part of the savepoint is its last word; nothing of it is to follow.
            Turn::Stopped => return Ok(End::Finished(Box::default())),
        }
    }
    Ok(End::Canceled)
}

/// Asks for a split on the I/O runtime; the answer comes as mail.
fn ask(request: u64, descriptor: &TaskDescriptor, services: &TaskServices, mailbox: &Arc<Mailbox>) {
    let (splits, mailbox, attempt) = (Arc::clone(&services.splits), Arc::clone(mailbox), descriptor.attempt);
    services.io.spawn(async move { mailbox.put_split(request, splits.next_split(attempt, request).await) });
}

/// On what a task's time was spent.
struct Times<'a> {
    since: Tick,
    spent_on: &'a Count,
}

impl<'a> Times<'a> {
    fn switch(&mut self, now: Tick, to: &'a Count) {
        let spent: Duration = now.since(self.since);
        self.spent_on.add(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX));
        (self.since, self.spent_on) = (now, to);
    }
}
