//! What `validate` and `local` find out before anything runs: inputs are there, outputs are not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use job::graph::{JobGraph, OperatorSpec};
use job::options::{CallOptions, SinkOptions, SourceOptions};

use crate::sink::file::{SinkError, check};
use crate::source::file::{SourceError, find_files};

/// Something that a job needs and does not find, or that is in its way.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Finding {
    /// The key of the job file that it is about: `steps.customer.call.table.file`.
    pub key: String,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a path of a job file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Of an input or a table.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Of an output.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Two outputs would overwrite each other.
    #[error("the output `{path}` is also that of `{other}`; each needs a path of its own")]
    SameOutput {
        /// The path.
        path: PathBuf,
        /// The key that has it as well.
        other: String,
    },
    /// With `overwrite`, an output would remove what the job reads.
    #[error("the output `{path}` is also an input of the job")]
    OutputIsInput {
        /// The path.
        path: PathBuf,
    },
}

/// Checks all paths of a job against the file system. Changes nothing.
///
/// # Errors
///
/// All findings, in the order of the stream.
pub fn check_job(graph: &JobGraph) -> Result<(), Vec<Finding>> {
    let mut found = Findings::default();
    for operator in graph.vertices.iter().flat_map(|vertex| &vertex.operators) {
        found.look_at(operator);
    }
    if found.findings.is_empty() { Ok(()) } else { Err(found.findings) }
}

#[derive(Default)]
struct Findings {
    findings: Vec<Finding>,
    inputs: Vec<PathBuf>,
    outputs: Vec<(String, PathBuf)>,
}

impl Findings {
    fn look_at(&mut self, operator: &OperatorSpec) {
        match operator {
            OperatorSpec::Source(SourceOptions::File(file)) => match find_files(&file.path) {
                Ok(files) => {
                    for (path, _) in files {
                        self.note("source.file.path", readable(&path));
                        self.inputs.push(path);
                    }
                }
                Err(error) => self.note("source.file.path", Err(error)),
            },
            OperatorSpec::Enrich(enrich) => {
                if let CallOptions::Table(table) = &enrich.call {
                    self.note(&format!("steps.{}.call.table.file", enrich.name), readable(&table.file));
                    self.inputs.push(table.file.clone());
                }
            }
            OperatorSpec::Filter(_) => {}
            OperatorSpec::Sink(SinkOptions::File(file)) => {
                let key = if file.dead_letters { "dead_letters.file.path" } else { "sink.file.path" };
                if self.inputs.contains(&file.path) {
                    self.note(key, Err(Problem::OutputIsInput { path: file.path.clone() }));
                } else {
                    self.note(key, check(file));
                }
                if let Some((other, path)) = self.outputs.iter().find(|(_, path)| *path == file.path) {
                    let problem = Problem::SameOutput { path: path.clone(), other: other.clone() };
                    self.note(key, Err(problem));
                }
                self.outputs.push((key.to_owned(), file.path.clone()));
            }
        }
    }

    fn note(&mut self, key: &str, result: Result<(), impl Into<Problem>>) {
        if let Err(problem) = result {
            self.findings.push(Finding { key: key.to_owned(), problem: problem.into() });
        }
    }
}

fn readable(path: &Path) -> Result<(), SourceError> {
    let cannot_open = |source| SourceError::Open { path: path.to_path_buf(), source };
    // Looked at before it is opened: opening a pipe would wait for whoever writes into it.
    if !fs::metadata(path).map_err(cannot_open)?.is_file() {
        return Err(SourceError::NotAFile { path: path.to_path_buf() });
    }
    File::open(path).map(drop).map_err(cannot_open)
}

#[cfg(test)]
mod tests;
