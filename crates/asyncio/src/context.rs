//! What a call may know of itself.

use std::fmt;
use std::time::Duration;

use runtime_core::Tick;

/// What one call may know of itself beside its input (Flink: what `RichAsyncFunction` lets its context say, plus the
/// attempt's number, the deadline and the key).
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options};
/// use runtime_core::{Record, StreamElement, Tick};
/// use std::time::Duration;
///
/// let options = Options::ordered().timeout(Duration::from_secs(2)).build()?;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options);
/// operator.push(StreamElement::Record(Record::new(7)), Tick::ZERO).unwrap();
/// let Some(Effect::Start { entry, .. }) = operator.next_effect() else { panic!("it starts") };
/// let context = operator.context(entry).unwrap();
/// assert_eq!(context.attempt(), 1);
/// assert_eq!(context.remaining(), Some(Duration::from_secs(2)));
/// assert_eq!(context.idempotency_key().to_string().len(), 32);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallContext {
    pub(crate) attempt: u32,
    pub(crate) started_at: Tick,
    pub(crate) deadline: Option<Tick>,
    pub(crate) identity: Identity,
}

impl CallContext {
    /// Which attempt this is, from 1. Attempts made before a restore count.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When nobody will wait for the call any more, by the clock that drives the operator: the end of the record's budget
    /// or of the attempt's time, whichever is first. Absent: never.
    #[must_use]
    pub const fn deadline(&self) -> Option<Tick> {
        self.deadline
    }

    /// How much time the call had when it started: what to give on as a time limit. Absent: any.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.started_at))
    }

    /// What tells the service that it has been asked this before.
    #[must_use]
    pub const fn idempotency_key(&self) -> IdempotencyKey {
        self.identity.key()
    }
}

/// Names a record to a service: the same for all its attempts, and for the attempts after a restore from a snapshot;
/// different for any two records of operators that differ in their
/// [scope](crate::OptionsBuilder::idempotency_scope). Records that follow the snapshot get their former keys again when the
/// input repeats them in their former order.
///
/// ```
/// use asyncio::IdempotencyKey;
///
/// let key = IdempotencyKey(0xab);
/// assert_eq!(format!("Idempotency-Key: {key}"), "Idempotency-Key: 000000000000000000000000000000ab");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(pub u128);

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What a record's idempotency key is made of: the operator that first took it in, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) scope: u64,
    pub(crate) sequence: u64,
}

impl Identity {
    /// Both halves are one-to-one, so that no two identities share a key.
    const fn key(self) -> IdempotencyKey {
        let scope = scramble(self.scope);
        let sequence = scramble(self.sequence ^ scope);
        IdempotencyKey(((scope as u128) << 64) | sequence as u128)
    }
}

/// The finaliser of SplitMix64: spreads neighbouring numbers over the whole range, one to one.
pub(crate) const fn scramble(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_record_and_by_scope() {
        let keys = (0..50).flat_map(|scope| (0..50).map(move |sequence| Identity { scope, sequence }.key()));
        let mut keys: Vec<IdempotencyKey> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 2500);
    }

    #[test]
    fn a_key_is_32_hex_digits_whatever_its_value() {
        assert_eq!(IdempotencyKey(0xab).to_string(), format!("{}ab", "0".repeat(30)));
    }
}
