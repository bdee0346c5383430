//! S3.3 on real threads: whatever the interleaving, there is an order of puts and barriers that explains what ran and
//! what was told. Two hundred seeds choose what each thread does; calls are stamped when they begin and return.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 200;
const THREADS: usize = 3;
const CALLS: usize = 12;

/// A call: which event it put, whether as a barrier, and when.
#[derive(Clone, Copy, Debug)]
struct Call {
    id: usize,
    barrier: bool,
    begun: u64,
    returned: u64,
}

/// What became of an event, with its place among all that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ran(u64),
    Cleared(u64),
}

/// Where ends are noted, by event.
#[derive(Clone)]
struct Ends(Arc<Mutex<Vec<Option<End>>>>, Arc<AtomicU64>);

impl Ends {
    fn note(&self, id: usize, end: fn(u64) -> End) {
        let mut ends = self.0.lock().unwrap();
        let stamp = self.1.fetch_add(1, Ordering::SeqCst);
        assert_eq!(ends[id].replace(end(stamp)), None, "event {id} ended twice");
    }
}

struct Noted(usize, Ends);

impl Event for Noted {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Change
    }

    fn name(&self) -> &'static str {
        "noted"
    }

    fn not_run(self, _why: NotRun) {
        self.1.note(self.0, End::Cleared);
    }
}

struct Notes;

impl Processor for Notes {
    type Event = Noted;

    fn process(&mut self, event: Noted, _cx: &mut Cx<'_, Noted>) -> Result<(), Fault> {
        event.1.note(event.0, End::Ran);
        Ok(())
    }
}

/// A small generator: the same seed, the same calls.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn history(seed: u64) -> (Vec<Call>, Vec<Option<End>>) {
    let stamps = Arc::new(AtomicU64::new(0));
    let ends = Ends(Arc::new(Mutex::new(vec![None; THREADS * CALLS])), Arc::clone(&stamps));
    let running = EventLoop::new(Notes, LoopOptions::mocked(&MockClock::new())).start().unwrap();
    let handle = running.handle();
    let calls = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (handle, ends, stamps) = (&handle, &ends, &stamps);
                scope.spawn(move || {
                    let mut random = Random((seed + 1) * 0x9e37_79b9 + thread as u64 * 7_919);
                    let call = |n| {
                        let (id, barrier) = (thread * CALLS + n, random.below(4) == 0);
                        (0..random.below(40)).for_each(|_| std::hint::spin_loop());
                        let begun = stamps.fetch_add(1, Ordering::SeqCst);
                        let event = Noted(id, ends.clone());
                        if barrier {
                            handle.clear_and_put(event, ClearScope::Fifo).unwrap();
                        } else {
                            handle.post(event).unwrap();
                        }
                        Call { id, barrier, begun, returned: stamps.fetch_add(1, Ordering::SeqCst) }
                    };
                    (0..CALLS).map(call).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    handle.begin_drain();
    running.join().unwrap();
    let stats = handle.stats();
    assert!(stats.is_conserved() && stats.total == 0, "seed {seed}: {stats:?}");
    let ends = ends.0.lock().unwrap().clone();
    (calls, ends)
}

#[test]
fn s3_3_what_ran_and_what_was_told_has_an_order_of_puts_and_barriers_that_explains_it() {
    for seed in 0..SEEDS {
        let (calls, ends) = history(seed);
        let end = |call: &Call| ends[call.id].unwrap_or_else(|| panic!("seed {seed}: {call:?} has no end"));
        for earlier in &calls {
            for later in calls.iter().filter(|later| earlier.returned < later.begun) {
                let told = format!("seed {seed}: {earlier:?} {:?}, {later:?} {:?}", end(earlier), end(later));
                match (end(earlier), end(later)) {
                    (End::Ran(first), End::Ran(second)) => assert!(first < second, "{told}"),
                    // Cleared by a barrier before the later one, or by that one itself.
                    (End::Cleared(_), End::Ran(_)) => {
                        let between = |c: &Call| {
                            c.barrier
                                && c.id != earlier.id
                                && c.returned > earlier.begun
                                && c.begun < later.returned
                        };
                        assert!(calls.iter().any(between), "{told}");
                    }
                    (_, End::Cleared(_)) => {}
                }
            }
        }
        for barrier in calls.iter().filter(|call| call.barrier) {
            let first_cleared = calls.iter().filter_map(|call| match end(call) {
                End::Cleared(at) if at > barrier.begun && at < barrier.returned => Some(at),
                _ => None,
            });
            // From the first event that this barrier may have told to its own start at most the one that was
            // running then and those of barriers that came meanwhile can have run.
            if let (Some(from), End::Ran(start)) = (first_cleared.min(), end(barrier)) {
                let concurrent = |c: &&Call| c.id != barrier.id && c.returned > barrier.begun;
                let ran = calls.iter().filter(concurrent).filter(|call| match end(call) {
                    End::Ran(at) => at > from && at < start && !call.barrier,
                    End::Cleared(_) => false,
                });
                let others = calls.iter().filter(|c| c.barrier && c.id != barrier.id);
                let overlapping = others.filter(|c| c.returned > barrier.begun && c.begun < barrier.returned);
                if overlapping.count() == 0 {
                    assert!(ran.count() <= 1, "seed {seed}: {barrier:?} was overtaken");
                }
            }
        }
    }
}
