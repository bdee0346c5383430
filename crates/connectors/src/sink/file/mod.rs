//! The file sink: one file, or a folder of parts.
//!
//! **Writing.** An attempt writes to a dot file beside its target, named after the attempt, so that no two attempts ever
//! write to the same file: one that was given up and wakes again can only write what nobody will read. [`FileWriter`] is
//! that half. At a barrier the dot file is synced and gets a *staged* name, which has the checkpoint behind the attempt.
//!
//! **Committing.** Without checkpoints there is one commit, when all tasks have finished: the dot file becomes the target
//! by a rename. With checkpoints there is one for each; a part gets its name, `part-SUBTASK-CHECKPOINT.jsonl`, and what is
//! staged for a single file is appended to it, each piece at an offset that is known when it is staged. [`commit`] is that
//! half. A target is never cut and a byte of it never replaced by another, so that a commit that is late, repeated, or
//! carried out twice at the same time changes nothing that a later one has appended.
//!
//! **The numbers of parts.** A part that is staged at a barrier has the id of its checkpoint. The last one, which is staged
//! at the end, has the number behind that of the last barrier, or of the restored checkpoint where no barrier came since.
//! No two parts of a subtask that become visible have the same number. Take a completed checkpoint *c* and the one before it
//! that counted, *p*: where the job began, 0, or what the attempt was restored from. Output that becomes visible with *c*
//! and not before was staged behind barrier *p*, by one attempt, at barriers above *p* and up to *c*: different ids. If it
//! ended before barrier *c*, the last barrier *b* has *p* ≤ *b* < *c*, so that its last part's number is above that of
//! every other and still in *p* + 1 to *c*. The parts of each checkpoint so lie in a range of their own. Ids
//! of checkpoints that were given up are never used again.
//!
//! [`prepare`] comes before a job's first deployment, [`sweep`] at its end, and that or [`sweep_attempts`] before each
//! deployment.

mod commit;
mod continued;
mod disk;
mod name;
mod target;
mod writer;

pub use commit::{FileCommitter, commit};
pub use continued::{SavedEnd, check_continued, prepare_continued, restore};
pub use target::{check, prepare, sweep, sweep_attempts};
pub use writer::{FileWriter, Mode, Restored};

pub use super::{SinkError, StagedFile};

#[cfg(test)]
mod tests;
