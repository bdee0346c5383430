//! Sources, sinks and calls of a job, one module a system.
//!
//! `job` has checked the options; here they meet the world: files, services, functions. Everything that reads or writes
//! files blocks and is meant for a thread that may block, as the thread of a chain's subtask is. What a step asks is
//! a [`call::Call`]: an answer that is there at once, or a future for the asynchronous operator to drive.
//!
//! It does not decide what becomes of a malformed line, an empty answer or a failure: that is the chain's policy.
//! It knows nothing of tasks, checkpoints or the wire.

pub mod call;
pub mod check;
pub mod sink;
pub mod source;

#[cfg(test)]
mod random;
