//! Metric types without an exporter.
//!
//! A component owns its counters, gauges and histograms as plain fields, counts with a shared reference and no lock,
//! and shows them through [`Observe`]. Who exports them (a `/metrics` page, a test, a benchmark) brings a [`Visit`].
//! So a library that counts pulls in no registry, and there is no global one.
//!
//! ```
//! use runtime_core::metrics::{Counter, HistogramSnapshot, Observe, Visit};
//!
//! #[derive(Default)]
//! struct Calls { started: Counter }
//!
//! impl Observe for Calls {
//!     fn observe(&self, visit: &mut dyn Visit) {
//!         visit.counter("calls_started", "Calls started.", &[("kind", "http")], self.started.get());
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Lines(Vec<String>);
//!
//! impl Visit for Lines {
//!     fn counter(&mut self, name: &str, _help: &str, labels: &[(&str, &str)], value: u64) {
//!         self.0.push(format!("{name}{labels:?} {value}"));
//!     }
//!     fn gauge(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: f64) {}
//!     fn histogram(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: &HistogramSnapshot) {}
//! }
//!
//! let calls = Calls::default();
//! calls.started.increment();
//! let mut lines = Lines::default();
//! calls.observe(&mut lines);
//! assert_eq!(lines.0, [r#"calls_started[("kind", "http")] 1"#]);
//! ```

mod histogram;

pub use histogram::{Histogram, HistogramSnapshot};

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Something that can show its metrics.
pub trait Observe: Send + Sync {
    /// Shows each metric once.
    fn observe(&self, visit: &mut dyn Visit);
}

impl<O: Observe + ?Sized> Observe for Arc<O> {
    fn observe(&self, visit: &mut dyn Visit) {
        (**self).observe(visit);
    }
}

/// Who is shown metrics. Names are `snake_case` with the unit last (`_seconds`, `_bytes`); a counter's name comes
/// without `_total`, which exporters add where their format wants it.
pub trait Visit {
    /// A number that only grows.
    fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64);

    /// A number as it stands now.
    fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64);

    /// A distribution. Its values are whole numbers in the unit that the name ends with.
    fn histogram(&mut self, name: &str, help: &str, labels: &[(&str, &str)], snapshot: &HistogramSnapshot);
}

/// A number that only grows.
///
/// ```
/// # use runtime_core::metrics::Counter;
/// let records = Counter::new();
/// records.increment();
/// records.add(4);
/// assert_eq!(records.get(), 5);
/// ```
// Relaxed order throughout: a metric orders nothing else, and each is read alone.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts `by`.
    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
///
/// ```
/// # use runtime_core::metrics::Gauge;
/// let in_flight = Gauge::new();
/// in_flight.add(3);
/// in_flight.add(-1);
/// assert_eq!(in_flight.get(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// A gauge at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Moves it up, or down by a negative number.
    pub fn add(&self, by: i64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    /// Where it stands.
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
