//! The clock that goes on while the machine sleeps.

use runtime_core::Tick;
use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was booted, time in which it was suspended included. The monotonic clock that everything
/// else goes by stands still then.
#[must_use]
pub fn boot_clock() -> Tick {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Tick::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let before = boot_clock();
        assert!(before > Tick::ZERO && boot_clock() >= before);
    }
}
