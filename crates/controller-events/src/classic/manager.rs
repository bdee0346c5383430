//! The manager, its processor and its queued events.

use super::metrics::{self, KafkaMetric};
use crate::clock::MonotonicClock;
use crate::cx::Cx;
use crate::event::{Event, EventState, NotRun};
use crate::event_loop::{EventLoop, LoopThread, StartError};
use crate::handle::Handle;
use crate::options::LoopOptions;
use crate::processor::{Fault, FaultAction, Processor};
use crate::put::{ClearScope, PutError};
use crate::ticket::{Ticket, WaitError};
use runtime_core::{Clock, Tick};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

/// The name of the thread that processes.
pub const CONTROLLER_EVENT_THREAD_NAME: &str = "controller-event-thread";

/// Processes events, or hears that one will not be processed.
pub trait ControllerEventProcessor: Send + 'static {
    /// What it processes.
    type Event: Event;

    /// Processes an event, on the manager's thread. A panic is logged, counted and goes no further.
    fn process(&mut self, event: Self::Event);

    /// Hears of an event that was cleared, on whatever thread cleared it; without access to the processor's state, which
    /// may be at work. The default is [`Event::not_run`].
    fn preempt(event: Self::Event, why: NotRun) {
        event.not_run(why);
    }
}

/// An event that was put.
#[derive(Debug)]
pub struct QueuedEvent {
    ticket: Ticket,
    enqueued: Tick,
}

impl QueuedEvent {
    /// Blocks until the event's processing has *started*: every earlier event has finished then, this one has not.
    ///
    /// # Errors
    /// [`WaitError`] if it never will, or if this is called where the answer cannot come. (The original waits for ever.)
    pub fn await_processing(&self) -> Result<(), WaitError> {
        self.ticket.wait_started()
    }

    /// When it was put, in milliseconds of the manager's clock.
    #[must_use]
    pub const fn enqueue_time_ms(&self) -> u64 {
        self.enqueued.as_millis()
    }

    /// The ticket, which also tells the end and can be awaited.
    #[must_use]
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}

/// A processor's event in the loop: preempted by the processor's type.
pub struct Wrapped<P: ControllerEventProcessor>(P::Event, PhantomData<fn(P)>);

impl<P: ControllerEventProcessor> Wrapped<P> {
    fn of(event: P::Event) -> Self {
        Self(event, PhantomData)
    }

    fn is_shutdown(&self) -> bool {
        self.0.name() == "ShutdownEventThread"
    }
}

impl<P: ControllerEventProcessor> Event for Wrapped<P> {
    type State = <P::Event as Event>::State;

    fn state(&self) -> Self::State {
        // The original looks for this event before it changes its state.
        if self.is_shutdown() { Self::State::IDLE } else { self.0.state() }
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn not_run(self, why: NotRun) {
        P::preempt(self.0, why);
    }
}

struct Adapter<P>(P);

impl<P: ControllerEventProcessor> Processor for Adapter<P> {
    type Event = Wrapped<P>;

    fn process(&mut self, event: Wrapped<P>, _cx: &mut Cx<'_, Wrapped<P>>) -> Result<(), Fault> {
        if !event.is_shutdown() {
            self.0.process(event.0);
        }
        Ok(())
    }
}

enum Life<P: ControllerEventProcessor> {
    Prepared(EventLoop<Adapter<P>>),
    Started(LoopThread<Adapter<P>>),
    Closed,
}

/// Puts events to a processor on a thread of its own.
///
/// Kafka: `ControllerEventManager`.
pub struct ControllerEventManager<P: ControllerEventProcessor> {
    controller_id: i32,
    handle: Handle<Wrapped<P>>,
    life: Life<P>,
}

impl<P: ControllerEventProcessor> ControllerEventManager<P> {
    /// A manager on the machine's clock. Events may be put at once; they are processed after [`start`](Self::start).
    #[must_use]
    pub fn new(controller_id: i32, processor: P) -> Self {
        Self::with_options(controller_id, processor, LoopOptions::new(Arc::new(MonotonicClock::start())))
    }

    /// A manager with options of its own. A panic in `process` goes no further, whatever they say.
    #[must_use]
    pub fn with_options(controller_id: i32, processor: P, options: LoopOptions) -> Self {
        let options = LoopOptions {
            name: Cow::Owned(format!("controller-{controller_id}")),
            panic_policy: FaultAction::Continue,
            ..options
        };
        let event_loop = EventLoop::new(Adapter(processor), options);
        Self { controller_id, handle: event_loop.handle(), life: Life::Prepared(event_loop) }
    }

    /// The controller's number.
    #[must_use]
    pub const fn controller_id(&self) -> i32 {
        self.controller_id
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// [`StartError`]: it has been started or closed before, or there is no thread.
    pub fn start(&mut self) -> Result<(), StartError> {
        match std::mem::replace(&mut self.life, Life::Closed) {
            Life::Prepared(event_loop) => {
                self.life = Life::Started(event_loop.start()?);
                Ok(())
            }
            Life::Started(thread) => {
                self.life = Life::Started(thread);
                Err(StartError::Started)
            }
            Life::Closed => Err(StartError::Closed),
        }
    }

    /// Puts an event at the end of the queue.
    ///
    /// # Errors
    /// The event comes back if the manager is closed, or its queue is full if it has a capacity.
    pub fn put(&self, event: P::Event) -> Result<QueuedEvent, PutError<P::Event>> {
        let enqueued = self.handle.clock().now();
        let put = self.handle.put(Wrapped::of(event));
        put.map(|ticket| QueuedEvent { ticket, enqueued }).map_err(|error| error.map(|wrapped| wrapped.0))
    }

    /// The barrier: preempts everything that waits, in order and on this thread, and puts an event, in one step.
    ///
    /// # Errors
    /// The event comes back, and nothing is preempted, if the manager is closed.
    pub fn clear_and_put(&self, event: P::Event) -> Result<QueuedEvent, PutError<P::Event>> {
        let enqueued = self.handle.clock().now();
        let put = self.handle.clear_and_put(Wrapped::of(event), ClearScope::Fifo);
        put.map(|cleared| QueuedEvent { ticket: cleared.ticket, enqueued })
            .map_err(|error| error.map(|wrapped| wrapped.0))
    }

    /// Preempts everything that waits, lets the present event finish, and gives the processor back: whoever closes may
    /// resign with it, as nothing runs any more. `None` if it has been given back before or died.
    pub fn close(&mut self) -> Option<P> {
        match std::mem::replace(&mut self.life, Life::Closed) {
            Life::Prepared(event_loop) => Some(event_loop.close().0),
            Life::Started(thread) => thread.close().ok().map(|adapter| adapter.0),
            Life::Closed => None,
        }
    }

    /// What the controller is doing.
    #[must_use]
    pub fn state(&self) -> <P::Event as Event>::State {
        self.handle.state()
    }

    /// Whether nothing waits. An event may be under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handle.is_empty()
    }

    /// The metrics that the original registers, by its names; none after `close`.
    #[must_use]
    pub fn metrics(&self) -> Vec<KafkaMetric> {
        if matches!(self.life, Life::Closed) { Vec::new() } else { metrics::of(&self.handle) }
    }

    /// The loop underneath, for what the original has not: deadlines, timers, tags, capacity.
    #[must_use]
    pub const fn handle(&self) -> &Handle<Wrapped<P>> {
        &self.handle
    }
}

impl<P: ControllerEventProcessor> std::fmt::Debug for ControllerEventManager<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerEventManager")
            .field("controller_id", &self.controller_id)
            .finish_non_exhaustive()
    }
}
