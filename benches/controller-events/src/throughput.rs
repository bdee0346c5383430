//! Events a second, from the first append to the last run.

use std::sync::{Arc, Barrier, mpsc};
use std::time::Instant;

use crate::job::{Job, Seen};
use crate::peers::{Append, Kind};

/// At most so many events are outstanding in the steady load; in a burst there is no limit.
const WINDOW: u64 = 1024;

/// One warm-up, and then the run that counts.
pub(crate) fn measure<J: Job>(kind: Kind, load: &str, producers: u64, events: u64) -> f64 {
    let append = Append::<J>::start(kind);
    let window = if load == "steady" { WINDOW / producers } else { u64::MAX };
    run(&append, window, producers, events / 4);
    let rate = run(&append, window, producers, events);
    append.stop();
    rate
}

fn run<J: Job>(append: &Append<J>, window: u64, producers: u64, events: u64) -> f64 {
    let each = events / producers;
    let go = Arc::new(Barrier::new(usize::try_from(producers).expect("few") + 1));
    let (done, all) = mpsc::channel();
    let threads: Vec<_> = (0..producers)
        .map(|_| {
            let (append, go, done) = (append.clone(), Arc::clone(&go), done.clone());
            let seen = Seen::leak();
            std::thread::spawn(move || {
                go.wait();
                let mut known = 0;
                for n in 1..=each {
                    // Looks at the count only when what it knows of it is used up: the count's cache line belongs to
                    // the consumer.
                    while n - known > window {
                        known = seen.get();
                        if n - known > window {
                            std::thread::yield_now();
                        }
                    }
                    append.append(J::new(seen, (n == each).then(|| done.clone())));
                }
            })
        })
        .collect();
    go.wait();
    let begun = Instant::now();
    for _ in 0..producers {
        all.recv().expect("every producer has a last event");
    }
    let passed = begun.elapsed();
    threads.into_iter().for_each(|thread| thread.join().expect("producers do not panic"));
    (each * producers) as f64 / passed.as_secs_f64()
}
