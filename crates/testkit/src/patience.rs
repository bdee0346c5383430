//! Real time, for those who watch real processes.

use std::time::{Duration, Instant};

/// Between two looks at a process: far below what is measured, far above what a look costs.
const PAUSE: Duration = Duration::from_millis(2);

/// How long it took so far, and when it is too long.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    begun: Instant,
    within: Duration,
}

impl Patience {
    /// Begins now.
    // Other processes do not wait for a clock of ours.
    #[allow(clippy::disallowed_methods)]
    #[must_use]
    pub fn of(within: Duration) -> Self {
        Self { begun: Instant::now(), within }
    }

    /// A stopwatch: endless patience.
    #[must_use]
    pub fn endless() -> Self {
        Self::of(Duration::MAX)
    }

    /// Since the beginning.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What is left; zero when it is over.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.within.saturating_sub(self.elapsed())
    }

    /// Lets the time pass.
    // Other processes use it.
    #[allow(clippy::disallowed_methods)]
    pub fn pass(&self) {
        std::thread::sleep(self.left());
    }

    /// Asks again and again until there is an answer.
    ///
    /// # Errors
    /// Time is over: what was waited for, and what was seen last. An error of `look` itself ends it at once.
    // There is nothing to wake up by: the answer comes from another process.
    #[allow(clippy::disallowed_methods)]
    pub fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut() -> anyhow::Result<Look<T>>,
    ) -> anyhow::Result<T> {
        loop {
            let seen = match look()? {
                Look::Found(value) => return Ok(value),
                Look::NotYet(seen) => seen,
            };
            if self.left().is_zero() {
                anyhow::bail!("{what}: not within {:?}; last seen: {seen}", self.within);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a look has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look<T> {
    /// What was waited for.
    Found(T),
    /// Something else; said when time is over.
    NotYet(String),
}

impl<T> Look<T> {
    /// Found, if there is something.
    pub fn of(value: Option<T>, otherwise: impl FnOnce() -> String) -> Self {
        value.map_or_else(|| Self::NotYet(otherwise()), Self::Found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_last_is_told_when_time_is_over() {
        let mut looks = 0;
        let outcome = Patience::of(Duration::ZERO).until::<()>("a sign", || {
            looks += 1;
            Ok(Look::NotYet(format!("look {looks}")))
        });
        assert_eq!(outcome.unwrap_err().to_string(), "a sign: not within 0ns; last seen: look 1");
    }

    #[test]
    fn an_error_is_not_waited_out() {
        let outcome = Patience::endless().until::<()>("a sign", || anyhow::bail!("gone"));
        assert_eq!(outcome.unwrap_err().to_string(), "gone");
    }
}
