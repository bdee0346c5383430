//! Distributions: buckets that grow with the value, so that every value is known to about three per cent.
//!
//! Each power of two is cut into [`STEPS`] equal buckets; values below that have a bucket each. A recording is three
//! atomic additions whatever the value, and the whole of `u64` fits in 976 buckets (8 kB), so that nothing has to be
//! configured: neither bounds nor a sampling window that forgets the worst case.

use std::sync::atomic::{AtomicU64, Ordering};

const STEP_BITS: u32 = 4;
const STEPS: u64 = 1 << STEP_BITS;
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS as usize;

fn bucket_of(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros();
    let step = (value >> (octave - STEP_BITS)) & (STEPS - 1);
    // At most 975.
    ((u64::from(octave - STEP_BITS) + 1) * STEPS + step) as usize
}

/// The least and the greatest value of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return (bucket, bucket);
    }
    let (octave, step) = (bucket / STEPS - 1, bucket % STEPS);
    let low = (STEPS + step) << octave;
    (low, low + ((1 << octave) - 1))
}

/// A distribution of whole numbers, recorded from any thread without a lock.
///
/// ```
/// # use runtime_core::metrics::Histogram;
/// let latency = Histogram::new();
/// for micros in [120, 130, 140, 9_000] {
///     latency.record(micros);
/// }
/// let snapshot = latency.snapshot();
/// assert_eq!((snapshot.count(), snapshot.max()), (4, 9_000));
/// assert!(snapshot.quantile(0.5).is_some_and(|p50| (125..=135).contains(&p50)));
/// ```
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    /// Records one value.
    pub fn record(&self, value: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(value)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
        // Most values are no new maximum, and a load does not take the cache line from other cores.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// As [`record`](Self::record), by the only thread that ever records or resets: without the cost of atomic
    /// additions. Others may take snapshots meanwhile. Recordings of two threads at once would be lost.
    pub fn record_alone(&self, value: u64) {
        let add =
            |to: &AtomicU64, by| to.store(to.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        if let Some(bucket) = self.buckets.get(bucket_of(value)) {
            add(bucket, 1);
        }
        add(&self.sum, value);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Forgets everything. What is recorded meanwhile may be forgotten in part.
    pub fn reset(&self) {
        for number in self.buckets.iter().chain([&self.sum, &self.max]) {
            number.store(0, Ordering::Relaxed);
        }
    }

    /// Records a duration in nanoseconds.
    pub fn record_duration(&self, duration: std::time::Duration) {
        self.record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What was recorded so far. What is recorded meanwhile may or may not be in it.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        HistogramSnapshot::of(counts, self.sum.load(Ordering::Relaxed), self.max.load(Ordering::Relaxed))
    }
}

/// A histogram at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistogramSnapshot {
    /// Bucket and count, only those that hold something, by bucket.
    counts: Vec<(usize, u64)>,
    count: u64,
    sum: u64,
    max: u64,
}

impl HistogramSnapshot {
    fn of(buckets: impl Iterator<Item = u64>, sum: u64, max: u64) -> Self {
        let counts: Vec<(usize, u64)> = buckets.enumerate().filter(|(_, count)| *count > 0).collect();
        Self { count: counts.iter().map(|(_, count)| count).sum(), counts, sum, max }
    }

    /// How many values were recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The least of them, to about three per cent; 0 without values.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.counts.first().map_or(0, |(bucket, _)| bounds_of(*bucket).0)
    }

    /// Adds a value that was met `times` times elsewhere.
    pub fn add(&mut self, value: u64, times: u64) {
        if times > 0 {
            let sum = value.saturating_mul(times);
            self.merge(&Self { counts: vec![(bucket_of(value), times)], count: times, sum, max: value });
        }
    }

    /// Adds what another histogram has recorded.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            match self.counts.binary_search_by_key(bucket, |(bucket, _)| *bucket) {
                Ok(place) => {
                    if let Some((_, present)) = self.counts.get_mut(place) {
                        *present += count;
                    }
                }
                Err(place) => self.counts.insert(place, (*bucket, *count)),
            }
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// The greatest of them, exactly; 0 without values.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Their mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value that a share `q` of the values does not exceed, to about three per cent: 0.5 is the median. `q` outside
    /// 0 to 1 counts as its nearer end. `None` without values.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let (bucket, _) = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        let (low, high) = bounds_of(*bucket);
        Some((low + (high - low) / 2).min(self.max))
    }

    /// The buckets that hold something: the greatest value of each, and how many values are in it (not summed up).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(bucket, count)| (bounds_of(*bucket).1, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_join_without_a_gap() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1 << shift) - 1, (1 << shift) + 1, u64::MAX >> shift] {
                let (low, high) = bounds_of(bucket_of(value));
                assert!(low <= value && value <= high, "{value} not in {low}..={high}");
            }
        }
        for bucket in 1..BUCKETS {
            assert_eq!(bounds_of(bucket - 1).1 + 1, bounds_of(bucket).0, "{bucket}");
        }
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
    }

    #[test]
    fn quantiles_are_within_four_per_cent() {
        let histogram = Histogram::new();
        for value in 1..=100_000_u64 {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        for q in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (exact, found) = (q * 100_000.0, snapshot.quantile(q).unwrap() as f64);
            assert!((found - exact).abs() / exact < 0.04, "q {q}: {found} for {exact}");
        }
        assert_eq!(snapshot.sum(), 5_000_050_000);
        assert_eq!(snapshot.mean(), Some(50_000.5));
    }

    #[test]
    fn a_value_is_known_to_three_and_a_third_per_cent() {
        for value in (1..100_000_u64).step_by(97) {
            let histogram = Histogram::new();
            histogram.record(value);
            histogram.record(u64::MAX);
            let found = histogram.snapshot().quantile(0.5).unwrap();
            assert!(found.abs_diff(value) as f64 <= value as f64 / 30.0, "{found} for {value}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_no_mean() {
        let snapshot = Histogram::new().snapshot();
        assert_eq!((snapshot.quantile(0.5), snapshot.mean(), snapshot.count()), (None, None, 0));
    }

    #[test]
    fn recording_alone_records_the_same() {
        let (shared, alone) = (Histogram::new(), Histogram::new());
        for value in [0, 7, 7, 1_000, 123_456_789] {
            shared.record(value);
            alone.record_alone(value);
        }
        assert_eq!(shared.snapshot(), alone.snapshot());
        alone.reset();
        assert_eq!(alone.snapshot(), Histogram::new().snapshot());
    }

    #[test]
    fn merged_snapshots_are_those_of_one_histogram() {
        let (whole, parts) = (Histogram::new(), [Histogram::new(), Histogram::new()]);
        for value in 0..1_000_u64 {
            whole.record(value * value);
            parts[usize::from(value % 3 == 0)].record(value * value);
        }
        let mut merged = HistogramSnapshot::default();
        parts.iter().for_each(|part| merged.merge(&part.snapshot()));
        assert_eq!(merged, whole.snapshot());
        assert_eq!((merged.min(), merged.max()), (0, 998_001));
        merged.add(0, 0);
        merged.add(2_000_000, 2);
        assert_eq!((merged.count(), merged.max()), (1_002, 2_000_000));
        assert_eq!(merged.sum(), whole.snapshot().sum() + 4_000_000);
    }

    #[test]
    fn threads_lose_no_recording() {
        let histogram = Histogram::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|value| histogram.record(value)));
            }
        });
        assert_eq!(histogram.snapshot().count(), 40_000);
        assert_eq!(histogram.snapshot().max(), 9_999);
    }
}
