//! A whole task executor on the in-memory network, against a resource manager and a job master that do as a test tells
//! them, under a paused clock.

mod checkpoints;
mod harness;
mod job_masters;
mod registration;
mod slots;
mod tasks;
