//! The checked plan of a job: chains, and the edges on which records move between them.
//!
//! Flink: `JobGraph`. A vertex is a *chain*: its operators call each other directly within one subtask. Chains are cut
//! only where records must move between subtasks. Job master and task executors plan the same job file with the same
//! code, so the graph itself never travels.

use runtime_core::VertexId;

use crate::options::{
    CheckpointOptions, EnrichOptions, FileSinkOptions, FileSourceOptions, FilterOptions, RestartStrategy,
    SinkOptions, SourceOptions,
};

/// A planned job.
#[derive(Debug, Clone)]
pub struct JobGraph {
    /// The job's name.
    pub name: String,
    /// The number of key groups.
    pub max_parallelism: u32,
    /// What happens after a failure.
    pub restart: RestartStrategy,
    /// Absent: no checkpoints.
    pub checkpoints: Option<CheckpointOptions>,
    /// The chains in the order of the stream; a vertex's id is its place here.
    pub vertices: Vec<Vertex>,
    /// The edges; an edge's id is its place here.
    pub edges: Vec<Edge>,
    /// Whether the output has the order of the input.
    pub keeps_input_order: bool,
}

impl JobGraph {
    /// How many slots the job needs: one subtask of each chain shares a slot.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.vertices.iter().map(|v| v.parallelism).max().unwrap_or(0)
    }

    /// Where the records come from.
    #[must_use]
    pub fn source(&self) -> Option<&FileSourceOptions> {
        match self.vertices.first()?.operators.first()? {
            OperatorSpec::Source(SourceOptions::File(source)) => Some(source),
            _ => None,
        }
    }

    /// Where they go, and where dead letters go.
    pub fn sinks(&self) -> impl Iterator<Item = &FileSinkOptions> {
        self.vertices.iter().filter_map(Vertex::sink)
    }
}

/// A chain of operators, run by `parallelism` subtasks.
#[derive(Debug, Clone)]
pub struct Vertex {
    /// Its place in the graph.
    pub id: VertexId,
    /// The names of its operators joined by ` -> `, as in Flink: `source: orders.jsonl -> customer -> sink`.
    pub name: String,
    /// How many subtasks.
    pub parallelism: u32,
    /// Never empty. A source comes first, a sink last.
    pub operators: Vec<OperatorSpec>,
}

impl Vertex {
    /// Its asynchronous steps, in the order of the stream.
    pub fn steps(&self) -> impl Iterator<Item = &EnrichOptions> {
        self.operators.iter().filter_map(|operator| match operator {
            OperatorSpec::Enrich(enrich) => Some(enrich),
            _ => None,
        })
    }

    /// Its sink, if records end here.
    #[must_use]
    pub fn sink(&self) -> Option<&FileSinkOptions> {
        match self.operators.last()? {
            OperatorSpec::Sink(SinkOptions::File(sink)) => Some(sink),
            _ => None,
        }
    }
}

/// One operator of a chain.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a job has a handful of them, and they are read in place")]
pub enum OperatorSpec {
    /// Reads records.
    Source(SourceOptions),
    /// Lets records pass or not.
    Filter(FilterOptions),
    /// Asks something about each record.
    Enrich(EnrichOptions),
    /// Writes records.
    Sink(SinkOptions),
}

impl OperatorSpec {
    /// Its name in the chain's: `source: orders.jsonl`, a step's own name, `sink`, `dead letters`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Source(SourceOptions::File(source)) => format!("source: {}", last_part(&source.path)),
            Self::Filter(filter) => filter.name.clone(),
            Self::Enrich(enrich) => enrich.name.clone(),
            Self::Sink(SinkOptions::File(sink)) if sink.dead_letters => "dead letters".to_owned(),
            Self::Sink(SinkOptions::File(_)) => "sink".to_owned(),
        }
    }
}

/// The last part of a path; of a glob with the folder before it, as `*.jsonl` alone says little.
fn last_part(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let Some((folder, name)) = path.rsplit_once('/') else { return path };
    if !name.contains(['*', '?', '[']) {
        return name;
    }
    let start = folder.rfind('/').map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or(name)
}

/// Records moving from the subtasks of one chain to those of another.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Its place in the graph.
    pub id: u32,
    /// From each subtask of this vertex ...
    pub from: VertexId,
    /// ... to the subtasks of this one.
    pub to: VertexId,
    /// Which of the chain's outputs travels here.
    pub output: Output,
    /// Which subtask a record goes to.
    pub partitioning: Partitioning,
}

/// What leaves a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// What passed all operators.
    Records,
    /// What some operator could not deal with, and malformed input.
    DeadLetters,
}

/// Which subtask of the next chain a record goes to. Control elements go to all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitioning {
    /// The next one in turn.
    RoundRobin,
    /// The one that owns the key group of this field; a record without the key, the next one in turn.
    KeyGroups {
        /// The field that holds the key.
        field: String,
    },
}
