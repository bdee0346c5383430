//! The job master: accepts jobs, and for each schedules its tasks, watches them and fails over.
//!
//! - [`scheduler`] decides what a job does next; with [`checkpoint`], [`slot_pool`], [`splits`], [`restart`] and
//!   [`execution`] it is a pure state machine that is told the time.
//! - [`master`] carries out what it wants: one event loop for each job, its links to the resource manager and to the
//!   task executors.
//! - [`job_store`] remembers jobs that are not over, so that a job master that is started again takes them up.
//! - [`dispatcher`] takes jobs in; [`rest`] is how people and tools reach it.
//! - [`server`] is the process.

pub mod checkpoint;
mod convert;
pub mod counts;
pub mod dispatcher;
mod endpoint;
pub mod execution;
pub mod job_store;
mod master;
mod rest;
pub mod restart;
pub mod scheduler;
pub mod server;
pub mod slot_pool;
pub mod splits;
pub mod status;
#[cfg(test)]
mod tests;

pub use dispatcher::{CancelOutcome, Dispatcher, SubmitError};
pub use master::view::{JobResult, JobView};
pub use server::JobMaster;
