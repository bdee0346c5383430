//! The name under which a service may recognise a call that was made before.

use std::fmt;

use runtime_core::JobId;
use xxhash_rust::xxh3::Xxh3;

use crate::record::Origin;

/// Names the question that one step asks about one record: different for any two records, the same for every attempt,
/// restart, replay and restored savepoint. Printed as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(u128);

impl IdempotencyKey {
    /// `job` is the job that first read the record: a savepoint keeps it.
    #[must_use]
    pub fn of(job: JobId, step: &str, origin: &Origin) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&job.to_bytes());
        hash.update(&origin.offset.to_le_bytes());
        // The length keeps step and file apart.
        hash.update(&(step.len() as u64).to_le_bytes());
        hash.update(step.as_bytes());
        hash.update(origin.file.as_bytes());
        Self(hash.digest128())
    }

    /// The sixteen bytes, in the order in which they are printed.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn origin(file: &str, line: u64, offset: u64) -> Origin {
        Origin { file: file.into(), line, offset, split_start: 0 }
    }

    #[test]
    fn job_step_file_and_offset_all_count() {
        let job = JobId::from_u128(1);
        let at = origin("a", 1, 10);
        let keys: BTreeSet<IdempotencyKey> = [
            IdempotencyKey::of(job, "s", &at),
            IdempotencyKey::of(JobId::from_u128(2), "s", &at),
            IdempotencyKey::of(job, "sa", &origin("", 1, 10)),
            IdempotencyKey::of(job, "s", &origin("b", 1, 10)),
            IdempotencyKey::of(job, "s", &origin("a", 1, 11)),
        ]
        .into();
        assert_eq!(keys.len(), 5);
    }

    #[test]
    fn how_the_file_was_split_does_not_matter() {
        let job = JobId::from_u128(1);
        let other = Origin { line: 3, split_start: 7, ..origin("a", 1, 10) };
        assert_eq!(IdempotencyKey::of(job, "s", &origin("a", 1, 10)), IdempotencyKey::of(job, "s", &other));
    }

    #[test]
    fn it_is_printed_as_32_hex_digits() {
        let text = IdempotencyKey::of(JobId::from_u128(1), "s", &origin("a", 1, 10)).to_string();
        assert_eq!(text.len(), 32);
        assert!(text.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(IdempotencyKey(0xab).to_string(), "000000000000000000000000000000ab");
    }
}
