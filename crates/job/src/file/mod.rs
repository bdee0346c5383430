//! Job files: YAML or JSON text, changed by `--set`, checked whole, sent on as JSON.
//!
//! A file is kept as the tree that was written, every value with its place. It is the tree that `--set` changes, whose
//! paths are made absolute, and that travels; the checked options are read from it whenever a job is planned, by the
//! same code in every role. Nothing here looks at the file system.

mod error;
mod find;
mod node;
mod paths;
mod read;
mod read_call;
mod read_restart;
mod read_step;
mod section;
mod set;
mod spec;
mod units;

#[cfg(test)]
mod mistakes_tests;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use error::{JobFileError, JobFileErrors, Place};
use node::Node;
use section::Findings;
pub(crate) use spec::{JobSpec, StepKind};
pub(crate) use units::{show_duration, show_size};

/// A job file.
///
/// ```
/// use job::file::JobFile;
///
/// let text = "
/// name: big-orders
/// source: {file: {path: orders.jsonl}}
/// steps:
///   - filter: amount > 500
/// sink: {file: {path: big.jsonl}}
/// ";
/// let mut file = JobFile::parse(text, "big.yaml")?;
/// file.apply_set("parallelism", "4")?;
/// file.absolute_paths("/data".as_ref());
/// assert_eq!(job::plan::plan(&file)?.vertices.len(), 2);
///
/// let errors = JobFile::parse("name: x\nsteps: []\n", "x.yaml").unwrap_err();
/// assert!(errors.to_string().contains("x.yaml:2:8: steps: there is no step"));
/// # Ok::<(), job::file::JobFileErrors>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    file: String,
    root: Node,
}

impl JobFile {
    /// Reads a job file and checks it whole. `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// Every mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, JobFileErrors> {
        let job = Self::read(text, file)?;
        job.check()?;
        Ok(job)
    }

    /// Reads a job file that is to be changed by [`Self::apply_set`] before it is checked.
    ///
    /// # Errors
    ///
    /// The first thing that is no YAML.
    pub fn read(text: &str, file: &str) -> Result<Self, JobFileErrors> {
        let root = Node::read(text, file)?;
        Ok(Self { file: file.to_owned(), root })
    }

    /// Checks the job.
    ///
    /// # Errors
    ///
    /// Every mistake, with its place.
    pub fn check(&self) -> Result<(), JobFileErrors> {
        self.spec().map(|_| ())
    }

    /// Sets a key: `parallelism`, `source.file.max_rate`, `steps.customer.capacity` (a step by its name, or by its place:
    /// `steps.1.enrich.capacity`). The value is read as YAML. Keys on the way are made where they are missing.
    ///
    /// # Errors
    ///
    /// A key that leads nowhere, a step that does not exist, a value that is no YAML. Whether the value suits the key is
    /// found by [`Self::check`] and by planning; that error names the flag, too.
    pub fn apply_set(&mut self, key: &str, value: &str) -> Result<(), JobFileErrors> {
        set::apply(&mut self.root, &self.file, key, value).map_err(JobFileErrors::from)
    }

    /// Makes the paths of inputs, tables, outputs and checkpoints absolute; relative ones are meant from `base`, the
    /// absolute path of the job file's folder.
    pub fn absolute_paths(&mut self, base: &Path) {
        paths::make_absolute(&mut self.root, base);
    }

    /// Refuses a job that came without a folder and has relative paths.
    ///
    /// # Errors
    ///
    /// Each relative path.
    pub fn require_absolute_paths(&self) -> Result<(), JobFileErrors> {
        let findings = Findings::new(&self.file);
        paths::require_absolute(&self.root, &findings);
        findings.conclude(Some(()))
    }

    /// What was found out about the value of a key after the file was checked (an input that is not there), with the
    /// place of that key. A step goes by its name: `steps.customer.call.table.file`.
    #[must_use]
    pub fn mistake_at(&self, key: &str, message: impl Into<String>) -> JobFileError {
        let (place, path) = find::find(&self.root, key);
        JobFileError { file: self.file.clone(), place, path, message: message.into() }
    }

    /// The job as one line of JSON, which [`Self::parse`] reads back.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A tree of texts, numbers, lists and maps with text keys can always be printed.
        serde_json::to_string(&self.root).unwrap_or_default()
    }

    /// The job's name, as far as it can be read from a file that may be wrong.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.root.get("name")?.value {
            node::Value::Text(name) => Some(name),
            _ => None,
        }
    }

    /// The checked options.
    pub(crate) fn spec(&self) -> Result<JobSpec, JobFileErrors> {
        let findings = Findings::new(&self.file);
        let spec = read::job(&self.root, &findings);
        findings.conclude(spec)
    }
}
