//! The event manager of Kafka's controller, by its own names.
//!
//! For those who know the original: [`ControllerEventManager`] with `put`, `clear_and_put`, `start` and `close`,
//! [`QueuedEvent`] with `await_processing`, the [17 states](ControllerState) and [25 events](ControllerEvent) of Kafka 2.5
//! and 2.6 and their [metrics](ControllerEventManager::metrics). Underneath is an [`EventLoop`], which also does the
//! rest ([`ControllerEventManager::handle`]).
//!
//! ```
//! use controller_events::classic::{ControllerEvent, ControllerEventManager, ControllerEventProcessor};
//!
//! #[derive(Default)]
//! struct Log(Vec<&'static str>);
//!
//! impl ControllerEventProcessor for Log {
//!     type Event = ControllerEvent;
//!     fn process(&mut self, event: ControllerEvent) {
//!         self.0.push(controller_events::Event::name(&event));
//!     }
//! }
//!
//! let mut manager = ControllerEventManager::new(0, Log::default());
//! manager.put(ControllerEvent::TopicChange)?;
//! manager.start()?;
//! let expire = manager.clear_and_put(ControllerEvent::Expire)?;
//! expire.await_processing()?;
//! let log = manager.close().ok_or("the thread died")?;
//! assert_eq!(log.0.last(), Some(&"Expire"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What is different.** The queue is the 2.7 one in 2.6's tables: a barrier takes everything out and then tells each, so
//! nothing is lost. A put after `close` comes back as an error instead of being kept for ever, a wait for an event that will
//! never start ends, a panic in `preempt` stops nobody else, and two events whose preemption left their callers waiting answer
//! them. Time is monotonic, so a time in the queue is never negative. `close` needs no event; `ShutdownEventThread` is in
//! the tables because its number is, and is swallowed if it is put.

mod event;
mod manager;
mod metrics;
mod state;
#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;

pub use event::{
    BrokerId, ControllerError, ControllerEvent, EVENTS, ElectionTrigger, ElectionType, OngoingReassignments,
    PartitionErrors, Reassignments, TopicPartition,
};
pub use manager::{
    CONTROLLER_EVENT_THREAD_NAME, ControllerEventManager, ControllerEventProcessor, QueuedEvent,
};
pub use metrics::{KafkaMetric, MetricValue};
pub use state::ControllerState;

#[cfg(doc)]
use crate::EventLoop;
