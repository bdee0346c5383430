//! A deterministic driver: one thread, a clock that is set, calls that the test completes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use runtime_core::element::LatencyMarker;
use runtime_core::{EpochMillis, Record, StreamElement, Tick, Watermark, WatermarkStatus};

use crate::*;

pub(super) type Answer = Result<Vec<u32>, &'static str>;
type Judged = Result<Vec<u32>, CallError<&'static str>>;
type Selector = Box<dyn Fn(&u32) -> Option<u32>>;
type Predicate = Box<dyn Fn(&Judged) -> Verdict>;
type Operator = AsyncWaitOperator<u32, Vec<u32>, &'static str, Selector, Predicate>;

/// What the called function does with an input and the number of the attempt.
pub(super) enum Reply {
    /// The test completes it, or nobody.
    Later,
    /// Another thread has completed it: the completion waits in the inbox.
    Posted(Answer),
    /// It is ready at once.
    Ready(Answer),
}

pub(super) const BOTH: [Order; 2] = [Order::Ordered, Order::Unordered];

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn fixed(max_retries: u32, delay: u64) -> Retry {
    Retry::FixedDelay { max_retries, delay: ms(delay) }
}

pub(super) fn record(value: u32, at: i64) -> StreamElement<u32> {
    StreamElement::Record(Record::at(value, EpochMillis(at)))
}

pub(super) fn watermark(at: i64) -> StreamElement<u32> {
    StreamElement::Watermark(Watermark(EpochMillis(at)))
}

pub(super) const IDLE: StreamElement<u32> = StreamElement::Status(WatermarkStatus::Idle);

pub(super) const MARKER: StreamElement<u32> =
    StreamElement::LatencyMarker(LatencyMarker { marked_at: EpochMillis(0), subtask: 0 });

pub(super) fn double(value: u32, _: u32) -> Reply {
    Reply::Posted(Ok(vec![2 * value]))
}

pub(super) fn on_error(judged: &Judged) -> Verdict {
    if judged.is_err() { Verdict::Retry } else { Verdict::Final }
}

pub(super) fn on_empty(judged: &Judged) -> Verdict {
    if judged.as_ref().is_ok_and(Vec::is_empty) { Verdict::Retry } else { Verdict::Final }
}

pub(super) struct Driver {
    pub(super) operator: Operator,
    pub(super) now: Tick,
    /// Whether what may leave is taken at once.
    pub(super) emits: bool,
    function: Box<dyn FnMut(u32, u32) -> Reply>,
    handler: Box<dyn FnMut(u32) -> Option<Answer>>,
    /// The inputs whose timeouts were asked about.
    pub(super) handled: Vec<u32>,
    /// Every attempt that was started, by input.
    started: BTreeMap<u32, Vec<(EntryId, u32)>>,
    pub(super) start_order: Vec<u32>,
    /// What each attempt was told of itself, in the order of `start_order`.
    pub(super) contexts: Vec<CallContext>,
    pub(super) abandoned: usize,
    inbox: VecDeque<(EntryId, u32, Judged)>,
    /// Elements that wait for a place.
    blocked: VecDeque<StreamElement<u32>>,
    out: Vec<String>,
}

impl Driver {
    pub(super) fn new(options: OptionsBuilder) -> Self {
        Self::with(options, |_| None, on_error)
    }

    pub(super) fn of(order: Order) -> Self {
        Self::new(Options::with_order(order).capacity(10))
    }

