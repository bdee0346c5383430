//! A counter that one thread owns and everybody may add to.

use std::sync::Arc;

use controller_events::*;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Idle,
    Adding,
}

impl EventState for Doing {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[Self::Idle, Self::Adding];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        if self == Self::Idle { "Idle" } else { "Adding" }
    }

    fn rate_metric(self) -> Option<&'static str> {
        (self == Self::Adding).then_some("AddingRateAndTimeMs")
    }
}

struct Add(u64);

impl Event for Add {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Adding
    }

    fn name(&self) -> &'static str {
        "Add"
    }

    fn not_run(self, why: NotRun) {
        println!("{} was not added: {why}", self.0);
    }
}

struct Sum(u64);

impl Processor for Sum {
    type Event = Add;

    fn process(&mut self, Add(n): Add, _cx: &mut Cx<'_, Add>) -> Result<(), Fault> {
        self.0 += n;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let running = EventLoop::new(Sum(0), LoopOptions::new(Arc::new(MonotonicClock::start()))).start()?;
    for n in 1..=100 {
        running.handle().put(Add(n))?;
    }
    running.handle().begin_drain();
    let sum = running.join()?.0;
    assert_eq!(sum, 5050);
    println!("the sum is {sum}");
    Ok(())
}
