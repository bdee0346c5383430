//! The resource manager: it knows the task executors and their slots, and hands slots to jobs.
//!
//! What decides is [`slot_manager`], a pure state machine. The role itself is a processor on the `controller-events`
//! loop; whatever waits runs elsewhere and comes back as an event. It is the directory of the cluster as well: task
//! executors learn from it who leads a job. With a driver it starts and stops task executors as well: [`workers`]. Nothing of
//! it needs to survive a restart but its epoch and the list of workers that it has started: task executors and job masters
//! register again and say what they have and what they need.

mod callback;
mod endpoint;
mod event;
mod processor;
pub mod server;
pub mod slot_manager;
#[cfg(test)]
mod tests;
pub mod workers;

pub use server::ResourceManager;
