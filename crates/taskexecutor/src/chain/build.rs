//! From a planned vertex to operators that are ready to run.

use std::sync::Arc;

use connectors::call;
use connectors::call::RustCalls;
use connectors::sink::file::{FileWriter, Mode};
use job::graph::{OperatorSpec, Vertex};
use job::options::{SinkOptions, SourceOptions};
use runtime_core::{AttemptId, JobId};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::enrich::EnrichStep;
use super::filter::FilterStep;
use super::output::EdgeOutput;
use super::sink::SinkTail;
use super::source::Source;
use super::{Chain, Context, Step, Tail};
use crate::figures::TaskFigures;
use crate::task::TaskError;

/// What operators are made of.
pub(crate) struct Parts<'a> {
    pub(crate) vertex: &'a Vertex,
    pub(crate) attempt: AttemptId,
    pub(crate) origin_job: JobId,
    /// When a sink's output becomes visible, and what it continues.
    pub(crate) output: Mode,
    pub(crate) calls: &'a RustCalls,
    pub(crate) io: &'a Handle,
    /// Told when a call has ended.
    pub(crate) wake: &'a Arc<Notify>,
    pub(crate) figures: Arc<TaskFigures>,
    /// The edge of the records; absent where the chain ends in a sink.
    pub(crate) records: Option<EdgeOutput>,
    /// The edge of the dead letters.
    pub(crate) dead_letters: Option<EdgeOutput>,
}

/// Makes the operators of a chain: its source, if it begins with one, and the rest. It blocks: tables are loaded and
/// files created.
///
/// # Errors
///
/// A call cannot be made ready, a file cannot be created, or the plan makes no chain.
pub(crate) fn build(parts: Parts<'_>) -> Result<(Option<Source>, Chain), TaskError> {
    let mut source = None;
    let mut steps = Vec::new();
    let mut sink = None;
    let mut asynchronous = 0;
    for operator in &parts.vertex.operators {
        match operator {
            OperatorSpec::Source(SourceOptions::File(options)) => source = Some(Source::new(options.clone())),
            OperatorSpec::Filter(options) => steps.push(Step::Filter(FilterStep::new(options.clone()))),
            OperatorSpec::Enrich(options) => {
                // A missing name or a broken table will be so again.
                let call = call::build(options, parts.calls).map_err(TaskError::unrecoverable)?;
                let (io, wake) = (parts.io.clone(), Arc::clone(parts.wake));
                let step = EnrichStep::new(options.clone(), asynchronous, call, io, wake)
                    .map_err(|error| TaskError::unrecoverable(format!("step `{}`: {error}", options.name)))?;
                steps.push(Step::Enrich(Box::new(step)));
                asynchronous += 1;
            }
            OperatorSpec::Sink(SinkOptions::File(options)) => {
                let writer = FileWriter::create(options, parts.attempt, parts.output);
                let writer = writer.map_err(TaskError::recoverable)?;
                sink = Some(SinkTail::new(writer));
            }
        }
    }
    let tail = match (sink, parts.records) {
        (Some(sink), None) => Tail::Sink(sink),
        (None, Some(output)) => Tail::Output(output),
        (Some(_), Some(_)) => return Err(TaskError::unrecoverable("the plan has records leave a sink")),
        (None, None) => return Err(TaskError::unrecoverable("the plan has a chain that leads nowhere")),
    };
    let cx = Context::new(parts.figures, parts.dead_letters, parts.origin_job);
    Ok((source, Chain { steps, tail, cx, ending: 0, ended: false }))
}

/// The names and capacities of a vertex's asynchronous steps, for its figures.
pub(crate) fn steps_of(vertex: &Vertex) -> impl Iterator<Item = (String, usize)> {
    vertex.operators.iter().filter_map(|operator| match operator {
        OperatorSpec::Enrich(options) => Some((options.name.clone(), options.capacity)),
        _ => None,
    })
}
