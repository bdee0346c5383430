//! Nanoseconds to schedule, to schedule again and to cancel, with so many outstanding. Tags are unique, the order is
//! random, deadlines are distinct or all the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controller_events::{
    ClearScope, Cx, Event, EventLoop, EventState, Fault, Handle, LoopOptions, MonotonicClock, NotRun,
    Processor, Tag, When,
};
use runtime_core::Tick;

use crate::report::Rows;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Idle;

impl EventState for Idle {
    const IDLE: Self = Self;
    const ALL: &'static [Self] = &[Self];

    fn value(self) -> u8 {
        0
    }

    fn name(self) -> &'static str {
        "Idle"
    }

    fn rate_metric(self) -> Option<&'static str> {
        None
    }
}

struct Tock;

impl Event for Tock {
    type State = Idle;

    fn state(&self) -> Idle {
        Idle
    }

    fn name(&self) -> &'static str {
        "tock"
    }

    fn not_run(self, _why: NotRun) {}
}

struct Nothing;

impl Processor for Nothing {
    type Event = Tock;

    fn process(&mut self, _event: Tock, _cx: &mut Cx<'_, Tock>) -> Result<(), Fault> {
        Ok(())
    }
}

/// What is measured, in this order.
pub(crate) const STEPS: [&str; 3] = ["schedule", "schedule-again", "cancel"];

pub(crate) fn measure(quick: bool, rows: &mut Rows) {
    let sizes: &[u64] = if quick { &[10_000] } else { &[10_000, 100_000, 1_000_000] };
    for size in sizes {
        for (deadlines, spread) in [("distinct", 1_000_003), ("equal", 0)] {
            let running =
                EventLoop::new(Nothing, LoopOptions::new(Arc::new(MonotonicClock::start()))).start();
            let handle = running.as_ref().expect("a thread").handle();
            // Warms the memory up, as it is in a process that lives.
            one(&handle, *size, spread, false);
            for (peer, tickets) in [("ours", false), ("ours-with-tickets", true)] {
                for (what, nanos) in STEPS.into_iter().zip(one(&handle, *size, spread, tickets)) {
                    rows.nanos(format!("timers/{what}/{size}/{deadlines}"), peer, nanos);
                }
            }
        }
    }
}

fn one(handle: &Handle<Tock>, size: u64, spread: u64, tickets: bool) -> [f64; 3] {
    let hour = handle.clock().now() + Duration::from_secs(3600);
    // A fixed step through all numbers: an order without pattern, and every number once.
    let shuffled = |n: u64| u128::from(n.wrapping_mul(0x9e37_79b1) % size);
    let at = |key: u128, more: u64| {
        let key = u64::try_from(key).expect("small");
        When::At(
            hour + Duration::from_nanos(key * spread + more) - Duration::from_nanos(Tick::ZERO.as_nanos()),
        )
    };
    let each = |step: &dyn Fn(u128)| {
        let begun = Instant::now();
        (0..size).for_each(|n| step(shuffled(n)));
        begun.elapsed().as_nanos() as f64 / size as f64
    };
    let put = |more| {
        move |key| {
            let tag = Some(Tag::keyed("t", key));
            if tickets {
                drop(handle.schedule(tag, at(key, more), Tock).expect("open"));
            } else {
                handle.post_at(tag, at(key, more), Tock).expect("open");
            }
        }
    };
    let schedule = each(&put(0));
    let again = each(&put(7));
    let cancel = each(&|key| assert!(handle.cancel(&Tag::keyed("t", key))));
    handle.clear_and_put(Tock, ClearScope::All).expect("open");
    [schedule, again, cancel]
}
