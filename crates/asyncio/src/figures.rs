//! What an operator tells about itself.

use std::time::Duration;

use runtime_core::metrics::{HistogramSnapshot, Observe, Visit};
use runtime_core::{Tick, Watermark};

use crate::entry::{Entry, EntryId};
use crate::key::KeySelector;
use crate::operator::AsyncWaitOperator;

/// Counts since the operator was made, and what it holds now. (Flink has none of its own: FLINK-22438, FLINK-34046.)
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// for n in [1, 2] {
///     operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
/// }
/// let mut started = std::iter::from_fn(|| operator.next_effect()).collect::<Vec<_>>();
/// // The second is answered, and waits for the first.
/// let Some(Effect::Start { entry, attempt }) = started.pop() else { panic!("both start") };
/// operator.complete(entry, attempt, Ok(4), now);
/// let figures = operator.figures(Tick::from_millis(25));
/// assert_eq!((figures.records_in, figures.calls, figures.records_out), (2, 2, 0));
/// assert_eq!((figures.in_flight, figures.completed_waiting, figures.occupied), (1, 1, 2));
/// assert_eq!(figures.oldest_in_flight.unwrap().as_millis(), 25);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Records that have taken a place or passed; those that are parked are not among them yet.
    pub records_in: u64,
    /// Records that have left, whatever their outcome.
    pub records_out: u64,
    /// Attempts begun, retries included.
    pub calls: u64,
    /// Attempts begun beyond the first of a record.
    pub retries: u64,
    /// Retries not made because the operator's retry budget was used up.
    pub retries_refused: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
    /// Attempts that exceeded the time of one attempt.
    pub attempt_timeouts: u64,
    /// Records that have failed, timeouts included.
    pub failures: u64,
    /// Records that shared the call of an equal one.
    pub coalesced: u64,
    /// Completions that came late or twice and were ignored.
    pub ignored_completions: u64,
    /// Elements that the operator may hold.
    pub capacity: usize,
    /// Places taken: by waiting, in flight and completed records, watermarks and statuses.
    pub occupied: usize,
    /// Elements taken in beyond the capacity.
    pub parked: usize,
    /// Records whose call is running, pausing before a retry, or shared.
    pub in_flight: usize,
    /// Records that have their outcome and wait for their turn to leave.
    pub completed_waiting: usize,
    /// For how long the oldest record in flight has been so.
    pub oldest_in_flight: Option<Duration>,
    /// For how long the operator has been full, all together.
    pub blocked: Duration,
}

/// What keeps the first waiting watermark from leaving.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Options};
/// use runtime_core::{EpochMillis, Record, StreamElement, Tick, Watermark};
///
/// let mut operator = AsyncWaitOperator::<&str, u32, String>::new(Options::unordered().build()?);
/// operator.push(StreamElement::Record(Record::new("slow")), Tick::ZERO).unwrap();
/// operator.push(StreamElement::Watermark(Watermark(EpochMillis(1_000))), Tick::ZERO).unwrap();
/// # while operator.next_effect().is_some() {}
///
/// let held = operator.held_watermark(Tick::from_millis(40)).unwrap();
/// assert_eq!(held.in_flight_for.as_millis(), 40);
/// assert_eq!(operator.input(held.held_by.unwrap()).unwrap().value, "slow");
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldWatermark {
    /// The watermark.
    pub watermark: Watermark,
    /// The oldest record before it that has no outcome; absent when it can leave.
    pub held_by: Option<EntryId>,
    /// For how long that record has been in flight; zero while it waits for its key.
    pub in_flight_for: Duration,
    /// How many calls were made for it.
    pub attempts: u32,
}

/// Everything an operator tells, at one moment: for a metrics page or a log line.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().name("prices").build()?);
/// operator.push(StreamElement::Record(Record::new(7)), Tick::ZERO).unwrap();
/// let report = operator.report(Tick::from_millis(30));
/// assert_eq!(report.figures.in_flight, 1);
/// assert_eq!(report.figures.oldest_in_flight.unwrap().as_millis(), 30);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The operator's name.
    pub operator: String,
    /// Counts and gauges.
    pub figures: Figures,
    /// Nanoseconds from a record's first attempt to its outcome.
    pub latency: HistogramSnapshot,
    /// Nanoseconds from the place taken to the first attempt: the wait for the record's key.
    pub queue_wait: HistogramSnapshot,
    /// What holds the first watermark that waits, if one does.
    pub held_watermark: Option<HeldWatermark>,
}

