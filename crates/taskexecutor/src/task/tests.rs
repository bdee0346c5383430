//! Whole tasks on one thread, under a paused clock, with files in a temporary folder.

mod cancel;
mod chains;
mod exchange;
mod harness;
mod outcomes;
mod pipelines;
