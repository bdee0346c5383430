//! S6.4 and S3.3: random traces of operations against a plain sequential model. The model is lists that are searched;
//! the loop must tell the same story, event by event, and account for every event after every operation.

use super::*;
use proptest::prelude::*;

const BURST: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    Put { deadline: Option<u64>, tag: Option<u8> },
    Prepend,
    Schedule { in_millis: u64, tag: Option<u8>, how: u8 },
    Cancel(u8),
    Clear(ClearScope),
    Advance(u64),
    Step,
    Drain,
    Close,
}

type Told = (usize, Option<NotRun>);

struct Waiting {
    id: usize,
    at: Option<u64>,
    tag: Option<u8>,
}

#[derive(Default)]
struct Model {
    now: u64,
    line: Vec<Waiting>,
    /// Sorted by moment, then by age.
    timers: Vec<Waiting>,
    burst: u32,
    draining: bool,
    closed: bool,
    told: Vec<Told>,
}

impl Model {
    fn accepts(&self) -> bool {
        !self.draining && !self.closed
    }

    fn take_tag(&mut self, tag: u8) -> Option<Waiting> {
        let tagged = |waiting: &Waiting| waiting.tag == Some(tag);
        if let Some(i) = self.line.iter().position(tagged) {
            return Some(self.line.remove(i));
        }
        self.timers.iter().position(tagged).map(|i| self.timers.remove(i))
    }

    fn replace(&mut self, tag: Option<u8>) -> Option<u64> {
        let old = self.take_tag(tag?)?;
        self.told.push((old.id, Some(NotRun::Replaced)));
        old.at
    }

    fn reject_all(&mut self, timers_because: Option<NotRun>) {
        self.told.extend(self.line.drain(..).map(|w| (w.id, Some(NotRun::Preempted))));
        if let Some(why) = timers_because {
            self.told.extend(self.timers.drain(..).map(|w| (w.id, Some(why))));
        }
    }

    fn apply(&mut self, op: Op, id: usize) {
        match op {
            Op::Put { deadline, tag } if self.accepts() => {
                self.replace(tag);
                let at = deadline.map(|d| self.now + d);
                self.line.push(Waiting { id, at, tag });
            }
            Op::Prepend if self.accepts() => self.line.insert(0, Waiting { id, at: None, tag: None }),
            Op::Schedule { in_millis, tag, how } if self.accepts() => {
                let at = self.now + in_millis;
                let at = match (self.replace(tag), how) {
                    (Some(old), 1) => old.min(at),
                    (Some(old), 2) => old.max(at),
                    _ => at,
                };
                let place = self.timers.partition_point(|timer| timer.at <= Some(at));
                self.timers.insert(place, Waiting { id, at: Some(at), tag });
            }
            Op::Cancel(tag) => {
                let cancelled = self.take_tag(tag);
                self.told.extend(cancelled.map(|w| (w.id, Some(NotRun::Cancelled))));
            }
            Op::Clear(scope) if self.accepts() => {
                self.reject_all((scope == ClearScope::All).then_some(NotRun::Preempted));
                self.line.push(Waiting { id, at: None, tag: None });
            }
            Op::Advance(millis) => self.now += millis,
            Op::Step if !self.closed => self.step(),
            Op::Drain if self.accepts() => {
                self.draining = true;
                let due = self.timers.partition_point(|timer| timer.at <= Some(self.now));
                self.told.extend(self.timers.drain(due..).map(|w| (w.id, Some(NotRun::ShuttingDown))));
            }
            Op::Close if !self.closed => {
                self.closed = true;
                self.reject_all(Some(NotRun::ShuttingDown));
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        let expired = (0..self.line.len()).filter(|i| self.line[*i].at.is_some_and(|at| at <= self.now));
        // `min_by_key` takes the first of equal ones, which is the oldest.
        if let Some(i) = expired.min_by_key(|i| self.line[*i].at) {
            self.told.push((self.line.remove(i).id, Some(NotRun::TimedOut)));
            return;
        }
        let due = self.timers.first().is_some_and(|timer| timer.at <= Some(self.now));
        if due && (self.burst < BURST || self.line.is_empty()) {
            self.burst += 1;
            self.told.push((self.timers.remove(0).id, None));
            return;
        }
        self.burst = 0;
        if !self.line.is_empty() {
            self.told.push((self.line.remove(0).id, None));
        } else if self.draining {
            self.closed = true;
        }
    }
}

struct Numbered {
    id: usize,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Event for Numbered {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Change
    }

    fn name(&self) -> &'static str {
        "numbered"
    }

    fn not_run(self, why: NotRun) {
        self.told.lock().unwrap().push((self.id, Some(why)));
    }
}

struct Tells;

impl Processor for Tells {
    type Event = Numbered;