impl Observe for Report {
    fn observe(&self, visit: &mut dyn Visit) {
        let labels: &[(&str, &str)] = &[("operator", &self.operator)];
        let Figures { records_in, records_out, calls, retries, timeouts, failures, .. } = self.figures;
        let counters = [
            ("asyncio_records_in", "Records taken in.", records_in),
            ("asyncio_records_out", "Records that have left, whatever their outcome.", records_out),
            ("asyncio_calls", "Attempts begun, retries included.", calls),
            ("asyncio_retries", "Attempts begun beyond the first of a record.", retries),
            ("asyncio_retries_refused", "Retries not made: budget used up.", self.figures.retries_refused),
            ("asyncio_timeouts", "Records whose budget ran out.", timeouts),
            ("asyncio_attempt_timeouts", "Attempts that took too long.", self.figures.attempt_timeouts),
            ("asyncio_failures", "Records that have failed, timeouts included.", failures),
            ("asyncio_coalesced", "Records that shared the call of an equal one.", self.figures.coalesced),
            (
                "asyncio_ignored_completions",
                "Completions that came late or twice.",
                self.figures.ignored_completions,
            ),
        ];
        for (name, help, value) in counters {
            visit.counter(name, help, labels, value);
        }
        let oldest = self.figures.oldest_in_flight.map_or(0.0, |age| age.as_secs_f64());
        let held = self.held_watermark.filter(|held| held.held_by.is_some());
        let held_for = held.map_or(0.0, |held| held.in_flight_for.as_secs_f64());
        let gauges = [
            ("asyncio_capacity", "Elements that the operator may hold.", self.figures.capacity as f64),
            ("asyncio_occupied", "Places taken.", self.figures.occupied as f64),
            ("asyncio_parked", "Elements taken in beyond the capacity.", self.figures.parked as f64),
            ("asyncio_in_flight", "Records that wait for an outcome.", self.figures.in_flight as f64),
            (
                "asyncio_completed_waiting",
                "Records that have their outcome and wait for their turn.",
                self.figures.completed_waiting as f64,
            ),
            ("asyncio_oldest_in_flight_seconds", "Age of the oldest record in flight.", oldest),
            ("asyncio_watermark_held_seconds", "Age of the record that holds a watermark.", held_for),
            (
                "asyncio_blocked_seconds",
                "Time for which the operator has been full.",
                self.figures.blocked.as_secs_f64(),
            ),
        ];
        for (name, help, value) in gauges {
            visit.gauge(name, help, labels, value);
        }
        visit.histogram("asyncio_latency_nanoseconds", "First attempt to outcome.", labels, &self.latency);
        let help = "Place taken to first attempt.";
        visit.histogram("asyncio_queue_wait_nanoseconds", help, labels, &self.queue_wait);
    }
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Counts and gauges at `now`. Walks over what is held: for a scrape, not for each record.
    #[must_use]
    pub fn figures(&self, now: Tick) -> Figures {
        let in_flight = self.entries.iter().filter(|(_, entry)| entry.is_in_flight());
        let oldest = in_flight.map(|(_, entry)| entry.first_at).min();
        let full_for = self.full_since.map_or(Duration::ZERO, |since| now.since(since));
        Figures {
            // What has passed was never held, and is counted once instead of three times.
            records_in: self.figures.records_in + self.passed,
            records_out: self.figures.records_out + self.passed,
            calls: self.figures.calls + self.passed,
            occupied: self.occupied,
            parked: self.parked(),
            oldest_in_flight: oldest.map(|first_at| now.since(first_at)),
            blocked: self.figures.blocked + full_for,
            ..self.figures
        }
    }

    /// Everything there is to tell at `now`. Walks over what is held, too.
    #[must_use]
    pub fn report(&self, now: Tick) -> Report {
        // What costs nothing to wait is counted, not recorded.
        let mut latency = self.latency.snapshot();
        latency.add(0, self.passed);
        let mut queue_wait = self.queue_wait.snapshot();
        queue_wait.add(0, self.passed + self.unqueued);
        Report {
            operator: self.options.name().to_owned(),
            figures: self.figures(now),
            latency,
            queue_wait,
            held_watermark: self.held_watermark(now),
        }
    }

    /// What keeps the first waiting watermark from leaving: the oldest record before it without an outcome.
    #[must_use]
    pub fn held_watermark(&self, now: Tick) -> Option<HeldWatermark> {
        let (sequence, watermark) = self.queue.first_watermark()?;
        let open = |entry: &&Entry<I, R, E>| entry.sequence < sequence && !entry.is_done();
        let oldest = self.entries.iter().filter(|(_, entry)| open(entry));
        let oldest = oldest.min_by_key(|(_, entry)| entry.sequence);
        let entry = oldest.map(|(_, entry)| entry);
        Some(HeldWatermark {
            watermark,
            held_by: oldest.map(|(id, _)| id),
            in_flight_for: entry
                .filter(|entry| entry.is_in_flight())
                .map_or(Duration::ZERO, |entry| now.since(entry.first_at)),
            attempts: entry.map_or(0, |entry| entry.attempts().count),
        })
    }
}
