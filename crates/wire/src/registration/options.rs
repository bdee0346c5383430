//! How long a registration waits for what.

use std::time::Duration;

/// The settings of a registration.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistrationOptions {
    /// How long the first attempt may take; 100 ms. Each attempt that hits its deadline is followed at once by one
    /// with the double (Flink: `cluster.registration.initial-timeout`).
    pub initial_timeout: Duration,
    /// The most an attempt may take; 30 s (Flink: `cluster.registration.max-timeout`).
    pub max_timeout: Duration,
    /// Pauses after a connection that failed, or any other error; 50 ms to 1 s. Flink pauses 10 s
    /// (`cluster.registration.error-delay`), which makes starts slow.
    pub error_pause: Backoff,
    /// Pauses after the peer answered "not now", or speaks another protocol; 500 ms to 10 s (Flink:
    /// `cluster.registration.refused-registration-delay`, 30 s).
    pub refused_pause: Backoff,
    /// Every pause is lengthened or shortened by up to this part of itself; 0.2, less than 1. It keeps thousands from
    /// coming back in one moment.
    pub jitter: f64,
}

impl Default for RegistrationOptions {
    fn default() -> Self {
        Self {
            initial_timeout: Duration::from_millis(100),
            max_timeout: Duration::from_secs(30),
            error_pause: Backoff { initial: Duration::from_millis(50), max: Duration::from_secs(1) },
            refused_pause: Backoff { initial: Duration::from_millis(500), max: Duration::from_secs(10) },
            jitter: 0.2,
        }
    }
}

/// Pauses that double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub initial: Duration,
    /// The longest.
    pub max: Duration,
}

impl Backoff {
    /// The pause after one of length `pause`.
    pub(super) fn after(self, pause: Duration) -> Duration {
        pause.saturating_mul(2).min(self.max)
    }
}
