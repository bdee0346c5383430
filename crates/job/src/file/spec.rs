//! A job file that has been checked, before it is planned.

use crate::options::{
    CheckpointOptions, EnrichOptions, FileSinkOptions, FileSourceOptions, FilterOptions, RestartStrategy,
};

/// A checked job.
#[derive(Debug, Clone)]
pub(crate) struct JobSpec {
    pub(crate) name: String,
    pub(crate) parallelism: u32,
    pub(crate) max_parallelism: u32,
    pub(crate) checkpoints: Option<CheckpointOptions>,
    pub(crate) restart: RestartStrategy,
    pub(crate) source: FileSourceOptions,
    pub(crate) source_parallelism: Option<u32>,
    pub(crate) steps: Vec<StepSpec>,
    pub(crate) sink: FileSinkOptions,
    pub(crate) sink_parallelism: Option<u32>,
    pub(crate) dead_letters: Option<FileSinkOptions>,
}

/// A checked step and the parallelism it asks for.
#[derive(Debug, Clone)]
pub(crate) struct StepSpec {
    pub(crate) kind: StepKind,
    pub(crate) parallelism: Option<u32>,
}

/// What a step does.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a job has a handful of them, and they are read in place")]
pub(crate) enum StepKind {
    Filter(FilterOptions),
    Enrich(EnrichOptions),
}
