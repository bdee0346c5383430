//! A small controller of the later kind, whose writes are answered when they are committed, built of the crate's parts:
//! that they are enough for what Kafka's `QuorumController` does on its queue.

use super::*;
use crate::CommitQueue;
use runtime_core::Epoch;

const NOT_CONTROLLER: &str = "not the controller";

type Answer = Reply<Result<u64, &'static str>>;

enum Op {
    /// Leadership, in this epoch.
    Claim(Epoch),
    Activate,
    /// Adds to the sum at the next offset.
    Write(u64, Answer),
    /// Answers the sum.
    Read(Answer),
    Commit(u64),
    Lose,
    Tick(&'static str),
}

struct Controller {
    log: Log,
    epoch: Option<Epoch>,
    sum: u64,
    last_stable: u64,
    offset: u64,
    waiting: CommitQueue<(Answer, u64)>,
}

impl Event for Op {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Change
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Activate => "activate",
            Self::Write(..) => "write",
            Self::Read(_) => "read",
            Self::Commit(_) => "commit",
            Self::Lose => "lose",
            Self::Tick(name) => name,
        }
    }

    fn not_run(self, _why: NotRun) {
        if let Self::Write(_, answer) | Self::Read(answer) = self {
            answer.send(Err(NOT_CONTROLLER));
        }
    }
}

impl Controller {
    fn renounce(&mut self, cx: &mut Cx<'_, Op>) {
        self.epoch = None;
        self.sum = self.last_stable;
        self.waiting.fail_all(|_, (answer, _)| answer.send(Err(NOT_CONTROLLER)));
        // Ends the periodic work too.
        cx.set_epoch(Epoch::UNKNOWN);
    }
}

impl Processor for Controller {
    type Event = Op;

    fn process(&mut self, op: Op, cx: &mut Cx<'_, Op>) -> Result<(), Fault> {
        self.log.add(op.name().to_owned());
        match op {
            Op::Claim(epoch) => {
                self.epoch = Some(epoch);
                cx.set_epoch(epoch);
                cx.handle().prepend(Op::Activate).map_err(|refused| refused.reason())?;
                for name in ["tick 1", "tick 2", "tick 3", "tick 4"] {
                    cx.periodic(name, Duration::from_secs(1), move || Op::Tick(name))
                        .map_err(|refused| refused.reason())?;
                }
            }
            Op::Write(_, answer) if self.epoch.is_none() => answer.send(Err(NOT_CONTROLLER)),
            Op::Write(by, answer) => {
                self.sum += by;
                self.offset += 1;
                let value = self.sum;
                self.waiting
                    .add(self.offset, (answer, value))
                    .map_err(|late| Fault::new(late.to_string()))?;
            }
            Op::Read(answer) => {
                if let Some((answer, value)) = self.waiting.add_behind_all((answer, self.sum)) {
                    answer.send(Ok(value));
                }
            }
            Op::Commit(offset) => {
                self.last_stable = self.sum;
                self.waiting.complete_up_to(offset, |_, (answer, value)| answer.send(Ok(value)));
            }
            Op::Lose => self.renounce(cx),
            Op::Activate | Op::Tick(_) => {}
        }
        Ok(())
    }
}

fn controller() -> (EventLoop<Controller>, MockClock, Log) {
    let (clock, log) = (MockClock::new(), Log::default());
    let controller = Controller {
        log: log.clone(),
        epoch: None,
        sum: 0,
        last_stable: 0,
        offset: 0,
        waiting: CommitQueue::new(),
    };
    (EventLoop::new(controller, LoopOptions::mocked(&clock)), clock, log)
}

fn write(handle: &Handle<Op>, by: u64) -> ReplyReceiver<Result<u64, &'static str>> {
    let (answer, receiver) = Reply::pair();
    handle.put(Op::Write(by, answer)).unwrap();
    receiver
}

#[test]
fn j04_a_read_is_withheld_until_what_it_saw_is_committed() {
    let (mut event_loop, _clock, _log) = controller();
    let handle = event_loop.handle();
    handle.put(Op::Claim(Epoch(1))).unwrap();
    let written = write(&handle, 7);
    let (answer, mut read) = Reply::pair();
    handle.put(Op::Read(answer)).unwrap();
    event_loop.run_until_idle();
    read = read.wait_timeout(Duration::ZERO).unwrap_err();
    handle.put(Op::Commit(1)).unwrap();
    event_loop.run_until_idle();
    assert_eq!((written.wait(), read.wait()), (Ok(Ok(7)), Ok(Ok(7))));
    let (answer, read) = Reply::pair();
    handle.put(Op::Read(answer)).unwrap();
    event_loop.run_until_idle();
    assert_eq!(read.wait(), Ok(Ok(7)), "nothing is pending: answered at once");
}

#[test]
fn j05_renouncing_fails_what_is_pending_ends_periodic_work_and_goes_back_to_what_is_stable() {
    let (mut event_loop, clock, log) = controller();
    let handle = event_loop.handle();
    handle.put(Op::Claim(Epoch(1))).unwrap();
    let stable = write(&handle, 5);
    handle.put(Op::Commit(1)).unwrap();
    let pending = [1, 2, 3].map(|by| write(&handle, by));
    event_loop.run_until_idle();
    assert_eq!((stable.wait(), handle.stats().scheduled), (Ok(Ok(5)), 4));
    handle.put(Op::Lose).unwrap();
    event_loop.run_until_idle();
    for answer in pending {
        assert_eq!(answer.wait(), Ok(Err(NOT_CONTROLLER)));
    }
    let controller = event_loop.processor();
    assert_eq!((controller.epoch, controller.sum), (None, 5));
    assert_eq!((handle.stats().scheduled, handle.stats().cancelled), (0, 4));
    clock.advance(Duration::from_secs(60));
    event_loop.run_until_idle();
    assert_eq!(log.lines().last().unwrap(), "lose");
}

#[test]
fn j06_activation_runs_before_the_requests_that_waited_and_leaves_no_time_in_the_queue() {
    let (mut event_loop, _clock, log) = controller();
    let handle = event_loop.handle();
    handle.put(Op::Claim(Epoch(1))).unwrap();
    let _answers = [1, 2, 3, 4, 5].map(|by| write(&handle, by));
    event_loop.run_until_idle();
    assert_eq!(log.lines()[..3], ["claim", "activate", "write"]);
    assert_eq!(figures::histogram_of(&handle, "event_queue_time_nanoseconds").count(), 6);
    assert_eq!(handle.stats().done, 7);
}

#[test]
fn j07_a_write_to_a_node_that_is_not_the_controller_is_an_answer_and_no_fault() {
    let (mut event_loop, _clock, _log) = controller();
    let handle = event_loop.handle();
    let answer = write(&handle, 1);
    event_loop.run_until_idle();
    assert_eq!(answer.wait(), Ok(Err(NOT_CONTROLLER)));
    let stats = handle.stats();
    assert_eq!((stats.done, stats.failed, stats.panicked), (1, 0, 0));
}
