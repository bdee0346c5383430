//! Whole tasks on one thread, under a paused clock, with files in a temporary folder.

mod cancel;
mod chains;
mod checkpointed;
mod checkpoints;
mod exactly_once;
mod exchange;
mod harness;
mod outcomes;
mod pipelines;
mod restoring;
mod savepoints;
