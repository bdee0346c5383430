//! How well the watcher itself is: who is unwell suspects later.

use std::time::Duration;

const WORST: u32 = 8;

/// A score from 0, well, to 8. It is raised by what goes wrong on one's own side and lowered by an interval in which
/// nothing does; it lengthens the silence that raises a suspicion, never the one that is a death (Lifeguard's local health
/// multiplier).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalHealth(u32);

impl LocalHealth {
    /// Something went wrong here: a stall, a missed tick, a probe of oneself that failed.
    pub fn worsen(&mut self) {
        self.0 = (self.0 + 1).min(WORST);
    }

    /// An interval has passed in which nothing did.
    pub fn clean_round(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// The score.
    #[must_use]
    pub const fn score(self) -> u32 {
        self.0
    }

    /// A silence that is suspicious to somebody well, as long as it must be now.
    ///
    /// ```
    /// # use heartbeat::LocalHealth;
    /// # use std::time::Duration;
    /// let mut health = LocalHealth::default();
    /// health.worsen();
    /// assert_eq!(health.lengthen(Duration::from_secs(2)), Duration::from_secs(4));
    /// health.clean_round();
    /// assert_eq!(health.lengthen(Duration::from_secs(2)), Duration::from_secs(2));
    /// ```
    #[must_use]
    pub const fn lengthen(self, silence: Duration) -> Duration {
        silence.saturating_mul(self.0 + 1)
    }
}
