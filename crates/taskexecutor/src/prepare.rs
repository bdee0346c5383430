//! From a request to start a task to what can be started.
//!
//! All that may take long or wait for a disk is done here, apart from the loop: reading and planning the job file, which
//! is done once for all tasks of a job, and making the calls of the task's steps ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use connectors::call::{self, Call, RustCalls};
use job::file::JobFile;
use job::graph::{JobGraph, OperatorSpec};
use job::plan::plan;
use runtime_core::{AllocationId, JobId};
use wire::convert::{WireId, attempt_id, resource_id};
use wire::fencing::Fence;
use wire::{RpcError, v1};

use crate::task::{ChannelTarget, InputGate, OutputGate, TaskDescriptor};

/// A task that can be started.
pub(crate) struct Prepared {
    /// The job master that sent it.
    pub(crate) fence: Fence,
    pub(crate) allocation: AllocationId,
    pub(crate) descriptor: TaskDescriptor,
    /// The calls of its steps, ready. The task makes its own, of the tables that these hold loaded.
    pub(crate) calls: Vec<Arc<dyn Call>>,
}

/// The plans of the jobs that have tasks here.
#[derive(Default)]
pub(crate) struct Plans {
    by_job: Mutex<BTreeMap<JobId, (Bytes, Arc<JobGraph>)>>,
}

impl Plans {
    /// Forgets a job's plan.
    pub(crate) fn forget(&self, job: JobId) {
        self.lock().remove(&job);
    }

    fn graph(&self, job: JobId, file: &Bytes) -> Result<Arc<JobGraph>, RpcError> {
        if let Some((known, graph)) = self.lock().get(&job)
            && known == file
        {
            return Ok(Arc::clone(graph));
        }
        let wrong = |error: &dyn std::fmt::Display| {
            RpcError::application(format!("the job file of job {job}: {error}"))
        };
        let text = std::str::from_utf8(file).map_err(|error| wrong(&error))?;
        let parsed = JobFile::parse(text, "job file").map_err(|errors| wrong(&errors))?;
        let graph = Arc::new(plan(&parsed).map_err(|errors| wrong(&errors))?);
        self.lock().insert(job, (file.clone(), Arc::clone(&graph)));
        Ok(graph)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, (Bytes, Arc<JobGraph>)>> {
        self.by_job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads and checks a request to start a task. It blocks.
///
/// # Errors
/// The message makes no sense, the job file cannot be planned, or a call of the task cannot be made ready: a function
/// that this program does not have, a table that cannot be loaded.
pub(crate) fn prepare(
    request: v1::SubmitTaskRequest,
    plans: &Plans,
    rust_calls: &RustCalls,
) -> Result<Prepared, RpcError> {
    let fence = Fence::of(request.fence.as_ref())?;
    let allocation = AllocationId::from_wire(&request.allocation_id, "allocation_id")?;
    let attempt = attempt_id(request.attempt.as_ref(), "attempt")?;
    let origin_job =
        JobId::from_wire_or_empty(&request.origin_job_id, "origin_job_id")?.unwrap_or(attempt.job);
    let inputs = request.inputs.iter().map(input_gate).collect::<Result<_, RpcError>>()?;
    let outputs = request.outputs.iter().map(output_gate).collect::<Result<_, RpcError>>()?;
    let graph = plans.graph(attempt.job, &request.job_file)?;
    let restore = request.restore;
    let descriptor =
        TaskDescriptor { attempt, graph, vertex: attempt.vertex, origin_job, inputs, outputs, restore };
    let Some(vertex) = descriptor.chain().filter(|vertex| attempt.subtask < vertex.parallelism) else {
        return Err(RpcError::application(format!(
            "the plan of job {} has no subtask {attempt}",
            attempt.job
        )));
    };
    let mut calls = Vec::new();
    for operator in &vertex.operators {
        if let OperatorSpec::Enrich(options) = operator {
            let place = format!("step `{}`", options.name);
            let call = call::build(options, rust_calls);
            calls.push(call.map_err(|error| RpcError::application(error.to_string()).at(place))?);
        }
    }
    Ok(Prepared { fence, allocation, descriptor, calls })
}

fn input_gate(gate: &v1::InputGate) -> Result<InputGate, RpcError> {
    let producers = gate.producers.iter().map(|id| attempt_id(Some(id), "inputs.producers"));
    Ok(InputGate { edge: gate.edge, producers: producers.collect::<Result<_, _>>()? })
}

fn output_gate(gate: &v1::OutputGate) -> Result<OutputGate, RpcError> {
    let consumers = gate.consumers.iter().map(channel_target).collect::<Result<_, RpcError>>()?;
    Ok(OutputGate { edge: gate.edge, consumers })
}

fn channel_target(target: &v1::ChannelTarget) -> Result<ChannelTarget, RpcError> {
    let data_address = target.data_address.parse();
    Ok(ChannelTarget {
        attempt: attempt_id(target.attempt.as_ref(), "outputs.consumers.attempt")?,
        task_executor: resource_id(&target.task_executor, "outputs.consumers.task_executor")?,
        data_address: data_address
            .map_err(|e| RpcError::application(format!("field `outputs.consumers.data_address`: {e}")))?,
    })
}