    fn process(&mut self, event: Numbered, _cx: &mut Cx<'_, Numbered>) -> Result<(), Fault> {
        event.told.lock().unwrap().push((event.id, None));
        Ok(())
    }
}

fn apply(event_loop: &mut EventLoop<Tells>, clock: &MockClock, op: Op, event: Numbered) {
    let handle = event_loop.handle();
    let name = |tag: u8| Tag::keyed("tag", tag.into());
    let from_now = |millis| clock.now() + Duration::from_millis(millis);
    // A refused event is dropped; the model refuses it as well.
    match op {
        Op::Put { deadline, tag } => {
            let options =
                PutOptions { deadline: deadline.map(from_now), tag: tag.map(name), ..PutOptions::default() };
            drop(handle.put_with(event, options));
        }
        Op::Prepend => drop(handle.prepend(event)),
        Op::Schedule { in_millis, tag, how } => {
            let at = from_now(in_millis);
            let when = match how {
                1 => When::Earliest(at),
                2 => When::Latest(at),
                3 => When::With(Box::new(move |_| at)),
                _ => When::At(at),
            };
            drop(handle.schedule(tag.map(name), when, event));
        }
        Op::Cancel(tag) => drop(handle.cancel(&name(tag))),
        Op::Clear(scope) => drop(handle.clear_and_put(event, scope)),
        Op::Advance(millis) => clock.advance(Duration::from_millis(millis)),
        Op::Step => drop(event_loop.step()),
        Op::Drain => handle.begin_drain(),
        Op::Close => drop(handle.close()),
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let tag = || proptest::option::weighted(0.6, 0..4_u8);
    let op = prop_oneof![
        6 => (proptest::option::of(0..20_u64), tag()).prop_map(|(deadline, tag)| Op::Put { deadline, tag }),
        2 => Just(Op::Prepend),
        6 => (0..20_u64, tag(), 0..4_u8).prop_map(|(in_millis, tag, how)| Op::Schedule { in_millis, tag, how }),
        3 => (0..4_u8).prop_map(Op::Cancel),
        2 => prop_oneof![Just(ClearScope::Fifo), Just(ClearScope::All)].prop_map(Op::Clear),
        4 => (0..15_u64).prop_map(Op::Advance),
        12 => Just(Op::Step),
    ];
    let end = prop_oneof![Just(Op::Drain), Just(Op::Close)];
    let tail = proptest::collection::vec(op.clone(), 0..20);
    (proptest::collection::vec(op, 0..120), end, tail).prop_map(|(mut ops, end, tail)| {
        ops.push(end);
        ops.extend(tail);
        ops
    })
}

proptest! {
    // A failure prints the trace, shrunk, and the seed.
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s6_4_the_loop_tells_the_story_of_the_sequential_model(ops in ops()) {
        let clock = MockClock::new();
        let mut options = LoopOptions::mocked(&clock);
        options.timer_burst = BURST;
        let mut event_loop = EventLoop::new(Tells, options);
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut model = Model::default();
        for (id, op) in ops.into_iter().enumerate() {
            apply(&mut event_loop, &clock, op, Numbered { id, told: Arc::clone(&told) });
            model.apply(op, id);
            prop_assert_eq!(&*told.lock().unwrap(), &model.told, "after {:?}", op);
            let stats = event_loop.handle().stats();
            prop_assert_eq!(stats.accounted(), stats.accepted, "after {:?}: {:?}", op, stats);
            prop_assert_eq!(event_loop.handle().len(), model.line.len());
            prop_assert_eq!(stats.scheduled, model.timers.len());
        }
        event_loop.close();
        model.apply(Op::Close, 0);
        prop_assert_eq!(&*told.lock().unwrap(), &model.told);
    }
}
