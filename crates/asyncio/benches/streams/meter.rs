//! The sink: adds up what comes, and takes rate, CPU and latency between two marks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::machine::{cpu, now};
use crate::{Failure, allocations};

/// More than are ever in flight: no two of those share a stamp.
const RING: usize = 1 << 17;

/// Latencies taken at most.
const SAMPLES: usize = 1 << 18;

/// When calls were made and completed, for some of the records.
pub(crate) struct Stamps {
    /// Records whose number has none of these bits.
    mask: u64,
    made: Box<[AtomicU64]>,
    completed: Box<[AtomicU64]>,
}

impl Stamps {
    /// For all records, or for one of 64 where a clock read each would be a good part of the cost.
    pub(crate) fn new(all: bool) -> Arc<Self> {
        let zeros = || (0..RING).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { mask: if all { 0 } else { 63 }, made: zeros(), completed: zeros() })
    }

    fn has(&self, value: u64) -> bool {
        value & self.mask == 0
    }

    /// The call for `value` is made now.
    #[inline]
    pub(crate) fn make(&self, value: u64) {
        if self.has(value) {
            put(&self.made, value);
        }
    }

    /// The call for `value` completes now.
    #[inline]
    pub(crate) fn complete(&self, value: u64) {
        if self.has(value) {
            put(&self.completed, value);
        }
    }
}

fn put(ring: &[AtomicU64], value: u64) {
    if let Some(stamp) = ring.get(value as usize % RING) {
        stamp.store(now(), Relaxed);
    }
}

/// Nothing where no stamp was put.
fn since(ring: &[AtomicU64], value: u64, now: u64) -> Option<u64> {
    let stamp = ring.get(value as usize % RING)?.load(Relaxed);
    (stamp > 0).then(|| now.saturating_sub(stamp))
}

/// What stands at a mark.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at: u64,
    cpu: u64,
    allocations: u64,
}

impl Mark {
    fn here() -> Self {
        Self { at: now(), cpu: cpu(), allocations: allocations::calls() }
    }
}

/// Takes the results.
pub(crate) struct Meter {
    records: u64,
    /// The marks stand after this many results and after that many.
    marks: (u64, u64),
    /// The one that comes next.
    next_mark: u64,
    /// As the stamps have it.
    mask: u64,
    seen: u64,
    sum: u64,
    last: u64,
    out_of_order: u64,
    begin: Mark,
    end: Mark,
    stamps: Arc<Stamps>,
    made_to_sink: Vec<u64>,
    completed_to_sink: Vec<u64>,
}

impl Meter {
    /// For `records` results, of which those between `marks` are measured.
    pub(crate) fn new(records: u64, marks: (u64, u64), stamps: Arc<Stamps>) -> Self {
        Self {
            records,
            marks,
            next_mark: marks.0,
            mask: stamps.mask,
            seen: 0,
            sum: 0,
            last: 0,
            out_of_order: 0,
            begin: Mark::default(),
            end: Mark::default(),
            stamps,
            made_to_sink: Vec::with_capacity(SAMPLES),
            completed_to_sink: Vec::with_capacity(SAMPLES),
        }
    }

    /// A result has come.
    #[inline]
    pub(crate) fn see(&mut self, value: u64) {
        self.out_of_order += u64::from(value < self.last);
        self.last = value;
        self.sum = self.sum.wrapping_add(value);
        if value & self.mask == 0 {
            self.sample(value);
        }
        self.seen += 1;
        if self.seen == self.next_mark {
            self.pass_mark();
        }
    }

    #[inline(never)]
    fn sample(&mut self, value: u64) {
        if self.seen >= self.marks.0 && self.made_to_sink.len() < SAMPLES {
            let now = now();
            self.made_to_sink.extend(since(&self.stamps.made, value, now));
            self.completed_to_sink.extend(since(&self.stamps.completed, value, now));
        }
    }

    #[inline(never)]
    fn pass_mark(&mut self) {
        if self.seen == self.marks.0 {
            self.begin = Mark::here();
            self.next_mark = self.marks.1;
        } else {
            self.end = Mark::here();
        }
    }

    /// The figures as members of a JSON object.
    ///
    /// # Errors
    /// Not every record has come exactly once.
    pub(crate) fn figures(mut self) -> Result<String, Failure> {
        let expected = self.records * (self.records - 1) / 2;
        if self.seen != self.records || self.sum != expected {
            let Self { seen, records, sum, .. } = self;
            return Err(
                format!("{seen} of {records} records came, their sum is {sum}, not {expected}").into()
            );
        }
        let records = (self.marks.1 - self.marks.0) as f64;
        let seconds = (self.end.at - self.begin.at) as f64 / 1e9;
        let cpu = (self.end.cpu - self.begin.cpu) as f64 / 1e3;
        let allocations = (self.end.allocations - self.begin.allocations) as f64;
        self.made_to_sink.sort_unstable();
        self.completed_to_sink.sort_unstable();
        Ok(format!(
            "\"records\":{records},\"seconds\":{seconds:.4},\"records_per_s\":{:.0},\"cpu_us_per_record\":{:.4},\
             \"allocations_per_record\":{:.5},\"out_of_order\":{},\"invoke_to_sink_us_p50\":{:.1},\
             \"invoke_to_sink_us_p99\":{:.1},\"complete_to_sink_us_p50\":{:.1},\"complete_to_sink_us_p99\":{:.1}",
            records / seconds,
            cpu / records,
            allocations / records,
            self.out_of_order,
            quantile(&self.made_to_sink, 0.5),
            quantile(&self.made_to_sink, 0.99),
            quantile(&self.completed_to_sink, 0.5),
            quantile(&self.completed_to_sink, 0.99),
        ))
    }
}

/// In us, of sorted ns.
fn quantile(sorted: &[u64], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(0.0, |ns| *ns as f64 / 1e3)
}
