//! From a checked job file to chains and the edges between them.
//!
//! Flink: `StreamingJobGraphGenerator`. Operators are chained for as long as a record may stay in its subtask. A chain
//! is cut where the parallelism changes, and before a keyed step unless the records lie by that key already.

mod explain;

#[cfg(test)]
mod tests;

use runtime_core::VertexId;

pub use explain::explain;

use crate::file::{JobFile, JobFileErrors, JobSpec, StepKind};
use crate::graph::{Edge, JobGraph, OperatorSpec, Output, Partitioning, Vertex};
use crate::options::{EnrichOptions, OnEmpty, OnFailure, Order, SinkOptions, SourceOptions, SplitMode};

/// Plans a job. Whoever plans the same file gets the same graph.
///
/// # Errors
///
/// Every mistake of the file, as [`JobFile::check`] finds them.
pub fn plan(file: &JobFile) -> Result<JobGraph, JobFileErrors> {
    Ok(graph(file.spec()?))
}

/// An operator with the parallelism that it runs with.
struct Placed {
    operator: OperatorSpec,
    parallelism: u32,
}

fn graph(spec: JobSpec) -> JobGraph {
    let dead_letters = spec.dead_letters.clone();
    let job_parallelism = spec.parallelism;
    let operators = operators(&spec);
    let keeps_input_order = operators.iter().all(|placed| {
        let in_order = match &placed.operator {
            OperatorSpec::Enrich(enrich) => enrich.order == Order::Ordered,
            OperatorSpec::Source(_) | OperatorSpec::Filter(_) | OperatorSpec::Sink(_) => true,
        };
        in_order && placed.parallelism == 1
    });
    let mut graph = JobGraph {
        name: spec.name,
        max_parallelism: spec.max_parallelism,
        restart: spec.restart,
        checkpoints: spec.checkpoints,
        vertices: Vec::new(),
        edges: Vec::new(),
        keeps_input_order,
    };
    chain(&mut graph, operators);
    if let Some(sink) = dead_letters {
        let parallelism = if sink.parts { job_parallelism } else { 1 };
        let giving: Vec<VertexId> =
            graph.vertices.iter().filter(|v| gives_dead_letters(v)).map(|v| v.id).collect();
        let sink = Placed { operator: OperatorSpec::Sink(SinkOptions::File(sink)), parallelism };
        let to = add_vertex(&mut graph, vec![sink]);
        for from in giving {
            add_edge(&mut graph, from, to, Output::DeadLetters, Partitioning::RoundRobin);
        }
    }
    graph
}

/// All operators in the order of the stream.
fn operators(spec: &JobSpec) -> Vec<Placed> {
    let own = |parallelism: Option<u32>| parallelism.unwrap_or(spec.parallelism);
    let mut source = spec.source.clone();
    if source.split == SplitMode::Auto {
        // One subtask gains nothing from ranges.
        let whole =
            own(spec.source_parallelism) == 1 || spec.steps.iter().any(|step| step.needs_whole_files());
        source.split = if whole { SplitMode::File } else { SplitMode::Range };
    }
    let mut operators = vec![Placed {
        operator: OperatorSpec::Source(SourceOptions::File(source)),
        parallelism: own(spec.source_parallelism),
    }];
    for step in &spec.steps {
        let operator = match &step.kind {
            StepKind::Filter(filter) => OperatorSpec::Filter(filter.clone()),
            StepKind::Enrich(enrich) => OperatorSpec::Enrich(enrich.clone()),
        };
        operators.push(Placed { operator, parallelism: own(step.parallelism) });
    }
    operators.push(Placed {
        operator: OperatorSpec::Sink(SinkOptions::File(spec.sink.clone())),
        parallelism: if spec.sink.parts { own(spec.sink_parallelism) } else { 1 },
    });
    operators
}

