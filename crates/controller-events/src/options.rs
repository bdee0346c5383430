//! How a loop is to behave.

use crate::clock::MockClock;
use crate::processor::{Fault, FaultAction};
use crate::spawn::{self, Spawner};
use runtime_core::Clock;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What runs before the process is aborted.
pub type HaltHook = Arc<dyn Fn(&Fault) + Send + Sync>;

/// How a loop is to behave. Made by [`new`](Self::new) with sound defaults, each field of which may be changed.
#[derive(Clone)]
pub struct LoopOptions {
    /// The loop's name: label `loop` of its metrics, and in its log lines. Default `controller`.
    pub name: Cow<'static, str>,
    /// How many events may wait in line before `put` refuses more. Barriers, prepended events, the control lane and puts
    /// by the loop's own handlers are exempt: a handler that waits for room in its own queue never gets it. Scheduled
    /// events do not count. Default: no limit.
    pub capacity: Option<usize>,
    /// How many events may wait in line before those of [`Lane::Low`](crate::Lane::Low) are refused. Default: half of
    /// the capacity, and no limit without one.
    pub low_watermark: Option<usize>,
    /// How many events may be scheduled; puts by the loop's own handlers are exempt. Default: no limit.
    pub timer_capacity: Option<usize>,
    /// How many due scheduled events may run in a row while others wait in line. `u32::MAX` is Kafka's order, in which
    /// an event that schedules itself for now starves the line. Default 16.
    pub timer_burst: u32,
    /// Whether a drain also takes out the events in line whose latest start has not come, and tells them
    /// `NotRun(ShuttingDown)`, as Kafka's does. Default: they run.
    pub reject_deadlined_on_drain: bool,
    /// What at least happens when a handler panics; `on_fault` may ask for more. Going on ([`FaultAction::Continue`])
    /// with what may be half changed must be chosen. In a program built with `panic = "abort"` no panic is caught and
    /// this is void. Default [`FaultAction::Failover`].
    pub panic_policy: FaultAction,
    /// Handlers that take this long are counted and logged. Default 2 s.
    pub slow_event: Duration,
    /// For how long the slowest event is remembered by name. Default 60 s.
    pub slow_window: Duration,
    /// After this long without an event the times in the queue are forgotten, so that an old burst is not shown for ever
    /// (Kafka: 300 s). `None` keeps them. Default 300 s.
    pub idle_reset: Option<Duration>,
    /// Called before the process is aborted by [`FaultAction::Halt`]. Default: nothing.
    pub on_halt: Option<HaltHook>,
    /// Runs what handlers hand over with [`Cx::spawn_then`](crate::Cx::spawn_then): on tokio
    /// `Arc::new(|work| drop(tokio::spawn(work)))`. Default: a thread for each.
    pub spawner: Spawner,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) mock: Option<MockClock>,
}

impl LoopOptions {
    /// The defaults, on this clock. A loop with a thread of its own waits in real time against it.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            name: Cow::Borrowed("controller"),
            capacity: None,
            low_watermark: None,
            timer_capacity: None,
            timer_burst: 16,
            reject_deadlined_on_drain: false,
            panic_policy: FaultAction::Failover,
            slow_event: Duration::from_secs(2),
            slow_window: Duration::from_secs(60),
            idle_reset: Some(Duration::from_secs(300)),
            on_halt: None,
            spawner: Arc::new(spawn::on_a_thread),
            clock,
            mock: None,
        }
    }

    /// The defaults, on a clock that a test advances; the loop wakes when it does.
    #[must_use]
    pub fn mocked(clock: &MockClock) -> Self {
        Self { mock: Some(clock.clone()), ..Self::new(Arc::new(clock.clone())) }
    }
}

impl std::fmt::Debug for LoopOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopOptions")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("low_watermark", &self.low_watermark)
            .field("timer_capacity", &self.timer_capacity)
            .field("timer_burst", &self.timer_burst)
            .field("panic_policy", &self.panic_policy)
            .field("slow_event", &self.slow_event)
            .finish_non_exhaustive()
    }
}
