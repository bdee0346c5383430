//! What a task begins with: its part of a checkpoint, or after a change of parallelism its share of several parts.

use std::collections::BTreeMap;

use asyncio::Snapshot;
use checkpoint::{operators, read_state};
use connectors::sink::file as sink;
use job::graph::{OperatorSpec, Vertex};
use job::key::{Key, key_group, subtask_of};
use job::options::{EnrichOptions, Order};
use job::record::{JsonRecord, Origin};
use prost::Message;
use tokio::sync::oneshot;
use wire::v1;
use xxhash_rust::xxh3::xxh3_64;

use super::descriptor::TaskDescriptor;
use super::error::TaskError;
use super::services::TaskServices;
use crate::exchange::RecordReader;

/// What steps begin with, by their names.
pub(crate) type RestoredSteps = BTreeMap<String, Snapshot<JsonRecord>>;

/// What a task begins with.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub(crate) steps: RestoredSteps,
    /// What its sink continues.
    pub(crate) sink: sink::Restored,
}

/// Reads what a task begins with, where blocking is allowed.
///
/// # Errors
///
/// A state is missing or damaged, or holds something for a step that the chain does not have.
pub(crate) async fn restore(
    descriptor: &TaskDescriptor,
    services: &TaskServices,
) -> Result<Restored, TaskError> {
    let Some(state) = descriptor.restore.clone() else { return Ok(Restored::default()) };
    let (done, restored) = oneshot::channel();
    let (descriptor, services) = (descriptor.clone(), services.clone());
    let (placement, io) = (services.placement, services.io.clone());
    placement.block(&io, move || {
        // A task that was stopped meanwhile does not wait for it.
        let _ = done.send(read(&state, &descriptor, &services));
    });
    restored.await.unwrap_or_else(|_| Err(TaskError::recoverable("the reading of its state did not end")))
}

fn read(
    state: &v1::RestoredState,
    descriptor: &TaskDescriptor,
    services: &TaskServices,
) -> Result<Restored, TaskError> {
    let failed = |cause: String| {
        TaskError::recoverable(format!("checkpoint {} cannot be restored: {cause}", state.checkpoint))
    };
    let url = match (state.store.as_str(), &descriptor.graph.checkpoints) {
        ("", Some(options)) => &options.dir,
        (store, _) => store,
    };
    let mut held: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    for subtask in &state.subtasks {
        let Some(handle) = &subtask.state else { continue };
        let place = |cause: String| failed(format!("the state of subtask {}: {cause}", subtask.subtask));
        let store = services.stores.open(url).map_err(|error| failed(error.to_string()))?;
        let bytes = read_state(&*store, handle).map_err(|error| place(error.to_string()))?;
        for (name, snapshot) in decode(&bytes).map_err(place)? {
            held.entry(name).or_default().push((subtask.subtask, snapshot));
        }
    }
    let vertex = descriptor.chain().ok_or_else(|| TaskError::unrecoverable("the plan has no such vertex"))?;
    // A single file has one subtask; of parts it is 0.
    let committed_length = state.subtasks.iter().map(|subtask| subtask.committed_length).max().unwrap_or(0);
    let mut restored = Restored {
        steps: RestoredSteps::new(),
        sink: sink::Restored { checkpoint: state.checkpoint, committed_length },
    };
    for (name, parts) in held {
        let Some(options) = step(vertex, &name) else {
            let snapshot = whole(parts);
            // Where the parts are those of all, others take what is theirs.
            let elsewhere =
                state.of_all && descriptor.graph.vertices.iter().any(|v| step(v, &name).is_some());
            if snapshot.is_empty() || elsewhere {
                continue;
            }
            return Err(TaskError::unrecoverable(format!(
                "checkpoint {} holds {} elements of the step `{name}`, which the chain `{}` does not have; restore it \
                 with the job file that it was taken of",
                state.checkpoint,
                snapshot.len(),
                vertex.name
            )));
        };
        let shared = state.of_all || is_shared(state, vertex);
        let snapshot = if shared { share(parts, options, descriptor, vertex) } else { whole(parts) };
        restored.steps.insert(name, snapshot);
    }
    Ok(restored)
}

/// The asynchronous step of that name.
fn step<'a>(vertex: &'a Vertex, name: &str) -> Option<&'a EnrichOptions> {
    vertex.operators.iter().find_map(|operator| match operator {
        OperatorSpec::Enrich(options) if options.name == name => Some(options),
        _ => None,
    })
}

/// Whether the same parts are given to every subtask, each of which is to take what is its own.
fn is_shared(state: &v1::RestoredState, vertex: &Vertex) -> bool {
    match state.parallelism {
        0 => state.subtasks.len() > 1,
        parallelism => parallelism != vertex.parallelism,
    }
}

/// What one subtask held.
type Part = (u32, Snapshot<JsonRecord>);

fn whole(parts: Vec<Part>) -> Snapshot<JsonRecord> {
    Snapshot::combined(parts.into_iter().map(|(_, snapshot)| snapshot))
}

/// The share of this subtask: every record is in the share of exactly one.
///
/// With keyed order a record goes to the owner of its key group, as the partitioner decides. Otherwise what a subtask held
/// stays in one piece, which keeps its order, and goes to the subtask of its number, counted around; the job master lets
/// the same one read on the file that it comes from.
fn share(
    parts: Vec<Part>,
    options: &EnrichOptions,
    descriptor: &TaskDescriptor,
    vertex: &Vertex,
) -> Snapshot<JsonRecord> {
    let (own, parallelism) = (descriptor.attempt.subtask, vertex.parallelism.max(1));
    let Some(field) = options.key.as_deref().filter(|_| options.order == Order::Keyed) else {
        return whole(parts.into_iter().filter(|(subtask, _)| subtask % parallelism == own).collect());
    };
    let max_parallelism = descriptor.graph.max_parallelism;
    let owner = |record: &JsonRecord| match record.path(field).and_then(Key::of) {
        Some(key) => subtask_of(key_group(&key, max_parallelism), max_parallelism, parallelism) as usize,
        // It has no order.
        None => by_split(record.origin(), parallelism) as usize,
    };
    let shares = whole(parts).split(parallelism as usize, owner);
    shares.into_iter().nth(own as usize).unwrap_or_else(|| Snapshot::combined([]))
}

fn by_split(origin: &Origin, parallelism: u32) -> u32 {
    let split = [origin.file.as_bytes(), &origin.split_start.to_le_bytes()].concat();
    // A remainder of a 32-bit divisor.
    u32::try_from(xxh3_64(&split) % u64::from(parallelism.max(1))).unwrap_or(0)
}

fn decode(bytes: &[u8]) -> Result<Vec<(String, Snapshot<JsonRecord>)>, String> {
    let states = operators::decode(bytes).map_err(|error| error.to_string())?;
    let mut records = RecordReader::default();
    let decoded = states.operators.into_iter().map(|v1::OperatorState { name, held }| {
        let record = |bytes: &[u8]| {
            let element = v1::RecordElement::decode(bytes).map_err(|error| error.to_string())?;
            records.read(element).map_err(|malformed| malformed.reason)
        };
        let snapshot = Snapshot::decode(&held, record).map_err(|error| format!("step `{name}`: {error}"))?;
        Ok((name, snapshot))
    });
    decoded.collect()
}