/// Groups the operators into chains and joins these by edges.
fn chain(graph: &mut JobGraph, operators: Vec<Placed>) {
    // By which field's key groups the records lie at this point.
    let mut lies_by: Option<String> = None;
    let mut open: Vec<Placed> = Vec::new();
    let mut incoming: Option<(VertexId, Partitioning)> = None;
    let mut rest = operators.into_iter();
    while let Some(placed) = rest.next() {
        let key = keyed_by(&placed.operator);
        let parallelism = placed.parallelism;
        let changes = open.last().is_some_and(|last| last.parallelism != parallelism);
        let scattered = parallelism > 1 && key.is_some() && key != lies_by.as_deref();
        if changes || scattered {
            let following = std::iter::once(&placed).chain(rest.as_slice());
            let by = if parallelism > 1 { next_key(following.map(|p| &p.operator)) } else { None };
            lies_by.clone_from(&by);
            let partitioning = by.map_or(Partitioning::RoundRobin, |field| Partitioning::KeyGroups { field });
            incoming = Some((close(graph, &mut open, incoming.take()), partitioning));
        }
        if let OperatorSpec::Enrich(enrich) = &placed.operator
            && lies_by.as_deref().is_some_and(|key| may_change(enrich, key))
        {
            lies_by = None;
        }
        open.push(placed);
    }
    close(graph, &mut open, incoming);
}

/// Makes a vertex of the operators gathered so far, with the edge that leads to it.
fn close(
    graph: &mut JobGraph,
    open: &mut Vec<Placed>,
    incoming: Option<(VertexId, Partitioning)>,
) -> VertexId {
    let id = add_vertex(graph, std::mem::take(open));
    if let Some((from, partitioning)) = incoming {
        add_edge(graph, from, id, Output::Records, partitioning);
    }
    id
}

/// The key of the next keyed step, if no step before it may change the key. When records have to be moved anyway they
/// are moved by it, as dealing them out in turn would lose the order within a key for good.
fn next_key<'a>(operators: impl Iterator<Item = &'a OperatorSpec>) -> Option<String> {
    let mut passed: Vec<&EnrichOptions> = Vec::new();
    for operator in operators {
        if let Some(key) = keyed_by(operator) {
            return passed.iter().all(|enrich| !may_change(enrich, key)).then(|| key.to_owned());
        }
        if let OperatorSpec::Enrich(enrich) = operator {
            passed.push(enrich);
        }
    }
    None
}

fn keyed_by(operator: &OperatorSpec) -> Option<&str> {
    match operator {
        OperatorSpec::Enrich(enrich) if enrich.order == Order::Keyed => enrich.key.as_deref(),
        _ => None,
    }
}

/// Whether a record may have another key after the step: the answer replaces it, or the field that holds the key.
fn may_change(enrich: &EnrichOptions, key: &str) -> bool {
    enrich.into.as_deref().is_none_or(|into| into == key || key.split('.').next() == Some(into))
}

fn gives_dead_letters(vertex: &Vertex) -> bool {
    vertex.operators.iter().any(|operator| match operator {
        // Malformed input.
        OperatorSpec::Source(_) => true,
        OperatorSpec::Filter(filter) => filter.on_failure == OnFailure::DeadLetter,
        OperatorSpec::Enrich(enrich) => {
            enrich.on_failure == OnFailure::DeadLetter || enrich.on_empty == OnEmpty::DeadLetter
        }
        OperatorSpec::Sink(_) => false,
    })
}

fn add_vertex(graph: &mut JobGraph, placed: Vec<Placed>) -> VertexId {
    let id = VertexId(u32::try_from(graph.vertices.len()).unwrap_or(u32::MAX));
    let parallelism = placed.first().map_or(1, |first| first.parallelism);
    let operators: Vec<OperatorSpec> = placed.into_iter().map(|placed| placed.operator).collect();
    let names: Vec<String> = operators.iter().map(OperatorSpec::name).collect();
    graph.vertices.push(Vertex { id, name: names.join(" -> "), parallelism, operators });
    id
}

fn add_edge(graph: &mut JobGraph, from: VertexId, to: VertexId, output: Output, partitioning: Partitioning) {
    let id = u32::try_from(graph.edges.len()).unwrap_or(u32::MAX);
    graph.edges.push(Edge { id, from, to, output, partitioning });
}
