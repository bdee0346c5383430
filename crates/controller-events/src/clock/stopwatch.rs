//! Reading the time in half the time.
//!
//! Every event is stamped when it is put and when it ends, and asking the operating system costs more than all the rest
//! of a put. Where the kernel itself keeps time by the processor's time stamp counter, so that it is the same and even
//! on all cores, that counter is read directly (11 ns for 25) and converted. The conversion is set right against the
//! operating system's clock twenty times a second; between two of those it is off by some hundred nanoseconds at most. It
//! never goes backwards: where it is ahead it runs slower until it is not. Elsewhere this is the operating system's clock.

use crate::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// Between two comparisons with the operating system's clock.
const SET_RIGHT_AFTER: Duration = Duration::from_millis(50);
/// The counter's rate is taken over this time at first; until then the operating system's clock serves.
const FIRST_MEASURED_AFTER: Duration = Duration::from_millis(2);
/// Nanoseconds a count, as a fraction of 2 to this power.
const SHIFT: u32 = 32;

/// Nanoseconds since its start.
#[derive(Debug)]
pub(super) struct Stopwatch {
    start: Instant,
    counter: Option<Counter>,
}

/// A counter, and how to convert its counts. The four numbers are written together, by whoever holds the lock, between
/// two changes of `version`; readers try again when it has changed meanwhile.
#[derive(Debug)]
struct Counter {
    version: AtomicU64,
    /// The count at the last comparison.
    count: AtomicU64,
    /// What this clock showed then.
    nanos: AtomicU64,
    rate: AtomicU64,
    /// The count from which the next comparison is due.
    due: AtomicU64,
    /// The last comparison: a count, and what the operating system's clock showed.
    compared: Mutex<(u64, u64)>,
}

impl Stopwatch {
    // A shell: here this crate reads the machine's clock.
    #[allow(clippy::disallowed_methods)]
    pub(super) fn start() -> Self {
        let start = Instant::now();
        let counter = tsc::is_trusted().then(|| {
            let count = tsc::read();
            Counter {
                version: AtomicU64::new(0),
                count: AtomicU64::new(count),
                nanos: AtomicU64::new(0),
                rate: AtomicU64::new(0),
                due: AtomicU64::new(count),
                compared: Mutex::new((count, 0)),
            }
        });
        Self { start, counter }
    }

    pub(super) fn nanos(&self) -> u64 {
        match &self.counter {
            Some(counter) => {
                let count = tsc::read();
                match counter.convert(count) {
                    Some(nanos) => nanos,
                    None => counter.compare(count, self.system()),
                }
            }
            None => self.system(),
        }
    }

    fn system(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Counter {
    /// What a count means; `None` if a comparison is due.
    fn convert(&self, count: u64) -> Option<u64> {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let [then, nanos, rate, due] =
                [&self.count, &self.nanos, &self.rate, &self.due].map(|n| n.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return (count < due).then(|| extrapolate(then, nanos, rate, count));
            }
            std::hint::spin_loop();
        }
    }

    /// Sets the conversion right, given what the operating system's clock shows.
    fn compare(&self, count: u64, system: u64) -> u64 {
        let mut compared = lock(&self.compared);
        // Another thread may have done it meanwhile.
        if let Some(nanos) = self.convert(count) {
            return nanos;
        }
        let (then, nanos, rate) = (
            self.count.load(Ordering::Relaxed),
            self.nanos.load(Ordering::Relaxed),
            self.rate.load(Ordering::Relaxed),
        );
        let shown = if rate == 0 { system } else { extrapolate(then, nanos, rate, count).max(nanos) };
        let (last_count, last_system) = *compared;
        let (counts, passed) = (count.saturating_sub(last_count), system.saturating_sub(last_system));
        if counts == 0 || passed < u64::try_from(FIRST_MEASURED_AFTER.as_nanos()).unwrap_or(u64::MAX) {
            return shown.max(system);
        }
        let measured = (u128::from(passed) << SHIFT) / u128::from(counts);
        let period = u64::try_from(SET_RIGHT_AFTER.as_nanos()).unwrap_or(u64::MAX);
        // Ahead: slower until the next comparison, but never standing still. Behind: forward at once.
        let ahead = shown.saturating_sub(system).min(period / 2);
        let rate = measured * u128::from(period - ahead) / u128::from(period);
        let showing = shown.max(system);
        let until_due = (u128::from(period) << SHIFT) / measured.max(1);

        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.count.store(count, Ordering::Relaxed);
        self.nanos.store(showing, Ordering::Relaxed);
        self.rate.store(u64::try_from(rate).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.due.store(count.saturating_add(u64::try_from(until_due).unwrap_or(u64::MAX)), Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
        *compared = (count, system);
        showing
    }
}

fn extrapolate(then: u64, nanos: u64, rate: u64, count: u64) -> u64 {
    let passed = (u128::from(count.saturating_sub(then)) * u128::from(rate)) >> SHIFT;
    nanos.saturating_add(passed as u64)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tsc {
    //! The time stamp counter of x86-64.
    #![allow(unsafe_code)]

    /// Whether the kernel keeps time by this counter: it has checked then that it is even and the same on all cores.
    pub(super) fn is_trusted() -> bool {
        let source = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        source.is_ok_and(|source| source.trim_ascii() == b"tsc")
    }

    pub(super) fn read() -> u64 {
        // SAFETY: the instruction has no precondition and touches no memory; every processor of this architecture has
        // it, and the kernel, which uses it itself, lets programs use it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod tsc {
    //! No counter that is known to be trusted.

    pub(super) fn is_trusted() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> Counter {
        Counter {
            version: AtomicU64::new(0),
            count: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            due: AtomicU64::new(0),
            compared: Mutex::new((0, 0)),
        }
    }

    #[test]
    fn counts_are_converted_at_the_measured_rate() {
        let counter = counter();
        assert_eq!(counter.convert(0), None);
        // Two counts a nanosecond.
        assert_eq!(counter.compare(20_000_000, 10_000_000), 10_000_000);
        assert_eq!(counter.convert(20_000_200), Some(10_000_100));
        assert_eq!(counter.convert(119_999_999), Some(59_999_999));
        assert_eq!(counter.convert(120_000_000), None);
    }

    #[test]
    fn a_clock_that_is_ahead_slows_down_and_never_goes_back() {
        let counter = counter();
        counter.compare(20_000_000, 10_000_000);
        // The counter ran fast: 50 ms shown, 49 ms passed.
        assert_eq!(counter.compare(120_000_000, 59_000_000), 60_000_000);
        let rates = |count| counter.convert(count).unwrap();
        assert!(rates(130_000_000) > rates(120_000_000));
        assert!(rates(130_000_000) - rates(120_000_000) < 4_900_000);
    }

    #[test]
    fn a_clock_that_is_behind_catches_up_at_once() {
        let counter = counter();
        counter.compare(20_000_000, 10_000_000);
        assert_eq!(counter.compare(120_000_000, 61_000_000), 61_000_000);
    }

    #[test]
    fn time_goes_forward_on_every_thread_and_stays_close_to_the_systems() {
        let watch = Stopwatch::start();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < 120_000_000 {
                        let before = watch.system();
                        let now = watch.nanos();
                        assert!(now >= last, "{now} after {last}");
                        assert!(now + 100_000 > before, "{now} though it was {before}");
                        last = now;
                    }
                });
            }
        });
    }
}
