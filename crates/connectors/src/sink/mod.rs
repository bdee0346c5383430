//! Where records go, in two phases.
//!
//! A task writes and *stages*: what its sink has staged is on the disk (or wherever the system keeps it), complete, and
//! visible to nobody. The job master *commits*: it makes visible what a completed checkpoint has staged. Between the two
//! either may die, so that everything here can be repeated.
//!
//! 1. The task calls [`TwoPhaseSink::write_line`] for each record. At a barrier it calls [`TwoPhaseSink::stage`] and puts
//!    what that returns, and [`TwoPhaseSink::committed_length`], into its part of the checkpoint.
//! 2. When all parts are there and the checkpoint is written down for good, and never before, the job master calls
//!    [`Committer::commit`] with the staged output of all tasks, and again after each restart and recovery until a later
//!    checkpoint is complete. What it commits is therefore never taken back.
//! 3. Then it tells the tasks, which call [`TwoPhaseSink::confirmed`]. That may be lost: what is not known to be visible
//!    is staged output of the next checkpoint too, and committing it once more changes nothing.
//! 4. A checkpoint that was given up is not committed; what it staged is in the next one. Only when an attempt has been
//!    stopped is its remaining staged output void, as the next attempt writes those records again: [`Committer::sweep`].
//!
//! The sink of another system implements the same two traits: `stage` prepares a transaction (or uploads a part, or
//! writes into a table that nobody reads), `commit` makes it count if it does not yet, `sweep` gives it up. It must be able
//! to commit what an earlier process has prepared, by its name alone, and to tell what was committed from what was lost.
//! A sink that cannot, as one that sends each record on, has no place here: its results would not be exactly once.
//! What was staged is a [`StagedFile`], as files are what sinks write today; a system with handles of another kind makes
//! it an enum, here and in the message that carries it.
//!
//! ```
//! use connectors::sink::file::{FileCommitter, FileWriter, Mode, Restored, prepare};
//! use connectors::sink::{Committer, TwoPhaseSink};
//! use job::options::FileSinkOptions;
//! use runtime_core::{AttemptId, Epoch, JobId, VertexId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("out.jsonl");
//! let options = FileSinkOptions { path: path.clone(), parts: false, overwrite: false, dead_letters: false };
//! let job = JobId::from_u128(1);
//! let attempt = AttemptId { job, term: Epoch(1), vertex: VertexId(0), subtask: 0, attempt: 0 };
//! prepare(&options)?;
//!
//! let writer = FileWriter::create(&options, attempt, Mode::WithCheckpoints(Restored::default()))?;
//! let mut sink: Box<dyn TwoPhaseSink> = Box::new(writer);
//! sink.write_line(b"{}")?;
//! let staged = sink.stage(1)?;
//! assert!(!path.exists());
//!
//! let committer: &dyn Committer = &FileCommitter(&options);
//! committer.commit(&staged)?;
//! committer.commit(&staged)?;
//! sink.confirmed(1);
//! assert_eq!(std::fs::read(&path)?, b"{}\n");
//! assert_eq!(sink.finish()?, []);
//! assert_eq!(committer.sweep(job)?, 0);
//! # Ok(())
//! # }
//! ```

mod error;
pub mod file;

use std::path::PathBuf;

pub use error::SinkError;
use runtime_core::{AttemptId, JobId};

/// The first phase: one attempt's output, written and staged by its task. It blocks.
///
/// After an error of [`write_line`](Self::write_line) the attempt cannot go on. A [`stage`](Self::stage) that failed has
/// lost nothing: its output is staged by the next one, or that fails as well.
pub trait TwoPhaseSink: Send {
    /// Appends a line; the line end is added.
    ///
    /// # Errors
    ///
    /// It cannot be written. Nothing can be written or staged from then on.
    fn write_line(&mut self, line: &[u8]) -> Result<(), SinkError>;

    /// At the barrier of a checkpoint: puts what was written since the last one on the disk and stages it. Returns all
    /// staged output that is not known to be visible, in order; that of earlier checkpoints is among it until it is
    /// confirmed. Where nothing was written nothing is added.
    ///
    /// # Errors
    ///
    /// Something cannot be staged; the checkpoint is to be declined.
    fn stage(&mut self, checkpoint: u64) -> Result<Vec<StagedFile>, SinkError>;

    /// Of output into one target: its length once all that is staged has been appended. Otherwise 0.
    fn committed_length(&self) -> u64;

    /// What was staged at the barriers of `checkpoint` and earlier ones is visible, and is no more handed over.
    fn confirmed(&mut self, checkpoint: u64);

    /// At the end of the input: stages what is left, and returns all that is not known to be visible, in order. Nothing can
    /// be written or staged from then on.
    ///
    /// # Errors
    ///
    /// Something cannot be staged.
    fn finish(&mut self) -> Result<Vec<StagedFile>, SinkError>;
}

/// The second phase, carried out by the job master alone. It blocks.
pub trait Committer: Send + Sync {
    /// Makes staged output visible, and returns when that would survive a loss of power. It may be repeated at any time,
    /// also after it has failed or broken off at any point: what is visible already is left alone.
    ///
    /// # Errors
    ///
    /// Something cannot be made visible. All before it is; the call is to be repeated.
    fn commit(&self, staged: &[StagedFile]) -> Result<(), SinkError>;

    /// Gives up all that attempts of the job have staged and that is not committed, and says how many pieces that were. The
    /// attempts must have been stopped, and what is to be visible must have been committed.
    ///
    /// # Errors
    ///
    /// It cannot be listed or removed.
    fn sweep(&self, job: JobId) -> Result<usize, SinkError>;

    /// As [`sweep`](Self::sweep), but only what these attempts have left: others of the job go on.
    ///
    /// # Errors
    ///
    /// It cannot be listed or removed.
    fn sweep_attempts(&self, attempts: &[AttemptId]) -> Result<usize, SinkError>;
}

/// Complete and synced output of one attempt that is not visible yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Where it lies.
    pub staged_path: PathBuf,
    /// Where it becomes visible, in the same folder.
    pub final_path: PathBuf,
    /// Its bytes.
    pub length: u64,
    /// Where in the target it is to be appended; `None`: it becomes the target by a new name.
    pub offset: Option<u64>,
}
