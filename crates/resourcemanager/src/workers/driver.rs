//! What starts and stops workers.

use std::fmt;
use std::sync::Arc;

use runtime_core::ResourceId;
use wire::Address;

/// What has become of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverEvent {
    /// It has its place (Flink: it is allocated); it has yet to register.
    Started(ResourceId),
    /// It could not be started, for this reason, or was no longer wanted before it was. Nothing of it is left.
    NotStarted(ResourceId, String),
    /// It has ended. Nothing of it is left.
    Ended(ResourceId, Ending),
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ending {
    /// Its exit status or signal.
    pub status: String,
    /// The last that it logged, in one line; empty where it logged nothing.
    pub last_words: String,
    /// Where the rest is found.
    pub log: String,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it ended with {}", self.status)?;
        if !self.last_words.is_empty() {
            write!(f, "; its last words: {}", self.last_words)?;
        }
        if !self.log.is_empty() {
            write!(f, " (log: {})", self.log)?;
        }
        Ok(())
    }
}

/// Whom a driver tells what becomes of its workers.
pub type DriverEvents = Arc<dyn Fn(DriverEvent) + Send + Sync>;

/// Starts and stops workers somewhere: as processes, in containers.
///
/// No method waits. Each start ends in exactly one [`DriverEvent::NotStarted`] or [`DriverEvent::Ended`], perhaps after a
/// [`DriverEvent::Started`]; so does each worker that was recovered. With a driver only task executors that it has
/// started are registered.
pub trait WorkerDriver: Send + Sync + 'static {
    /// Begins the driver's work, once: where workers are to register, and whom to tell of them. The answer is the workers
    /// of an earlier life of this resource manager that still live; they are watched from now on.
    fn begin(&self, resource_manager: &Address, events: DriverEvents) -> Vec<ResourceId>;

    /// Begins to start a worker, which is to register under this name.
    fn start(&self, id: &ResourceId);

    /// Stops a worker, or gives its start up. One that is not there is nothing to stop.
    fn stop(&self, id: &ResourceId);
}
