//! Work that comes back: one chain of ticks a tag. A pure structure: the time is passed in.
//!
//! The next tick is put when one starts, before its handler can fail and whatever becomes of it, so that nothing but the
//! end of the loop, a new epoch or its tag ends a chain. (Kafka: a migration hung for ever because its poll event failed
//! once and was not put again.) The moments are those of the schedule, not of the handlers' ends, and a tick that is
//! missed is left out: at most one of a chain waits.

use crate::event::Event;
use crate::tag::Tag;
use runtime_core::Tick;
use std::collections::HashMap;
use std::time::Duration;

/// Kafka: after an unexpected failure a periodic task is put again a minute later.
pub(crate) const RETRY: Duration = Duration::from_secs(60);

pub(crate) type MakeEvent<E> = Box<dyn FnMut() -> E + Send>;

struct Chain<E> {
    tag: Tag,
    period: Duration,
    retry: Duration,
    /// When the tick is due that waits now.
    due: Tick,
    make: MakeEvent<E>,
}

pub(crate) struct Periodics<E: Event> {
    chains: HashMap<u64, Chain<E>>,
    last: u64,
}

impl<E: Event> Default for Periodics<E> {
    fn default() -> Self {
        Self { chains: HashMap::new(), last: 0 }
    }
}

impl<E: Event> Periodics<E> {
    /// Begins a chain, in place of the one with the same tag. The first tick is due at `due`.
    pub(crate) fn begin(
        &mut self,
        tag: Tag,
        due: Tick,
        period: Duration,
        retry: Duration,
        make: MakeEvent<E>,
    ) -> u64 {
        self.chains.retain(|_, chain| chain.tag != tag);
        self.last += 1;
        self.chains.insert(self.last, Chain { tag, period, retry, due, make });
        self.last
    }

    /// The tick that follows one that starts now.
    pub(crate) fn next(&mut self, chain: u64, now: Tick) -> Option<(Tag, Tick, E)> {
        let chain = self.chains.get_mut(&chain)?;
        let event = (chain.make)();
        chain.due = after(chain.due, chain.period, now);
        Some((chain.tag.clone(), chain.due, event))
    }

    /// When the tick that waits is to come, now that the one before it has failed.
    pub(crate) fn after_failure(&mut self, chain: u64, now: Tick) -> Option<(Tag, Tick)> {
        let chain = self.chains.get_mut(&chain)?;
        chain.due = chain.due.max(now + chain.retry);
        Some((chain.tag.clone(), chain.due))
    }

    /// Ends every chain.
    pub(crate) fn end_all(&mut self) -> Vec<(u64, Tag)> {
        self.chains.drain().map(|(chain, Chain { tag, .. })| (chain, tag)).collect()
    }
}

/// The first moment of the schedule after `now`.
fn after(due: Tick, period: Duration, now: Tick) -> Tick {
    let next = due + period;
    if next > now {
        return next;
    }
    let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
    let missed = (now.as_nanos() - due.as_nanos()) / period;
    due + Duration::from_nanos(missed.saturating_mul(period)) + Duration::from_nanos(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_kept_and_missed_moments_are_left_out() {
        let at = Tick::from_nanos;
        let period = Duration::from_nanos(100);
        assert_eq!(after(at(100), period, at(100)), at(200));
        assert_eq!(after(at(100), period, at(199)), at(200));
        assert_eq!(after(at(100), period, at(200)), at(300));
        assert_eq!(after(at(100), period, at(1_050)), at(1_100));
        assert!(after(at(100), Duration::ZERO, at(100)) > at(100));
        assert_eq!(after(Tick::MAX, period, Tick::MAX), Tick::MAX);
    }
}
