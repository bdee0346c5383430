//! What a task has counted, readable from any thread at any time.
//!
//! Only the task's own thread writes, so a count is a load and a store and no locked instruction.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use runtime_core::Watermark;
use wire::v1;

/// A count with one writer.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds; to be called by one thread only.
    pub fn add(&self, by: u64) {
        self.set(self.get().wrapping_add(by));
    }

    /// Replaces the count.
    pub fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    /// The count as it stands.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The figures of one task. Records are counted where the contract says: `records_in` by the source, `records_out` by
/// the sink, the others where the record leaves the stream; so the sum over a job's tasks counts nothing twice.
#[derive(Debug)]
pub struct TaskFigures {
    /// Lines read except empty ones.
    pub records_in: Count,
    /// Records in the sink.
    pub records_out: Count,
    /// Records that a filter did not let pass.
    pub filtered: Count,
    /// Records left out by a policy.
    pub dropped: Count,
    /// Dead letters made.
    pub dead_letters: Count,
    /// Bytes of the lines read, line ends included.
    pub bytes_in: Count,
    /// Bytes written by the sink, line ends included.
    pub bytes_out: Count,
    /// Time at work, in nanoseconds.
    pub busy_nanos: Count,
    /// Time spent waiting for room downstream, in nanoseconds.
    pub backpressured_nanos: Count,
    /// Time spent waiting for input or answers, in nanoseconds.
    pub idle_nanos: Count,
    /// The asynchronous steps in the order of the chain.
    pub steps: Vec<StepFigures>,
    /// What the task did for checkpoints.
    pub checkpoints: CheckpointFigures,
    watermark: AtomicI64,
}

/// The figures of one asynchronous step.
#[derive(Debug, Default)]
pub struct StepFigures {
    /// The step's name.
    pub name: String,
    /// Elements that it may hold.
    pub capacity: usize,
    /// Records whose call runs or pauses before a retry.
    pub in_flight: Count,
    /// Attempts begun.
    pub calls: Count,
    /// Attempts begun beyond the first of a record.
    pub retries: Count,
    /// Attempts that exceeded their time, and records that exceeded their budget.
    pub timeouts: Count,
    /// Records that have failed.
    pub failures: Count,
    /// Empty outcomes, whatever the policy.
    pub empty: Count,
    /// Records that have their outcome and wait for their turn.
    pub completed_waiting: Count,
    /// For how long the oldest record in flight has been so, in milliseconds.
    pub oldest_in_flight_ms: Count,
}

/// What a task did for checkpoints. Not reported to the job master, which counts its own.
#[derive(Debug, Default)]
pub struct CheckpointFigures {
    /// Checkpoints that the task was told of, or saw a barrier of.
    pub started: Count,
    /// Those that it has acknowledged.
    pub completed: AtomicU64,
    /// Those that it could not take part in.
    pub declined: AtomicU64,
    /// From the first word of the last checkpoint to its barrier from all inputs, in milliseconds.
    pub alignment_ms: Count,
    /// The bytes of the steps' state in the last one.
    pub snapshot_bytes: AtomicU64,
    /// Elements that wait in steps beyond their capacity, now.
    pub parked: Count,
}

/// Stands for "none yet": no watermark is as early.
const NO_WATERMARK: i64 = i64::MIN;

impl TaskFigures {
    /// Figures at zero, with the names and capacities of the steps.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (String, usize)>) -> Arc<Self> {
        let step = |(name, capacity)| StepFigures { name, capacity, ..StepFigures::default() };
        Arc::new(Self {
            records_in: Count::default(),
            records_out: Count::default(),
            filtered: Count::default(),
            dropped: Count::default(),
            dead_letters: Count::default(),
            bytes_in: Count::default(),
            bytes_out: Count::default(),
            busy_nanos: Count::default(),
            backpressured_nanos: Count::default(),
            idle_nanos: Count::default(),
            steps: steps.into_iter().map(step).collect(),
            checkpoints: CheckpointFigures::default(),
            watermark: AtomicI64::new(NO_WATERMARK),
        })
    }

    /// A watermark has left the task.
    pub fn set_watermark(&self, watermark: Watermark) {
        self.watermark.store(watermark.0.0, Ordering::Relaxed);
    }

    /// The figures as they are reported.
    #[must_use]
    pub fn snapshot(&self) -> v1::Figures {
        let watermark = self.watermark.load(Ordering::Relaxed);
        let sum = |of: fn(&StepFigures) -> &Count| self.steps.iter().map(|step| of(step).get()).sum();
        v1::Figures {
            records_in: self.records_in.get(),
            records_out: self.records_out.get(),
            filtered: self.filtered.get(),
            dropped: self.dropped.get(),
            dead_letters: self.dead_letters.get(),
            empty: sum(|step| &step.empty),
            calls: sum(|step| &step.calls),
            retries: sum(|step| &step.retries),
            timeouts: sum(|step| &step.timeouts),
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            steps: self.steps.iter().map(StepFigures::snapshot).collect(),
            watermark: (watermark != NO_WATERMARK).then_some(watermark),
            busy_ms: millis(&self.busy_nanos),
            backpressured_ms: millis(&self.backpressured_nanos),
            idle_ms: millis(&self.idle_nanos),
        }
    }
}

impl StepFigures {
    fn snapshot(&self) -> v1::StepFigures {
        v1::StepFigures {
            name: self.name.clone(),
            in_flight: self.in_flight.get(),
            capacity: self.capacity as u64,
            calls: self.calls.get(),
            retries: self.retries.get(),
            timeouts: self.timeouts.get(),
            failures: self.failures.get(),
            empty: self.empty.get(),
            completed_waiting: self.completed_waiting.get(),
            oldest_in_flight_ms: self.oldest_in_flight_ms.get(),
        }
    }
}

fn millis(nanos: &Count) -> u64 {
    u64::try_from(Duration::from_nanos(nanos.get()).as_millis()).unwrap_or(u64::MAX)
}
