//! Snapshots as values: their bytes, what damaged bytes do, and another parallelism.

// Everything here is a test; what the tests share stands in functions that the lints do not know as such.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod build;
mod encoding;
mod hostile;
mod rescale;
