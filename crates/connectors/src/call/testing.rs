//! What the tests of several calls need.

use job::idempotency::IdempotencyKey;
use job::record::{JsonRecord, Origin};
use runtime_core::JobId;

use super::CallRequest;

/// A first attempt at a record.
pub(super) fn request(record: &str) -> CallRequest {
    let origin = Origin { file: "in.jsonl".into(), line: 1, offset: 0, split_start: 0 };
    let idempotency_key = IdempotencyKey::of(JobId::from_u128(1), "step", &origin);
    let record = JsonRecord::parse(record.to_owned().into(), origin).unwrap();
    CallRequest { record, idempotency_key, attempt: 1, deadline: None }
}
