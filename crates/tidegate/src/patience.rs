//! How often a job master is asked, and how long one that does not answer is waited for.
//!
//! Pure: the time is passed in.

use std::time::Duration;

use runtime_core::Tick;

/// How long refused connections and "503 Service Unavailable" are ridden out: as long as a job master needs to be started
/// again, image pull included, with some to spare.
pub(crate) const RIDE_OUT: Duration = Duration::from_secs(60);

/// Growing pauses between two questions.
#[derive(Debug, Clone)]
pub(crate) struct Pauses {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl Pauses {
    /// Pauses between looks at a job that runs: a short job is not made longer by being watched, and a long one is asked
    /// about four times a second.
    pub(crate) const fn of_polling() -> Self {
        Self::new(Duration::from_millis(10), Duration::from_millis(250))
    }

    /// Pauses between attempts to reach a job master that is away.
    pub(crate) const fn of_retrying() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(1))
    }

    const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, first, longest }
    }

    /// The next pause. Each is half as long again as the one before, so that what is waited for is noticed after at most
    /// a third of the time that it took.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 3 / 2).min(self.longest);
        pause
    }

    fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Patience with a job master that does not answer; an answer renews it.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    limit: Duration,
    pauses: Pauses,
    away_since: Option<Tick>,
}

impl Patience {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit, pauses: Pauses::of_retrying(), away_since: None }
    }

    /// It has answered.
    pub(crate) fn answered(&mut self) {
        self.away_since = None;
        self.pauses.reset();
    }

    /// It has not answered. Returns how long to wait before it is asked again; `None` when patience is at an end.
    pub(crate) fn failed(&mut self, now: Tick) -> Option<Duration> {
        let away = now.since(*self.away_since.get_or_insert(now));
        let left = self.limit.checked_sub(away).filter(|left| !left.is_zero())?;
        Some(self.pauses.next().min(left))
    }

    /// Whether it is away at present.
    pub(crate) const fn is_tried(&self) -> bool {
        self.away_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Tick {
        Tick::from_millis(millis)
    }

    #[test]
    fn polling_begins_at_10_ms_and_settles_at_250_ms() {
        let mut pauses = Pauses::of_polling();
        let taken: Vec<u128> = (0..10).map(|_| pauses.next().as_millis()).collect();
        assert_eq!(taken, [10, 15, 22, 33, 50, 75, 113, 170, 250, 250]);
    }

    #[test]
    fn patience_ends_60_seconds_after_the_first_failure() {
        let mut patience = Patience::new(RIDE_OUT);
        assert_eq!(patience.failed(at(5_000)), Some(Duration::from_millis(100)));
        assert!(patience.failed(at(64_000)).is_some());
        assert_eq!(patience.failed(at(64_900)), Some(Duration::from_millis(100)), "no longer than is left");
        assert_eq!(patience.failed(at(65_000)), None);
    }

    #[test]
    fn an_answer_renews_patience() {
        let mut patience = Patience::new(RIDE_OUT);
        patience.failed(at(0));
        patience.failed(at(59_000));
        assert!(patience.is_tried());
        patience.answered();
        assert!(!patience.is_tried());
        assert_eq!(patience.failed(at(70_000)), Some(Duration::from_millis(100)));
        assert!(patience.failed(at(129_000)).is_some());
    }
}
