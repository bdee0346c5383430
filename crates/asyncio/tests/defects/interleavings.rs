//! Answers, the attempt's timer, the retry's timer and the deadline, in every order.

use asyncio::{
    AsyncWaitOperator, CallError, Effect, EntryId, FailurePolicy, FailureReason, Options, Outcome, Output,
    Retry,
};
use runtime_core::Tick;

use crate::{built, ms, record};

/// What may happen next. All that can be due at a time is due at some multiple of a millisecond.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The newest attempt answers.
    Answer,
    /// The newest attempt fails.
    Error,
    /// An attempt before it answers after all.
    LateAnswer,
    /// A millisecond passes, and timers are looked at.
    Tick,
    /// A millisecond passes, and timers are looked at only after what happens next.
    SilentTick,
}

use Event::{Answer, Error, LateAnswer, SilentTick, Tick as Passes};

const EVENTS: [Event; 5] = [Answer, Error, LateAnswer, Passes, SilentTick];
const DEADLINE: u64 = 5;

struct Run {
    operator: AsyncWaitOperator<u32, u32, &'static str>,
    now: Tick,
    started: Vec<(EntryId, u32, Tick)>,
    outcomes: Vec<Outcome<u32, &'static str>>,
    asked: u32,
}

impl Run {
    fn new(asking: bool) -> Self {
        let options = Options::ordered()
            .capacity(1)
            .timeout(ms(DEADLINE))
            .attempt_timeout(ms(2))
            .retry(Retry::FixedDelay { max_retries: 2, delay: ms(1) })
            .on_failure(FailurePolicy::Keep);
        let operator = AsyncWaitOperator::new(built(options));
        let operator = if asking { operator.asking_on_timeout() } else { operator };
        let mut run = Self { operator, now: Tick::ZERO, started: Vec::new(), outcomes: Vec::new(), asked: 0 };
        run.operator.push(record(7), run.now).unwrap();
        run.carry_out();
        run
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.operator.next_effect() {
            match effect {
                Effect::Start { entry, attempt } => self.started.push((entry, attempt, self.now)),
                Effect::TimedOut { entry, attempt } => {
                    self.asked += 1;
                    assert!(self.operator.complete(entry, attempt, Ok(0), self.now), "the answer is taken");
                }
                Effect::Abandon { .. } => {}
            }
        }
        while let Some(output) = self.operator.next_output() {
            let Output::Record { outcome, .. } = output else { panic!("{output:?}") };
            self.outcomes.push(outcome);
        }
    }

    fn happen(&mut self, event: Event) {
        let (entry, newest, _) = *self.started.last().unwrap();
        match event {
            Answer => {
                self.operator.complete(entry, newest, Ok(newest), self.now);
            }
            Error => {
                self.operator.complete(entry, newest, Err(CallError::Error("E")), self.now);
            }
            LateAnswer => {
                if newest > 1 {
                    let counted = self.operator.complete(entry, newest - 1, Ok(99), self.now);
                    assert!(!counted, "only the newest attempt is waited for");
                }
            }
            Passes | SilentTick => {
                self.now = self.now + ms(1);
                if let Passes = event {
                    self.operator.advance(self.now);
                }
            }
        }
        self.carry_out();
    }

    fn finish(&mut self) {
        self.now = self.now + ms(1);
        for _ in 0..20 {
            let Some(at) = self.operator.next_wakeup() else { return };
            self.now = self.now.max(at);
            self.operator.advance(self.now);
            self.carry_out();
        }
        panic!("timers without end: {:?}", self.started);
    }
}

#[test]
fn defect01_defect02_every_interleaving_ends_in_one_outcome_and_no_attempt_starts_after_the_deadline() {
    const DEPTH: u32 = 7;
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for asking in [false, true] {
        for number in 0..EVENTS.len().pow(DEPTH) {
            let mut run = Run::new(asking);
            let mut rest = number;
            let mut history = Vec::new();
            for _ in 0..DEPTH {
                history.push(EVENTS[rest % EVENTS.len()]);
                rest /= EVENTS.len();
            }
            history.iter().for_each(|&event| run.happen(event));
            run.finish();
            let [outcome] = &run.outcomes[..] else { panic!("{history:?}: {:?}", run.outcomes) };
            let late = run.started.iter().find(|(_, _, at)| at.as_millis() >= DEADLINE);
            assert!(late.is_none(), "{history:?}: {:?}", run.started);
            assert!(run.started.len() <= 3, "{history:?}");
            assert!(run.operator.is_empty() && run.operator.is_available(), "{history:?}: the place is free");
            assert_eq!(run.operator.next_wakeup(), None, "{history:?}");
            assert!(run.asked <= 1, "{history:?}");
            let kind = match outcome {
                Outcome::Completed(0) => "the handler's answer".into(),
                Outcome::Completed(attempt) => {
                    assert_ne!(*attempt, 99, "{history:?}");
                    format!("the answer of attempt {attempt}")
                }
                Outcome::Failed { reason: FailureReason::Timeout, .. } => {
                    assert!(!asking, "{history:?}");
                    "the deadline".into()
                }
                Outcome::Failed { reason, .. } => format!("{reason:?}"),
            };
            *seen.entry(kind).or_default() += 1;
        }
    }
    // A test that never saw an answer of the third attempt, or a deadline in a pause, would have shown nothing.
    let kinds: Vec<&str> = seen.keys().map(String::as_str).collect();
    let expected = [
        "AttemptTimeout",
        "Error(\"E\")",
        "the answer of attempt 1",
        "the answer of attempt 2",
        "the answer of attempt 3",
        "the deadline",
        "the handler's answer",
    ];
    assert_eq!(kinds, expected, "{seen:?}");
}
