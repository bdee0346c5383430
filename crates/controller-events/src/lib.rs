//! A single-threaded event loop: put, clear-and-put, tickets, deadlines, deferred events.
//!
//! A [`Processor`] owns some state and handles [`Event`]s one at a time; nothing else can reach the state. Everyone else
//! holds a [`Handle`] and puts events, from any thread. It mirrors Kafka's controller: the barrier that preempts what
//! waits (`clearAndPut`), the wait for an event's start (`awaitProcessing`), and from its successor events at the head
//! of the line, scheduled and tagged events, and latest start times.
//!
//! ```
//! use controller_events::*;
//! use std::sync::Arc;
//!
//! #[derive(Clone, Copy, PartialEq, Eq)]
//! enum Doing { Idle, Adding }
//! impl EventState for Doing {
//!     const IDLE: Self = Self::Idle;
//!     const ALL: &'static [Self] = &[Self::Idle, Self::Adding];
//!     fn value(self) -> u8 { self as u8 }
//!     fn name(self) -> &'static str { if self == Self::Idle { "Idle" } else { "Adding" } }
//!     fn rate_metric(self) -> Option<&'static str> { (self == Self::Adding).then_some("AddingRateAndTimeMs") }
//! }
//!
//! struct Add(u64, Reply<u64>);
//! impl Event for Add {
//!     type State = Doing;
//!     fn state(&self) -> Doing { Doing::Adding }
//!     fn name(&self) -> &'static str { "Add" }
//!     fn not_run(self, _why: NotRun) {} // the dropped reply answers `Abandoned`
//! }
//!
//! struct Sum(u64);
//! impl Processor for Sum {
//!     type Event = Add;
//!     fn process(&mut self, Add(n, reply): Add, _cx: &mut Cx<'_, Add>) -> Result<(), Fault> {
//!         self.0 += n;
//!         reply.send(self.0);
//!         Ok(())
//!     }
//! }
//!
//! let sum = EventLoop::new(Sum(0), LoopOptions::new(Arc::new(MonotonicClock::start()))).start()?;
//! let (reply, answer) = Reply::pair();
//! sum.handle().put(Add(2, reply))?;
//! assert_eq!(answer.wait(), Ok(2));
//! assert_eq!(sum.close()?.0, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What holds.** Every accepted event ends in exactly one [`Outcome`], which its [`Ticket`] tells and
//! [`Stats::accounted`] counts. An event that is not accepted comes back as a value. A barrier has a before and an after
//! and nothing between. A wait that could never end because the caller is inside the loop is refused.
//!
//! **How it is built.** `queue` is two locks around a pure structure: producers push under one, the loop takes under the
//! other and fetches what was pushed all at once. `event_loop` takes turns, on a thread, as a future or by hand, and
//! reads the time once an event. No user code runs under a lock.
//!
//! **Does `put` need the lock?** Yes, though the queue would be safe without: it keeps a put from falling between the
//! steps of a barrier. Without it an event that comes while a barrier tells what it has cleared is lost (nobody tells it and
//! nobody runs it) or overtakes the barrier. Both are once-in-a-million, and `queue::model` finds each by trying every
//! order of the steps (`cargo test -p controller-events --features model --lib model`), as it shows that the queue here has
//! neither. What it takes is a push under an uncontended lock, eight nanoseconds.
//!
//! **For those who know Kafka.** [`classic`] has its manager, its 25 events and its 17 states by their own names, and the
//! example `kafka_controller` plays a controller on it.
//!
//! **What it does not do.** Handlers do not wait, unless the loop is an [`AsyncEventLoop`]: what waits runs elsewhere
//! ([`Cx::spawn_then`]) and comes back as an event. Nothing is
//! exported: [`Handle`] shows its figures to whoever observes it.

mod brief;
pub mod classic;
mod clock;
mod commit_queue;
mod commits;
mod cx;
mod event;
mod event_loop;
mod handle;
mod inside;
mod metrics;
mod options;
mod periodic;
mod processor;
mod put;
mod queue;
mod reply;
mod room;
mod shared;
mod signal;
mod spawn;
mod stats;
mod sync;
mod tag;
#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
mod ticket;
mod wake;

pub use clock::{MockClock, MonotonicClock};
pub use commit_queue::{CommitQueue, OutOfOrder, Told};
pub use cx::Cx;
pub use event::{Event, EventState, NotRun};
pub use event_loop::{AsyncEventLoop, EventLoop, JoinError, LoopThread, StartError, Step};
pub use handle::{CloseOutcome, Handle};
pub use options::{HaltHook, LoopOptions};
pub use processor::{AsyncProcessor, Fault, FaultAction, Processor, StopReason};
pub use put::{ClearScope, Cleared, Lane, PutError, PutOptions, PutRefusal, When};
pub use reply::{Abandoned, Reply, ReplyReceiver};
pub use spawn::{Spawner, Work};
pub use stats::{SlowestEvent, Stats};
pub use tag::Tag;
pub use ticket::{Outcome, Ticket, WaitError};
