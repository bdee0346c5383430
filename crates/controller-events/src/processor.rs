//! The owner of the state: what a loop calls.

use crate::cx::Cx;
use crate::event::Event;
use std::error::Error;
use std::fmt;
use std::future::Future;

/// Handles events, one at a time. The loop owns it, so that nothing else can reach its state.
///
/// Kafka: `ControllerEventProcessor`, with exclusive access as a type instead of a comment.
pub trait Processor: Send + 'static {
    /// What it handles.
    type Event: Event;

    /// Handles one event. It should not wait: work that waits runs elsewhere and comes back as an event.
    ///
    /// # Errors
    /// A [`Fault`], which is counted, logged and given to [`on_fault`](Self::on_fault).
    fn process(&mut self, event: Self::Event, cx: &mut Cx<'_, Self::Event>) -> Result<(), Fault>;

    /// Called after every event that ran, before the loop is idle again: for derived gauges and published snapshots.
    fn after_each(&mut self) {}

    /// Decides what follows from a failed or panicked handler.
    fn on_fault(&mut self, _fault: &Fault) -> FaultAction {
        FaultAction::Continue
    }

    /// Gives up leadership and reverts to a sound state after [`FaultAction::Failover`]; then the loop goes on.
    fn on_failover(&mut self, _fault: &Fault) {}

    /// Called last and once, when the loop has ended in an orderly way or by a fault.
    fn on_stop(&mut self, _why: StopReason) {}
}

/// A [`Processor`] whose handlers may wait: for an [`AsyncEventLoop`](crate::AsyncEventLoop).
pub trait AsyncProcessor: Send + 'static {
    /// What it handles.
    type Event: Event;

    /// Handles one event. Nothing else of the loop runs until it has ended.
    ///
    /// # Errors
    /// As [`Processor::process`].
    fn process(
        &mut self,
        event: Self::Event,
        cx: &mut Cx<'_, Self::Event>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// [`Processor::after_each`].
    fn after_each(&mut self) {}

    /// [`Processor::on_fault`].
    fn on_fault(&mut self, _fault: &Fault) -> FaultAction {
        FaultAction::Continue
    }

    /// [`Processor::on_failover`].
    fn on_failover(&mut self, _fault: &Fault) {}

    /// [`Processor::on_stop`].
    fn on_stop(&mut self, _why: StopReason) {}
}

/// What a loop does after a fault, mildest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultAction {
    /// Go on with the next event.
    Continue,
    /// Call [`Processor::on_failover`], then go on with the next event.
    Failover,
    /// End the loop: every waiting event gets `NotRun(LoopDied)`.
    Stop,
    /// Call the halt hook and abort the process, without joining anything: an orderly exit would wait for this very
    /// loop (Kafka: fatal faults halt).
    Halt,
}

/// Why a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// It was closed: what waited was preempted.
    Closed,
    /// It was drained: what waited has run.
    Drained,
    /// A fault ended it.
    Died,
}

/// A handler failed.
pub struct Fault {
    message: String,
    panicked: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A failure in these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), panicked: false, source: None }
    }

    /// A failure in these words, with what caused it.
    pub fn caused_by(message: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        Self { message: format!("{}: {source}", message.into()), panicked: false, source: Some(source) }
    }

    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "of an unknown type".to_owned());
        Self { message: format!("the handler panicked: {text}"), panicked: true, source: None }
    }

    /// Whether the handler panicked, so that the processor's state may be half changed.
    #[must_use]
    pub const fn is_panic(&self) -> bool {
        self.panicked
    }

    /// What failed, in words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What caused it.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault").field("message", &self.message).field("source", &self.source).finish()
    }
}

// Not `Error` itself, so that `?` turns every error into a fault.
impl<S: Error + Send + Sync + 'static> From<S> for Fault {
    fn from(source: S) -> Self {
        Self { message: source.to_string(), panicked: false, source: Some(Box::new(source)) }
    }
}
