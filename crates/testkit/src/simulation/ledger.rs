//! What the service outside the cluster was asked, as it remembers it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::ensure;
use connectors::call::CallRequest;

/// The records that were asked about, by idempotency key. A clone is the same ledger.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    asked: Arc<Mutex<BTreeMap<String, Asked>>>,
}

#[derive(Debug)]
struct Asked {
    line: Vec<u8>,
    times: u64,
    /// Keys that came with another record before.
    mixed_up: bool,
}

impl Ledger {
    /// Writes a request down.
    pub fn note(&self, request: &CallRequest) {
        let line = request.record.line().to_vec();
        let mut asked = self.lock();
        let entry = asked.entry(request.idempotency_key.to_string());
        let entry = entry.or_insert_with(|| Asked { line: line.clone(), times: 0, mixed_up: false });
        entry.times += 1;
        entry.mixed_up |= entry.line != line;
    }

    /// How many requests there were.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.lock().values().map(|asked| asked.times).sum()
    }

    /// Checks that each of `records` distinct records was asked about under one key of its own.
    ///
    /// # Errors
    /// A key came with two records, or a record with two keys, or not at all.
    pub fn check(&self, records: u64) -> anyhow::Result<()> {
        let asked = self.lock();
        let mut keys_of: BTreeMap<&[u8], &str> = BTreeMap::new();
        for (key, entry) in asked.iter() {
            let line = String::from_utf8_lossy(&entry.line);
            ensure!(!entry.mixed_up, "the key {key} came with another record than {line}");
            let other = keys_of.insert(&entry.line, key);
            ensure!(other.is_none(), "{line} was asked about as {key} and as {}", other.unwrap_or_default());
        }
        ensure!(keys_of.len() as u64 == records, "{} of {records} records were asked about", keys_of.len());
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
