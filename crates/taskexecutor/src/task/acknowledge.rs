//! From a snapshot in memory to an answer: the state is encoded and written where blocking is allowed.
//!
//! The task goes on meanwhile. But it says that it has finished only after all its answers: a checkpoint in which it has
//! passed on the barrier must not be completed with its last word, which is of a later moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use asyncio::Snapshot;
use checkpoint::{Stores, layout, operators, savepoint, write_state};
use job::record::JsonRecord;
use prost::Message;
use runtime_core::AttemptId;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use wire::v1;

use super::event::CheckpointAnswers;
use super::mailbox::Mailbox;
use super::savepoint::SavepointTarget;
use super::services::{Placement, TaskServices};
use super::snapshot::{CheckpointAnswer, Held, Taken, TaskSnapshot};
use crate::exchange::encode_record;
use crate::figures::TaskFigures;

/// Answers checkpoints for one task.
pub(crate) struct Acknowledger {
    writer: Arc<Writer>,
    placement: Placement,
    io: Handle,
    outstanding: Vec<oneshot::Receiver<()>>,
}

struct Writer {
    attempt: AttemptId,
    stores: Arc<dyn Stores>,
    /// Where the job's checkpoints are kept.
    url: Option<String>,
    answers: CheckpointAnswers,
    mailbox: Arc<Mailbox>,
    figures: Arc<TaskFigures>,
}

impl Acknowledger {
    pub(crate) fn new(
        attempt: AttemptId,
        url: Option<String>,
        services: &TaskServices,
        mailbox: &Arc<Mailbox>,
        figures: &Arc<TaskFigures>,
    ) -> Self {
        let writer = Writer {
            attempt,
            stores: Arc::clone(&services.stores),
            url,
            answers: Arc::clone(&services.answers),
            mailbox: Arc::clone(mailbox),
            figures: Arc::clone(figures),
        };
        let (placement, io) = (services.placement, services.io.clone());
        Self { writer: Arc::new(writer), placement, io, outstanding: Vec::new() }
    }

    /// Answers, sooner or later.
    pub(crate) fn answer(&mut self, taken: Taken) {
        let (done, settled) = oneshot::channel();
        let writer = Arc::clone(&self.writer);
        self.placement.block(&self.io, move || {
            let Taken { checkpoint, outcome, savepoint } = taken;
            let outcome = outcome.and_then(|(held, snapshot)| {
                writer.write(&held, snapshot, |bytes| writer.put(checkpoint, savepoint.as_ref(), bytes))
            });
            writer.say(checkpoint, outcome);
            // Nobody waits where the task has been stopped.
            let _ = done.send(());
        });
        self.outstanding.retain_mut(|settled| settled.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        self.outstanding.push(settled);
    }

    /// Waits until everything is answered.
    pub(crate) async fn settled(&mut self) {
        for settled in self.outstanding.drain(..) {
            // Dropped with the runtime: then nobody hears of anything.
            let _ = settled.await;
        }
    }
}

impl Writer {
    fn write(
        &self,
        held: &Held,
        snapshot: TaskSnapshot,
        put: impl FnOnce(&[u8]) -> Result<v1::StateHandle, String>,
    ) -> Result<TaskSnapshot, String> {
        if held.is_empty() {
            self.figures.checkpoints.snapshot_bytes.store(0, Ordering::Relaxed);
            return Ok(snapshot);
        }
        let states = held.iter().map(operator_state).collect::<Result<Vec<_>, String>>()?;
        let bytes = operators::encode(&v1::OperatorStates { operators: states });
        self.figures.checkpoints.snapshot_bytes.store(bytes.len() as u64, Ordering::Relaxed);
        let state = put(&bytes)?;
        Ok(TaskSnapshot { state: Some(state), ..snapshot })
    }

    fn put(
        &self,
        checkpoint: u64,
        savepoint: Option<&SavepointTarget>,
        bytes: &[u8],
    ) -> Result<v1::StateHandle, String> {
        let (url, name) = match (savepoint, &self.url) {
            (Some(target), _) => (&target.url, savepoint::state_name(&self.attempt)),
            (None, Some(url)) => (url, layout::state_name(&self.attempt, checkpoint)),
            (None, None) => {
                return Err("the job has no place for checkpoints (`checkpoints.dir`)".to_owned());
            }
        };
        let store = self.stores.open(url).map_err(|error| error.to_string())?;
        write_state(&*store, &name, bytes).map_err(|error| error.to_string())
    }

    /// A task that was stopped meanwhile says nothing: its master goes by something else by now.
    fn say(&self, checkpoint: u64, outcome: Result<TaskSnapshot, String>) {
        if self.mailbox.is_cancelled() {
            return;
        }
        let figures = &self.figures.checkpoints;
        let count = if outcome.is_ok() { &figures.completed } else { &figures.declined };
        count.fetch_add(1, Ordering::Relaxed);
        (self.answers)(CheckpointAnswer { attempt: self.attempt, checkpoint, outcome });
    }
}

fn operator_state(snapshot: &Snapshot<JsonRecord>) -> Result<v1::OperatorState, String> {
    let held = snapshot.encode(|value, into| encode_record(value, None).encode(into));
    let held = held.map_err(|error| error.to_string())?;
    Ok(v1::OperatorState { name: snapshot.operator().to_owned(), held: held.into() })
}
