//! Running one subtask of a chain.
//!
//! [`spawn`] takes a [`TaskDescriptor`] (what is to run) and [`TaskServices`] (what it needs of its task executor) and
//! gives back a [`TaskHandle`]. What becomes of the task is told as [`TaskEvent`]s, each state once and in order, the last
//! one terminal.
//!
//! A task has one thread of its own, with a current-thread runtime: nothing in a chain is shared, so nothing is locked,
//! and a task that computes for long stalls neither heartbeats nor another task. Calls run on the I/O runtime and come
//! back as mail. In a simulation the same future runs on that runtime as well ([`Placement::Local`]).
//!
//! A checkpoint is taken between two elements (`barriers`), written apart from the task's thread (`acknowledge`), and
//! read when a task begins with one (`restore`).
//!
//! A task does not restart itself and decides nothing about its job: it ends, with a reason.

mod acknowledge;
mod barriers;
mod checkpointing;
mod descriptor;
mod error;
mod event;
mod mailbox;
mod outputs;
mod restore;
mod run;
mod savepoint;
mod services;
mod snapshot;
mod spawn;
#[cfg(test)]
mod tests;
mod turn;

pub use descriptor::{ChannelTarget, InputGate, OutputGate, TaskDescriptor};
pub use error::TaskError;
pub use event::{CheckpointAnswers, TaskEvent, TaskEvents, TaskState};
pub use savepoint::SavepointTarget;
pub use services::{NextSplit, Placement, SplitError, SplitProvider, TaskServices};
pub(crate) use snapshot::Held;
pub use snapshot::{CheckpointAnswer, TaskSnapshot};
pub use spawn::{TaskHandle, spawn};
