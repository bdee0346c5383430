//! The programs as people meet them: real processes, real sockets, real files.
//!
//! Each test has a cluster of its own on free ports. What has to come out is computed by `testkit::join`, which knows
//! nothing of the code under test. "In the middle of a run" is made by a source with a limited rate and by asking REST
//! how far the job is.

// Everything here is a test; the lints know only functions that are marked as one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod bad_input;
mod checkpoints;
mod failover;
mod heartbeats;
mod jobs;
mod keys;
mod masters;
mod savepoints;
mod workers;
mod world;
