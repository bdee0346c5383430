//! Time as a value.
//!
//! Cores never ask what time it is: they are told. [`Tick`] is the monotonic time they are told, [`EpochMillis`] the
//! wall clock and the event time. Shells ask a [`Clock`], of which a simulation has its own.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on a monotonic clock, in nanoseconds since that clock's start. Arithmetic saturates: a deadline that
/// would lie beyond the end of time is the end of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The clock's start.
    pub const ZERO: Self = Self(0);
    /// The end of time: a deadline that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment this many nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment this many milliseconds after the clock's start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the clock's start.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long after `earlier` this is; zero if it is before it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Tick {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Tick {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z, before it negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EpochMillis(pub i64);

/// What a shell asks for the time. One clock serves a whole process.
pub trait Clock: Send + Sync + 'static {
    /// The monotonic time: for deadlines and durations.
    fn now(&self) -> Tick;

    /// The wall clock: for people, for event time and for epochs, never for judging.
    fn wall(&self) -> EpochMillis;
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Tick {
        (**self).now()
    }

    fn wall(&self) -> EpochMillis {
        (**self).wall()
    }
}

#[cfg(feature = "tokio")]
pub use tokio_clock::TokioClock;

#[cfg(feature = "tokio")]
mod tokio_clock {
    use super::{Clock, EpochMillis, Tick};
    use std::time::Duration;

    /// The clock of programs on tokio. Where tokio's clock is paused, so is this one, the wall clock included.
    #[derive(Debug, Clone)]
    pub struct TokioClock {
        start: tokio::time::Instant,
        wall_at_start: EpochMillis,
    }

    impl TokioClock {
        /// A clock that starts now, with the machine's wall clock.
        #[must_use]
        // The one place where a program's clocks are read.
        #[allow(clippy::disallowed_methods)]
        pub fn start() -> Self {
            let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let millis = since_1970.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
            Self::start_at(EpochMillis(millis))
        }

        /// A clock that starts now and takes the wall clock to stand at `wall`: for simulations.
        #[must_use]
        pub fn start_at(wall: EpochMillis) -> Self {
            Self { start: tokio::time::Instant::now(), wall_at_start: wall }
        }

        /// The moment `at` as tokio's timers want it.
        #[must_use]
        pub fn instant(&self, at: Tick) -> tokio::time::Instant {
            // A century stands for "never": tokio cannot represent the end of time.
            let offset = Duration::from_nanos(at.as_nanos()).min(Duration::from_secs(3_155_760_000));
            self.start + offset
        }

        /// Waits until `at`.
        pub async fn sleep_until(&self, at: Tick) {
            tokio::time::sleep_until(self.instant(at)).await;
        }
    }

    impl Clock for TokioClock {
        fn now(&self) -> Tick {
            Tick::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
        }

        fn wall(&self) -> EpochMillis {
            let elapsed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
            EpochMillis(self.wall_at_start.0.saturating_add(elapsed))
        }
    }
}
