//! What the crate promises. A name that begins with a letter and a number is that case of the test plan.
//!
//! Most tests drive the loop by hand. A *gate* is an event whose handler lets another thread do something and waits for
//! it, so that it happens while the loop is busy, every time.

mod barrier;
mod capacity;
mod closing;
mod commits;
mod conservation;
mod controller_layer;
mod driven_as_future;
mod faults;
mod figures;
mod linearization;
mod on_a_thread;
mod order;
mod periodic;
mod spawned;
mod speed;
mod stress;
mod timers;
mod waiting;

use crate::*;
use runtime_core::{Clock, Tick};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    Idle,
    Change,
    Election,
    Untimed,
}

impl EventState for Doing {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[Self::Idle, Self::Change, Self::Election, Self::Untimed];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Change => "Change",
            Self::Election => "Election",
            Self::Untimed => "Untimed",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Change => Some("ChangeRateAndTimeMs"),
            Self::Election => Some("LeaderElectionRateAndTimeMs"),
            Self::Idle | Self::Untimed => None,
        }
    }
}

/// What happened, in order: `run X` and `not_run X Reason`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn is(&self, expected: &[&str]) {
        assert_eq!(self.lines(), expected);
    }
}

type OnRun = Box<dyn FnOnce(&mut Cx<'_, Ev>) -> Result<(), Fault> + Send>;
type OnFault = Box<dyn FnMut(&Fault) -> FaultAction + Send>;
type OnNotRun = Box<dyn FnOnce(NotRun) + Send>;

pub(crate) struct Ev {
    pub(crate) name: &'static str,
    pub(crate) state: Doing,
    log: Log,
    on_run: Option<OnRun>,
    on_not_run: Option<OnNotRun>,
}

impl Ev {
    pub(crate) fn state(mut self, state: Doing) -> Self {
        self.state = state;
        self
    }

    pub(crate) fn runs(
        mut self,
        f: impl FnOnce(&mut Cx<'_, Ev>) -> Result<(), Fault> + Send + 'static,
    ) -> Self {
        self.on_run = Some(Box::new(f));
        self
    }

    pub(crate) fn otherwise(mut self, f: impl FnOnce(NotRun) + Send + 'static) -> Self {
        self.on_not_run = Some(Box::new(f));
        self
    }
}

impl Event for Ev {
    type State = Doing;

    fn state(&self) -> Doing {
        self.state
    }

    fn name(&self) -> &'static str {
        assert!(self.name != "unspeakable", "a name that cannot be rendered");
        self.name
    }

    fn not_run(self, why: NotRun) {
        self.log.add(format!("not_run {} {why:?}", self.name));
        if let Some(f) = self.on_not_run {
            f(why);
        }
    }
}

/// Runs what the events bring with them.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) log: Log,
    pub(crate) on_fault: Option<OnFault>,
    pub(crate) after_each: Option<Box<dyn FnMut() + Send>>,
}

impl Processor for Recorder {
    type Event = Ev;

    fn process(&mut self, ev: Ev, cx: &mut Cx<'_, Ev>) -> Result<(), Fault> {
        self.log.add(format!("run {}", ev.name));
        ev.on_run.map_or(Ok(()), |f| f(cx))
    }

    fn after_each(&mut self) {
        if let Some(hook) = &mut self.after_each {
            hook();
        }
    }

    fn on_fault(&mut self, fault: &Fault) -> FaultAction {
        self.on_fault.as_mut().map_or(FaultAction::Continue, |f| f(fault))
    }

    fn on_failover(&mut self, _fault: &Fault) {
        self.log.add("failover".to_owned());
    }

    fn on_stop(&mut self, why: StopReason) {
        self.log.add(format!("stop {why:?}"));
    }
}

/// A loop to be driven by hand.
pub(crate) struct Bench {
    pub(crate) clock: MockClock,
    pub(crate) log: Log,
    pub(crate) handle: Handle<Ev>,
    pub(crate) event_loop: EventLoop<Recorder>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    pub(crate) fn with(
        options: impl FnOnce(&mut LoopOptions),
        processor: impl FnOnce(&mut Recorder),
    ) -> Self {
        let (clock, log) = (MockClock::new(), Log::default());
        let mut opts = LoopOptions::mocked(&clock);
        options(&mut opts);
        let mut recorder = Recorder { log: log.clone(), ..Recorder::default() };
        processor(&mut recorder);
        let event_loop = EventLoop::new(recorder, opts);
        Self { clock, log, handle: event_loop.handle(), event_loop }
    }

    pub(crate) fn ev(&self, name: &'static str) -> Ev {
        Ev { name, state: Doing::Change, log: self.log.clone(), on_run: None, on_not_run: None }
    }

    pub(crate) fn put(&self, name: &'static str) -> Ticket {
        self.handle.put(self.ev(name)).unwrap()
    }

    /// Puts a gate: while it is handled, another thread does `meanwhile`.
    pub(crate) fn gate(&self, meanwhile: impl FnOnce(&Handle<Ev>) + Send + 'static) -> Ticket {
        let gate = self.ev("gate").runs(|cx| {
            let handle = cx.handle().clone();
            std::thread::scope(|scope| scope.spawn(move || meanwhile(&handle)).join()).unwrap();
            Ok(())
        });
        self.handle.put(gate).unwrap()
    }

    pub(crate) fn run(&mut self) -> usize {
        self.event_loop.run_until_idle()
    }

    pub(crate) fn advance(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.run();
    }

    #[track_caller]
    pub(crate) fn is_conserved(&self) {
        let stats = self.handle.stats();
        assert_eq!(stats.accounted(), stats.accepted, "{stats:?}");
    }
}

pub(crate) const fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

pub(crate) fn tagged(tag: &'static str) -> PutOptions {
    PutOptions { tag: Some(tag.into()), ..PutOptions::default() }
}

pub(crate) fn until(deadline: Tick) -> PutOptions {
    PutOptions { deadline: Some(deadline), ..PutOptions::default() }
}
