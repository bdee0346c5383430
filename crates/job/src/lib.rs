//! From a job file to a checked, planned job graph; records, filters and templates, without I/O.
//!
//! [`file`] reads a job file and finds every mistake in it; [`plan`](mod@plan) makes a [`graph`] of chains and edges with the
//! checked [`options`] of each operator. [`record`] is what flows: a line's bytes with the places of its fields, which
//! [`filter`], [`template`], [`key`] and [`event_time`] look at and [`dead_letter`] reports.
//!
//! Job master, task executors and command line plan the same file with the same code. Whether files and services exist
//! is found by those who open them, never here.

pub mod dead_letter;
pub mod event_time;
pub mod file;
pub mod filter;
pub mod graph;
pub mod idempotency;
pub mod key;
pub mod options;
pub mod plan;
pub mod record;
mod suggest;
pub mod template;
