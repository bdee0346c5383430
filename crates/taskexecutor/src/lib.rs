//! The task executor: slots, tasks and the data exchange between them.
//!
//! [`TaskExecutor`] is the role: registered at the resource manager, it holds [`slots`] for jobs, runs what their masters
//! send ([`task`]) and moves records between tasks ([`exchange`]). What decides runs on one event loop; tasks have threads
//! of their own, and everything that waits is on the I/O runtime. A task executor is not led and nothing of it survives a
//! restart: a process that comes back is another life under the same name.
//!
//! Whoever has calls written in Rust builds a program of their own with [`TaskExecutor::builder`].

mod builder;
mod chain;
mod endpoint;
mod event;
pub mod exchange;
pub mod figures;
mod keeper;
mod outbox;
mod prepare;
mod processor;
pub mod server;
mod shared;
pub mod slots;
mod splits;
pub mod task;
mod task_metrics;
#[cfg(test)]
mod tests;

pub use builder::TaskExecutorBuilder;
pub use processor::Fatal;
pub use server::TaskExecutor;
