//! The factory of managers.

use crate::fence::SelfFence;
use crate::manager::{HeartbeatManager, HeartbeatManagerSender};
use crate::metrics::HeartbeatMetrics;
use crate::options::{HeartbeatOptions, OptionError, OptionWarning};
use crate::watch::{Terms, Watch};
use runtime_core::Tick;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Checked options, of which an owner makes its managers, new ones for each term of leadership (Flink:
/// `HeartbeatServices`).
#[derive(Debug, Clone)]
pub struct HeartbeatServices {
    options: HeartbeatOptions,
    threshold: Option<u32>,
    warnings: Vec<OptionWarning>,
}

impl HeartbeatServices {
    /// Services with these options.
    ///
    /// # Errors
    /// The options contradict each other; see [`HeartbeatOptions::validate`].
    pub fn new(options: HeartbeatOptions) -> Result<Self, OptionError> {
        let warnings = options.validate()?;
        Ok(Self { options, threshold: options.threshold()?, warnings })
    }

    /// What is probably not meant: to be logged once, at the start.
    #[must_use]
    pub fn warnings(&self) -> &[OptionWarning] {
        &self.warnings
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &HeartbeatOptions {
        &self.options
    }

    /// The deadline of one heartbeat call: the general one, but at most an interval, so that calls to a peer that does
    /// not answer never pile up.
    #[must_use]
    pub fn rpc_deadline(&self, rpc_timeout: Duration) -> Duration {
        rpc_timeout.min(self.options.interval)
    }

    /// How often a peer is called in quick succession whose connection it has closed itself: as often as is enough for a
    /// verdict if each call is refused. Once, for what another life of it may answer, where refusals do not judge.
    #[must_use]
    pub const fn redials(&self) -> u32 {
        match self.threshold {
            Some(threshold) => threshold,
            None => 1,
        }
    }

    /// Checks the keep-alive of the transport: pings after `time` of idleness whose answers are waited for during `timeout`.
    ///
    /// # Errors
    /// A dead connection would be noticed no sooner than the verdict falls, and new calls would go into it until then.
    pub fn check_keep_alive(&self, time: Duration, timeout: Duration) -> Result<(), OptionError> {
        if time.saturating_add(timeout) < self.options.timeout {
            return Ok(());
        }
        Err(OptionError::KeepAliveTooLong { time, timeout, heartbeat_timeout: self.options.timeout })
    }

    /// A passive manager. `peer` says what its targets are, in verdicts and metrics: "task executor".
    #[must_use]
    pub fn create_heartbeat_manager<K: Clone + Eq + Hash, N: Clone + Eq>(
        &self,
        peer: &'static str,
    ) -> HeartbeatManager<K, N> {
        self.counted_by(&Arc::new(HeartbeatMetrics::new(peer))).create_heartbeat_manager()
    }

    /// An active manager. `peer` says what its targets are, in verdicts and metrics: "task executor".
    #[must_use]
    pub fn create_heartbeat_manager_sender<K: Clone + Eq + Hash, N: Clone + Eq>(
        &self,
        peer: &'static str,
    ) -> HeartbeatManagerSender<K, N> {
        self.counted_by(&Arc::new(HeartbeatMetrics::new(peer))).create_heartbeat_manager_sender()
    }

    /// The same for targets of which many may go at once with good reason: their verdicts never wait for each other.
    #[must_use]
    pub fn without_hold(&self) -> Self {
        Self { options: HeartbeatOptions { hold: false, ..self.options }, ..self.clone() }
    }

    /// A passive manager and an active one that count into the same metrics as others of their kind: for an owner that has
    /// one for each of many jobs and shows the sum.
    ///
    /// ```
    /// use heartbeat::{HeartbeatMetrics, HeartbeatServices};
    /// use runtime_core::Tick;
    /// use std::sync::Arc;
    ///
    /// let services = HeartbeatServices::new(Default::default())?;
    /// let metrics = Arc::new(HeartbeatMetrics::new("worker"));
    /// let mut jobs = [(), ()].map(|()| services.counted_by(&metrics).create_heartbeat_manager_sender());
    /// for job in &mut jobs {
    ///     job.monitor_target("worker-1", 1, Tick::ZERO);
    /// }
    /// assert_eq!(metrics.targets.get(), 2);
    /// jobs[0].stop();
    /// assert_eq!(metrics.targets.get(), 1);
    /// # Ok::<(), heartbeat::OptionError>(())
    /// ```
    #[must_use]
    pub const fn counted_by<'a>(&'a self, metrics: &'a Arc<HeartbeatMetrics>) -> CountedServices<'a> {
        CountedServices { services: self, metrics }
    }

    /// The passive side's lease, if it is switched on: what it does has to stop when the lease ends. `sent` is when it
    /// sent what the active side has answered, such as its registration.
    #[must_use]
    pub fn self_fence(&self, sent: Tick) -> Option<SelfFence> {
        self.options.self_fence.then(|| SelfFence::new(sent, self.options.timeout))
    }

    fn terms(&self, peer: &'static str, asks: bool) -> Terms {
        Terms { peer, asks, threshold: self.threshold, options: self.options }
    }
}

/// Services whose managers count into shared metrics.
#[derive(Debug, Clone, Copy)]
pub struct CountedServices<'a> {
    services: &'a HeartbeatServices,
    metrics: &'a Arc<HeartbeatMetrics>,
}

impl CountedServices<'_> {
    /// A passive manager.
    #[must_use]
    pub fn create_heartbeat_manager<K: Clone + Eq + Hash, N: Clone + Eq>(&self) -> HeartbeatManager<K, N> {
        HeartbeatManager::new(self.watch(false))
    }

    /// An active manager.
    #[must_use]
    pub fn create_heartbeat_manager_sender<K: Clone + Eq + Hash, N: Clone + Eq>(
        &self,
    ) -> HeartbeatManagerSender<K, N> {
        HeartbeatManagerSender::new(self.watch(true))
    }

    fn watch<K: Clone + Eq + Hash, N: Clone + Eq>(&self, asks: bool) -> Watch<K, N> {
        Watch::new(self.services.terms(self.metrics.peer(), asks), Arc::clone(self.metrics))
    }
}
