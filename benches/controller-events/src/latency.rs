//! From the put to the run, one producer paced at 10,000 a second: the consumer sleeps in between.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::job::{Boxed, Job as _, Seen};
use crate::peers::{Append, Kind};

const PACE: Duration = Duration::from_micros(100);

/// Median and 99th of a hundred, in nanoseconds.
pub(crate) fn measure(kind: Kind, events: usize) -> (f64, f64) {
    let append = Append::<Boxed>::start(kind);
    let (tell, told) = mpsc::channel();
    let begun = Instant::now();
    for n in 0..u32::try_from(events).expect("few") {
        while begun.elapsed() < PACE * n {
            std::hint::spin_loop();
        }
        let (tell, put) = (tell.clone(), Instant::now());
        append.append(Boxed::of(move || {
            let passed = put.elapsed();
            tell.send(passed).expect("somebody waits");
        }));
    }
    append.append(Boxed::new(Seen::leak(), None));
    drop(tell);
    let mut all: Vec<Duration> = told.iter().collect();
    append.stop();
    all.sort_unstable();
    let at = |per_cent: usize| all.get(all.len() * per_cent / 100).map_or(0.0, |d| d.as_nanos() as f64);
    (at(50), at(99))
}