    pub(super) fn with(
        options: OptionsBuilder,
        selector: impl Fn(&u32) -> Option<u32> + 'static,
        predicate: impl Fn(&Judged) -> Verdict + 'static,
    ) -> Self {
        let options = options.build().unwrap();
        Self {
            operator: AsyncWaitOperator::with(options, Box::new(selector), Box::new(predicate)),
            now: Tick::ZERO,
            emits: true,
            function: Box::new(|_, _| Reply::Later),
            handler: Box::new(|_| None),
            handled: Vec::new(),
            started: BTreeMap::new(),
            start_order: Vec::new(),
            contexts: Vec::new(),
            abandoned: 0,
            inbox: VecDeque::new(),
            blocked: VecDeque::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn calling(mut self, function: impl FnMut(u32, u32) -> Reply + 'static) -> Self {
        self.function = Box::new(function);
        self
    }

    /// Offers an element; without room it waits before the operator, as in a task whose input is not read.
    pub(super) fn send(&mut self, element: StreamElement<u32>) {
        self.blocked.push_back(element);
        self.run();
    }

    /// Offers a record whose timestamp is its value.
    pub(super) fn record(&mut self, value: u32) {
        self.send(record(value, value.into()));
    }

    pub(super) fn posted(&mut self, value: u32, answer: Answer) {
        let &(entry, attempt) = self.started.get(&value).and_then(|all| all.last()).expect("not called");
        self.post(entry, attempt, answer);
    }

    fn post(&mut self, entry: EntryId, attempt: u32, answer: Answer) {
        self.inbox.push_back((entry, attempt, answer.map_err(CallError::Error)));
    }

    /// Completes the newest attempt of this input with an answer.
    pub(super) fn ok(&mut self, value: u32, answer: &[u32]) {
        self.posted(value, Ok(answer.to_vec()));
        self.run();
    }

    pub(super) fn err(&mut self, value: u32, error: &'static str) {
        self.posted(value, Err(error));
        self.run();
    }

    /// Completes attempt `attempt` of this input, whatever has become of it.
    pub(super) fn ok_attempt(&mut self, value: u32, attempt: usize, answer: &[u32]) {
        let (entry, attempt) = self.started[&value][attempt - 1];
        self.post(entry, attempt, Ok(answer.to_vec()));
        self.run();
    }

    /// The newest attempt of this input has gone wrong in this way.
    pub(super) fn fail(&mut self, value: u32, error: CallError<&'static str>) {
        let &(entry, attempt) = self.started[&value].last().expect("not called");
        self.inbox.push_back((entry, attempt, Err(error)));
        self.run();
    }

    /// Loses the handle of the newest attempt of this input.
    pub(super) fn lose(&mut self, value: u32) {
        let &(entry, attempt) = self.started[&value].last().expect("not called");
        self.inbox.push_back((entry, attempt, Err(CallError::HandleDropped)));
        self.run();
    }

    /// Sets the clock without a timer being looked at.
    pub(super) fn set(&mut self, millis: u64) {
        self.now = Tick::from_millis(millis);
    }

    pub(super) fn tick(&mut self, millis: u64) {
        self.set(millis);
        self.run();
        self.operator.advance(self.now);
        self.run();
    }

    /// Lets time pass, from one timer to the next.
    pub(super) fn tick_through(&mut self, millis: u64) {
        while let Some(at) = self.operator.next_wakeup().filter(|&at| at <= Tick::from_millis(millis)) {
            self.tick(at.as_millis());
        }
        self.tick(millis);
    }

    pub(super) fn end(&mut self) {
        assert!(self.blocked.is_empty());
        self.operator.end_of_input(self.now);
        self.run();
    }

    /// Does all there is to do at this time.
    pub(super) fn run(&mut self) {
        loop {
            let mut idle = true;
            while let Some(element) = self.blocked.pop_front() {
                if let Err(refused) = self.operator.push(element, self.now) {
                    assert_eq!(refused.reason, RefusedReason::Full);
                    self.blocked.push_front(refused.element);
                    break;
                }
                idle = false;
            }
            idle &= !self.carry_out();
            while let Some((entry, attempt, result)) = self.inbox.pop_front() {
                self.operator.complete(entry, attempt, result, self.now);
                idle = false;
            }
            idle &= !self.carry_out();
            while self.emits && self.emit_one() {
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    /// Has `handler` answer for records whose budget has ended; without an answer they go on waiting.
    pub(super) fn on_timeout(mut self, handler: impl FnMut(u32) -> Option<Answer> + 'static) -> Self {
        self.operator = self.operator.asking_on_timeout();
        self.handler = Box::new(handler);
        self
    }

    fn timed_out(&mut self, entry: EntryId, attempt: u32) {
        let value = self.operator.input(entry).expect("a timeout names a held record").value;
        self.handled.push(value);
        if let Some(answer) = (self.handler)(value) {
            assert!(self.operator.complete(entry, attempt, answer.map_err(CallError::Error), self.now));
        }
    }

    fn carry_out(&mut self) -> bool {
        let mut worked = false;
        while let Some(effect) = self.operator.next_effect() {
            worked = true;
            let (entry, attempt) = match effect {
                Effect::Start { entry, attempt } => (entry, attempt),
                Effect::TimedOut { entry, attempt } => {
                    self.timed_out(entry, attempt);
                    continue;
                }
                Effect::Abandon { .. } => {
                    self.abandoned += 1;
                    continue;
                }
            };
            let value = self.operator.input(entry).expect("a start names a held record").value;
            let attempts = self.started.entry(value).or_default();
            attempts.push((entry, attempt));
            self.start_order.push(value);
            self.contexts.push(self.operator.context(entry).expect("a start has a context"));
            match (self.function)(value, attempt) {
                Reply::Later => {}
                Reply::Posted(answer) => self.post(entry, attempt, answer),
                Reply::Ready(answer) => {
                    let counted =
                        self.operator.complete(entry, attempt, answer.map_err(CallError::Error), self.now);
                    assert!(counted);
                }
            }
        }
        worked
    }

    /// Takes an element in, room or not, as when a barrier must not wait.
    pub(super) fn park(&mut self, element: StreamElement<u32>) {
        self.operator.park(element, self.now).unwrap();
        self.run();
    }

    pub(super) fn snap(&self) -> Snapshot<u32> {
        self.operator.snapshot().unwrap().cloned()
    }

    pub(super) fn restore(&mut self, snapshot: Snapshot<u32>) {
        self.operator.restore(snapshot, self.now).unwrap();
        self.run();
    }

    pub(super) fn emit_one(&mut self) -> bool {
        let Some(output) = self.operator.next_output() else { return false };
        match output {
            Output::Watermark(watermark) => self.out.push(format!("W({})", watermark.0.0)),
            Output::Status(status) => self.out.push(format!("{status:?}").to_uppercase()),
            Output::LatencyMarker(_) => self.out.push("L".into()),
            Output::Barrier(barrier) => self.out.push(format!("B({})", barrier.checkpoint)),
            Output::Record { input, outcome, .. } => {
                let at = input.timestamp.map_or(String::new(), |at| format!("@{}", at.0));
                match outcome {
                    Outcome::Completed(values) => {
                        self.out.extend(values.iter().map(|value| format!("{value}{at}")));
                    }
                    Outcome::Failed { reason, .. } => {
                        self.out.push(format!("FAIL {}: {reason}", input.value))
                    }
                }
            }
        }
        true
    }

    /// What has left since the last look.
    pub(super) fn out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn calls(&self, value: u32) -> usize {
        self.started.get(&value).map_or(0, Vec::len)
    }
}

/// What a snapshot holds, written like output.
pub(super) fn stored(snapshot: &Snapshot<u32>) -> Vec<String> {
    let text = |element| match element {
        StreamElement::Record(Record { value, timestamp: Some(at) }) => format!("R({value}@{})", at.0),
        StreamElement::Record(Record { value, timestamp: None }) => format!("R({value})"),
        StreamElement::Watermark(watermark) => format!("W({})", watermark.0.0),
        StreamElement::Status(status) => format!("{status:?}").to_uppercase(),
        StreamElement::LatencyMarker(_) | StreamElement::Barrier(_) => panic!("takes no place"),
    };
    snapshot.elements().map(text).collect()
}
