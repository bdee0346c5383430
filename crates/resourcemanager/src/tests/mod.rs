//! A whole resource manager on the in-memory network, against task executors and job masters that do as a test tells
//! them, under a paused clock.

// Everything here is a test; the lints know only functions that are marked as one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod harness;
mod registration;
mod slots;
mod workers;
