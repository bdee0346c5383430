//! Asking a program's parts to end.
//!
//! One [`Shutdown`] is triggered once; everything that runs holds a [`ShutdownSignal`] and waits for it beside its
//! work. It carries no deadline: whoever triggers it decides how long it waits for the parts.

use std::sync::Arc;
use tokio::sync::watch;

/// The side that asks. Clones are the same shutdown; when the last one is dropped, nobody could ask any more, and that
/// counts as asking: nothing waits for ever.
///
/// ```
/// use runtime_core::shutdown::Shutdown;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let shutdown = Shutdown::new();
/// let mut signal = shutdown.signal();
/// let part = tokio::spawn(async move {
///     signal.wait().await;
///     "ended"
/// });
/// assert!(shutdown.trigger());
/// assert!(!shutdown.trigger(), "only the first call triggers");
/// assert_eq!(part.await.unwrap(), "ended");
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Shutdown {
    triggered: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A shutdown that nobody has asked for yet.
    #[must_use]
    pub fn new() -> Self {
        Self { triggered: Arc::new(watch::Sender::new(false)) }
    }

    /// Asks everyone to end. Returns whether this was the first call.
    pub fn trigger(&self) -> bool {
        !self.triggered.send_replace(true)
    }

    /// Whether it has been asked for.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.triggered.borrow()
    }

    /// A signal to hand to a part.
    #[must_use]
    pub fn signal(&self) -> ShutdownSignal {
        ShutdownSignal { triggered: self.triggered.subscribe() }
    }
}

/// The side that is asked: cheap to clone.
#[derive(Debug, Clone)]
pub struct ShutdownSignal {
    triggered: watch::Receiver<bool>,
}

impl ShutdownSignal {
    /// Ends when the shutdown is triggered, at once if it has been. Safe to drop and to call again (it may stand in a
    /// `select!`).
    pub async fn wait(&mut self) {
        // An error says that every `Shutdown` is gone, which counts as triggered.
        let _ = self.triggered.wait_for(|triggered| *triggered).await;
    }

    /// Whether the shutdown has been triggered, without waiting.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.triggered.borrow() || self.triggered.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_taken_after_the_trigger_ends_at_once() {
        let shutdown = Shutdown::new();
        shutdown.trigger();
        let mut signal = shutdown.signal();
        assert!(signal.is_triggered());
        signal.wait().await;
        signal.wait().await;
    }

    #[tokio::test]
    async fn the_last_dropped_shutdown_counts_as_triggered() {
        let shutdown = Shutdown::new();
        let (mut signal, other) = (shutdown.signal(), shutdown.clone());
        drop(shutdown);
        assert!(!signal.is_triggered());
        drop(other);
        assert!(signal.is_triggered());
        signal.wait().await;
    }
}
