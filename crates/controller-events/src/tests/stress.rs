//! Many producers and many barriers, as often as it takes: without exclusion an unlocked queue lost one event in two
//! millions and let some twenty of twenty thousand barriers be overtaken.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

const PRODUCERS: u64 = 4;
const PUTS: u64 = 500_000;
const BARRIERS: u64 = 20_000;

struct Seen {
    /// The last barrier whose call has returned, and the last that ran or was cleared.
    returned: AtomicU64,
    passed: AtomicU64,
    overtakes: AtomicU64,
    ran: AtomicU64,
    not_run: AtomicU64,
}

impl Seen {
    const fn new() -> Self {
        Self {
            returned: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            overtakes: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            not_run: AtomicU64::new(0),
        }
    }
}

enum Stressed {
    /// An event, with the last barrier that had returned before it was put.
    Put(&'static Seen, u64),
    Barrier(&'static Seen, u64),
}

impl Event for Stressed {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Change
    }

    fn name(&self) -> &'static str {
        "stressed"
    }

    fn not_run(self, _why: NotRun) {
        let (Self::Put(seen, _) | Self::Barrier(seen, _)) = self;
        seen.not_run.fetch_add(1, Ordering::Relaxed);
        if let Self::Barrier(seen, n) = self {
            seen.passed.fetch_max(n, Ordering::SeqCst);
        }
    }
}

struct Checks;

impl Processor for Checks {
    type Event = Stressed;

    fn process(&mut self, event: Stressed, _cx: &mut Cx<'_, Stressed>) -> Result<(), Fault> {
        match event {
            Stressed::Put(seen, behind) => {
                seen.ran.fetch_add(1, Ordering::Relaxed);
                if seen.passed.load(Ordering::SeqCst) < behind {
                    seen.overtakes.fetch_add(1, Ordering::Relaxed);
                }
            }
            Stressed::Barrier(seen, n) => {
                seen.ran.fetch_add(1, Ordering::Relaxed);
                seen.passed.fetch_max(n, Ordering::SeqCst);
            }
        }
        Ok(())
    }
}

#[test]
fn c05_under_many_producers_and_barriers_nothing_is_lost_and_nothing_overtakes() {
    static SEEN: Seen = Seen::new();
    let seen = &SEEN;
    let running = EventLoop::new(Checks, LoopOptions::mocked(&MockClock::new())).start().unwrap();
    let handle = running.handle();
    std::thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                for _ in 0..PUTS {
                    let behind = seen.returned.load(Ordering::SeqCst);
                    handle.post(Stressed::Put(seen, behind)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for n in 1..=BARRIERS {
                handle.clear_and_put(Stressed::Barrier(seen, n), ClearScope::Fifo).unwrap();
                seen.returned.store(n, Ordering::SeqCst);
            }
        });
    });
    handle.begin_drain();
    running.join().unwrap();
    let [ran, not_run, overtakes] =
        [&seen.ran, &seen.not_run, &seen.overtakes].map(|n| n.load(Ordering::Relaxed));
    assert_eq!((ran + not_run, overtakes), (PRODUCERS * PUTS + BARRIERS, 0));
    let stats = handle.stats();
    assert_eq!((stats.done, stats.preempted), (ran, not_run));
    assert!(stats.is_conserved(), "{stats:?}");
}

#[test]
fn k04_a_line_of_a_million_runs_to_its_end() {
    // How little memory the line keeps then is seen in `queue::line`.
    static SEEN: Seen = Seen::new();
    let seen = &SEEN;
    let mut event_loop = EventLoop::new(Checks, LoopOptions::mocked(&MockClock::new()));
    let handle = event_loop.handle();
    for _ in 0..1_000_000 {
        handle.post(Stressed::Put(seen, 0)).unwrap();
    }
    assert_eq!((handle.len(), event_loop.run_until_idle(), handle.len()), (1_000_000, 1_000_000, 0));
    assert!(handle.stats().is_conserved());
}
