//! How a process is: well, or unwell for reasons that its parts give.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

const START: &str = "start";

/// What the parts of a process say about themselves. Clones are the same.
#[derive(Debug, Clone)]
pub struct Health {
    reasons: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

/// The body of `/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) reasons: BTreeMap<&'static str, String>,
}

impl Default for Health {
    fn default() -> Self {
        Self::starting()
    }
}

impl Health {
    /// Unwell because it has not started yet, until [`started`](Self::started).
    #[must_use]
    pub fn starting() -> Self {
        let health = Self { reasons: Arc::default() };
        health.unwell(START, "not ready yet");
        health
    }

    /// The process serves.
    pub fn started(&self) {
        self.well(START);
    }

    /// A part is well, or well again.
    pub fn well(&self, part: &'static str) {
        self.lock().remove(part);
    }

    /// A part is unwell, and why, in words for an operator.
    pub fn unwell(&self, part: &'static str, reason: impl Into<String>) {
        self.lock().insert(part, reason.into());
    }

    /// Whether no part is unwell.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn report(&self) -> Report {
        let reasons = self.lock().clone();
        Report { status: if reasons.is_empty() { "ok" } else { "unwell" }, reasons }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_well_when_all_its_parts_are() {
        let health = Health::starting();
        assert!(!health.is_well());
        health.started();
        assert!(health.is_well());
        health.unwell("registration", "refused");
        health.unwell("disk", "full");
        health.well("disk");
        assert_eq!(health.report().reasons, BTreeMap::from([("registration", "refused".to_owned())]));
        health.clone().well("registration");
        assert_eq!(health.report().status, "ok");
    }
}
