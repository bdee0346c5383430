//! Opening the channels that leave a task.

use futures::future::try_join_all;
use job::graph::{Edge, Output};

use super::descriptor::{ChannelTarget, OutputGate, TaskDescriptor};
use super::error::TaskError;
use super::mailbox::Mailbox;
use super::services::TaskServices;
use crate::chain::EdgeOutput;
use crate::exchange::{ChannelId, ChannelWriter, Outlet, Partitioner, RemoteTarget, open};

/// The edges that leave a task.
pub(crate) struct Outputs {
    pub(crate) records: Option<EdgeOutput>,
    pub(crate) dead_letters: Option<EdgeOutput>,
}

/// Opens all channels. Waits for consumers on this task executor to be deployed; those on others are waited for by their
/// own task executor.
///
/// # Errors
///
/// The plan has no such edge, or a consumer on this task executor did not come or refuses.
pub(crate) async fn open_outputs(
    task: &TaskDescriptor,
    services: &TaskServices,
    mailbox: &Mailbox,
) -> Result<Outputs, TaskError> {
    let mut outputs = Outputs { records: None, dead_letters: None };
    for gate in &task.outputs {
        let edge = task.graph.edges.iter().find(|edge| edge.id == gate.edge && edge.from == task.vertex);
        let edge = edge.ok_or_else(|| {
            TaskError::unrecoverable(format!(
                "the plan has no edge {} that leaves the vertex {}",
                gate.edge, task.vertex
            ))
        })?;
        let writers =
            gate.consumers.iter().map(|target| open_channel(task.attempt, gate, target, services, mailbox));
        let output = EdgeOutput::new(partitioner(task, edge, gate), try_join_all(writers).await?);
        match edge.output {
            Output::Records => outputs.records = Some(output),
            Output::DeadLetters => outputs.dead_letters = Some(output),
        }
    }
    Ok(outputs)
}

fn partitioner(task: &TaskDescriptor, edge: &Edge, gate: &OutputGate) -> Partitioner {
    let targets = u32::try_from(gate.consumers.len()).unwrap_or(u32::MAX);
    Partitioner::new(&edge.partitioning, task.graph.max_parallelism, targets, task.attempt.subtask)
}

async fn open_channel(
    producer: runtime_core::AttemptId,
    gate: &OutputGate,
    target: &ChannelTarget,
    services: &TaskServices,
    mailbox: &Mailbox,
) -> Result<ChannelWriter, TaskError> {
    let id = ChannelId { edge: gate.edge, producer, consumer: target.attempt };
    let wake = mailbox.wake().clone();
    let outlet = if target.task_executor == services.task_executor {
        let sender = services.channels.connect(id, Some(wake)).await.map_err(TaskError::recoverable)?;
        Outlet::Local(sender)
    } else {
        let target = RemoteTarget {
            transport: services.transport.clone(),
            address: target.data_address.clone(),
            task_executor: target.task_executor.clone(),
        };
        let (sender, pump) = open(&services.io, target, id, wake);
        Outlet::Remote(sender, pump)
    };
    Ok(ChannelWriter::new(outlet))
}
