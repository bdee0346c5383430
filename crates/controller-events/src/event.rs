//! What a loop processes: events, each with a state the loop is in meanwhile.

/// What a loop is doing, as an operator sees it.
///
/// Kafka: `ControllerState`. Values and names are part of the metrics and never change their meaning.
pub trait EventState: Copy + Eq + Send + Sync + 'static {
    /// The state between two events.
    const IDLE: Self;
    /// Every state, [`IDLE`](Self::IDLE) among them. A state that is missing here is shown as idle and not timed.
    const ALL: &'static [Self];

    /// The state as one byte, in which it is stored and exported.
    fn value(self) -> u8;

    /// The name of the state as it stands in metrics and logs.
    fn name(self) -> &'static str;

    /// The name of the state's rate-and-time metric; `None` for a state that is not timed.
    fn rate_metric(self) -> Option<&'static str>;
}

/// Why an event was not processed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotRun {
    /// Cleared by `clear_and_put` or `close`, or its epoch had passed.
    Preempted,
    /// Its deadline came before its start.
    TimedOut,
    /// Another event took its tag.
    Replaced,
    /// Its tag was cancelled.
    Cancelled,
    /// It waited for a time that lies beyond the end of the loop.
    ShuttingDown,
    /// The loop ended because of a fault.
    LoopDied,
}

impl NotRun {
    /// The reason as it stands in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::TimedOut => "timed_out",
            Self::Replaced => "replaced",
            Self::Cancelled => "cancelled",
            Self::ShuttingDown => "shut_down",
            Self::LoopDied => "loop_died",
        }
    }
}

impl std::fmt::Display for NotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Preempted => "preempted by a barrier, a close or a newer epoch",
            Self::TimedOut => "its deadline passed before it started",
            Self::Replaced => "replaced by a newer event of the same tag",
            Self::Cancelled => "cancelled by its tag",
            Self::ShuttingDown => "the loop is shutting down",
            Self::LoopDied => "the loop died of a fault",
        })
    }
}

/// One piece of work for a loop.
///
/// An accepted event is moved into exactly one of [`Processor::process`](crate::Processor::process) and
/// [`not_run`](Self::not_run), so that whoever waits for it hears of it either way.
pub trait Event: Send + 'static {
    /// What the loop is doing while it processes such an event.
    type State: EventState;

    /// The state of the loop while it processes this event.
    fn state(&self) -> Self::State;

    /// The kind of event, for logs.
    fn name(&self) -> &'static str;

    /// Called instead of processing, at most once, on whatever thread decided it and outside every lock: it may put
    /// other events. It cannot reach the processor. While it runs because of a barrier, the loop starts nothing; a
    /// panic in it is caught and counted.
    ///
    /// It has no default, because an event whose caller waits must answer. (Kafka: `preempt`, which later events left
    /// empty so that their callers waited for ever.)
    fn not_run(self, why: NotRun);
}
