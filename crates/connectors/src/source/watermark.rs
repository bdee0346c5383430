//! Watermarks for event times that run backwards by no more than a lag.
//!
//! Flink: `BoundedOutOfOrdernessWatermarks`, asked periodically (`pipeline.auto-watermark-interval`, 200 ms). A core:
//! the time is passed in.

use std::time::Duration;

use runtime_core::{EpochMillis, Tick, Watermark};

/// How long a subtask waits at least between two watermarks. Each one travels to every subtask below, so that one per
/// record would cost more than the records.
pub const WATERMARK_INTERVAL: Duration = Duration::from_millis(200);

/// Makes the watermarks of one subtask of a source.
///
/// ```
/// use connectors::source::watermark::WatermarkGenerator;
/// use runtime_core::{EpochMillis, Tick, Watermark};
/// use std::time::Duration;
///
/// let mut watermarks = WatermarkGenerator::new(Duration::from_secs(5));
/// watermarks.on_event(EpochMillis(10_000));
/// assert_eq!(watermarks.advance(Tick::ZERO), Some(Watermark(EpochMillis(4_999))));
/// ```
#[derive(Debug, Clone)]
pub struct WatermarkGenerator {
    lag: i64,
    highest: Option<EpochMillis>,
    last: Option<(Tick, Watermark)>,
}

impl WatermarkGenerator {
    /// A generator for event times that run backwards by at most `lag`.
    #[must_use]
    pub fn new(lag: Duration) -> Self {
        Self { lag: i64::try_from(lag.as_millis()).unwrap_or(i64::MAX), highest: None, last: None }
    }

    /// Takes note of a record's event time.
    pub fn on_event(&mut self, at: EpochMillis) {
        self.highest = self.highest.max(Some(at));
    }

    /// The watermark that is due now, if there is one: at most one every [`WATERMARK_INTERVAL`], and only a higher one.
    pub fn advance(&mut self, now: Tick) -> Option<Watermark> {
        let due = self.next_wakeup()?;
        if now < due {
            return None;
        }
        let watermark = self.candidate()?;
        self.last = Some((now, watermark));
        Some(watermark)
    }

    /// When [`advance`](Self::advance) will have a watermark; `None` while event times do not advance.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        let candidate = self.candidate()?;
        match self.last {
            None => Some(Tick::ZERO),
            Some((at, last)) => (candidate > last).then_some(at + WATERMARK_INTERVAL),
        }
    }

    /// The last watermark, at the end of the input: nothing will follow at all.
    #[must_use]
    pub fn end(self) -> Watermark {
        Watermark::MAX
    }

    /// Flink: a watermark `t` says that nothing at or before `t` follows, hence the millisecond.
    fn candidate(&self) -> Option<Watermark> {
        let highest = self.highest?.0;
        Some(Watermark(EpochMillis(highest.saturating_sub(self.lag).saturating_sub(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Duration = Duration::from_millis(50);

    fn at(millis: i64) -> Watermark {
        Watermark(EpochMillis(millis))
    }

    #[test]
    fn a_watermark_is_the_highest_event_time_less_lag_and_one_millisecond() {
        let mut watermarks = WatermarkGenerator::new(LAG);
        watermarks.on_event(EpochMillis(1_000));
        watermarks.on_event(EpochMillis(400));
        assert_eq!(watermarks.advance(Tick::ZERO), Some(at(949)));
    }

    #[test]
    fn without_an_event_there_is_none() {
        let mut watermarks = WatermarkGenerator::new(LAG);
        assert_eq!(watermarks.next_wakeup(), None);
        assert_eq!(watermarks.advance(Tick::from_millis(500)), None);
    }

    #[test]
    fn at_most_one_every_two_hundred_milliseconds() {
        let mut watermarks = WatermarkGenerator::new(LAG);
        watermarks.on_event(EpochMillis(1_000));
        assert!(watermarks.advance(Tick::from_millis(10)).is_some());
        watermarks.on_event(EpochMillis(2_000));
        assert_eq!(watermarks.advance(Tick::from_millis(209)), None);
        assert_eq!(watermarks.next_wakeup(), Some(Tick::from_millis(210)));
        assert_eq!(watermarks.advance(Tick::from_millis(210)), Some(at(1_949)));
    }

    #[test]
    fn none_while_event_times_stand_still_or_run_backwards() {
        let mut watermarks = WatermarkGenerator::new(LAG);
        watermarks.on_event(EpochMillis(1_000));
        assert!(watermarks.advance(Tick::ZERO).is_some());
        watermarks.on_event(EpochMillis(900));
        assert_eq!(watermarks.advance(Tick::from_millis(1_000)), None);
        assert_eq!(watermarks.next_wakeup(), None);
    }

    #[test]
    fn the_end_of_input_is_the_highest_watermark() {
        assert_eq!(WatermarkGenerator::new(LAG).end(), Watermark::MAX);
    }

    #[test]
    fn the_beginning_of_time_does_not_wrap_around() {
        let mut watermarks = WatermarkGenerator::new(Duration::MAX);
        watermarks.on_event(EpochMillis(i64::MIN));
        assert_eq!(watermarks.advance(Tick::ZERO), Some(at(i64::MIN)));
    }
}
