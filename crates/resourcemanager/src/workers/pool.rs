//! How many workers there are to be, and which: a pure state machine.
//!
//! Flink: `ActiveResourceManager` with the `DeclarativeSlotManager`'s `TaskManagerTracker`. It is told what jobs lack
//! ([`Demand`]) and what becomes of each worker; it says whom to start and whom to stop. A worker that is on its way
//! counts as the slots that it will bring, so that nothing is started twice; and one that may run tasks is never stopped
//! for being too many: only a worker that was free for a while is.

mod balance;
mod options;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use runtime_core::{ResourceId, Tick};

use super::StartPace;
pub use options::PoolOptions;

/// Changes within this time are seen as one (Flink: `resourcemanager.declare-needed-resource.delay`): a job that is restarted
/// gives slots back and needs them again in one moment.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// A worker that ends sooner after its registration has not settled: it counts as one that could not be started.
const SETTLED: Duration = Duration::from_secs(10);

/// What the jobs need and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// Slots that jobs need and that nobody has for them.
    pub missing: u32,
    /// Free slots of those who are registered.
    pub free: u32,
    /// All slots of those who are registered.
    pub total: u32,
    /// Whether any slot is a job's.
    pub in_use: bool,
}

/// Why a worker is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// What it was started for is needed no more.
    NotNeeded,
    /// It had nothing to do for this long.
    Idle(Duration),
    /// It has not registered within this time.
    NotRegistered(Duration),
    /// It is given up.
    Lost,
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolEffect {
    /// Start a worker of this name.
    Start(ResourceId),
    /// Stop it.
    Stop(ResourceId, StopReason),
    /// Tell people that no further worker may be started, although one is needed.
    Full(String),
}

/// What the end of a worker was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It was asked to.
    Expected,
    /// Its start has failed.
    Failed,
    /// It was there and is gone.
    Lost,
    /// It is not of this pool.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The driver was asked for it.
    Requested,
    /// It has its place, and runs from now on.
    Allocated { since: Tick },
    /// Of an earlier life of the resource manager. It may run tasks, and has yet to register here.
    Recovered { since: Tick },
    /// It is there. `idle` says since when it has no job.
    Registered { since: Tick, idle: Option<Tick> },
    /// It was registered. It ends, or will register again; meanwhile it may run tasks.
    Left { since: Tick },
    /// It was told to stop.
    Stopping,
}

/// The workers of a driver.
#[derive(Debug)]
pub struct WorkerPool {
    options: PoolOptions,
    name: String,
    named: u64,
    workers: BTreeMap<ResourceId, Phase>,
    pace: StartPace,
    demand: Demand,
    check_at: Option<Tick>,
    recovering_until: Option<Tick>,
    full: Option<String>,
    last_failure: Option<String>,
    effects: Vec<PoolEffect>,
}

impl WorkerPool {
    /// A pool without workers. Each is named `NAME-N`, so `name` is never to be used again.
    #[must_use]
    pub fn new(options: PoolOptions, name: impl Into<String>) -> Self {
        Self {
            pace: StartPace::new(options.max_start_failure_rate, options.start_retry_interval),
            options,
            name: name.into(),
            named: 0,
            workers: BTreeMap::new(),
            demand: Demand::default(),
            check_at: None,
            recovering_until: None,
            full: None,
            last_failure: None,
            effects: Vec::new(),
        }
    }

    /// Takes up workers of an earlier life. None is started before they have registered, or the recovery timeout is over:
    /// what they hold is not known before (C-134).
    pub fn recover(&mut self, ids: impl IntoIterator<Item = ResourceId>, now: Tick) {
        self.workers.extend(ids.into_iter().map(|id| (id, Phase::Recovered { since: now })));
        if !self.workers.is_empty() {
            self.recovering_until = Some(now + self.options.recovery_timeout);
            self.check_soon(now);
        }
    }

    /// What is to be done now. Empties the list.
    pub fn take_effects(&mut self) -> Vec<PoolEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether a task executor of this name may register.
    #[must_use]
    pub fn accepts(&self, id: &ResourceId) -> bool {
        self.workers.get(id).is_some_and(|phase| *phase != Phase::Stopping)
    }

    /// Whether a worker of this name was started, or taken up, and has not ended.
    #[must_use]
    pub fn knows(&self, id: &ResourceId) -> bool {
        self.workers.contains_key(id)
    }

    /// What the jobs need now.
    pub fn observe(&mut self, demand: Demand, now: Tick) {
        if demand != self.demand {
            self.demand = demand;
            self.check_soon(now);
        }
    }

    /// The driver has a place for it: the time to register in begins (not with the request, which may wait for room).
    pub fn started(&mut self, id: &ResourceId, now: Tick) {
        if let Some(phase @ Phase::Requested) = self.workers.get_mut(id) {
            *phase = Phase::Allocated { since: now };
        }
    }

    /// It is there, with its slots.
    pub fn registered(&mut self, id: &ResourceId, now: Tick) {
        match self.workers.get_mut(id) {
            None | Some(Phase::Stopping | Phase::Registered { .. }) => {}
            Some(phase) => {
                *phase = Phase::Registered { since: now, idle: None };
                self.last_failure = None;
                self.check_soon(now);
            }
        }
    }

    /// Its registration has ended and it may live on: it does not count until it registers again.
    pub fn left(&mut self, id: &ResourceId, now: Tick) {
        if let Some(phase @ Phase::Registered { .. }) = self.workers.get_mut(id) {
            *phase = Phase::Left { since: now };
            self.check_soon(now);
        }
    }

    /// It is not to be waited for any more, whatever it does (FLINK-24377).
    pub fn give_up(&mut self, id: &ResourceId, now: Tick) {
        self.stop(id, StopReason::Lost, now);
    }

    /// Whether a registered one has nothing to do.
    pub fn set_idle(&mut self, id: &ResourceId, is_idle: bool, now: Tick) {
        if let Some(Phase::Registered { idle, .. }) = self.workers.get_mut(id) {
            *idle = is_idle.then(|| idle.unwrap_or(now));
        }
    }

    /// It has ended, or was never started: nothing of it is left.
    pub(crate) fn ended(&mut self, id: &ResourceId, cause: &str, now: Tick) -> End {
        let Some(phase) = self.workers.remove(id) else { return End::Unknown };
        self.check_soon(now);
        let failed = match phase {
            Phase::Stopping => return End::Expected,
            Phase::Requested | Phase::Allocated { .. } => true,
            Phase::Registered { since, .. } => now.since(since) < SETTLED,
            Phase::Recovered { .. } | Phase::Left { .. } => false,
        };
        if !failed {
            return End::Lost;
        }
        self.failed(cause.to_owned(), now);
        End::Failed
    }

    /// Lets time pass.
    pub fn advance(&mut self, now: Tick) {
        self.stop_unregistered(now);
        self.stop_idle(now);
        if self.check_at.is_some_and(|at| at <= now) {
            self.check_at = None;
            self.balance(now);
        }
    }

    /// When [`Self::advance`] has something to do next.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        let unregistered = self.workers.values().filter_map(|phase| self.registration_deadline(*phase));
        unregistered.chain(self.next_idle()).chain(self.check_at).min()
    }

    /// Workers that are wanted and have not registered yet (Flink: `numPendingTaskManagers`).
    #[must_use]
    pub fn pending(&self) -> u32 {
        self.count(|phase| {
            matches!(phase, Phase::Requested | Phase::Allocated { .. } | Phase::Recovered { .. })
        })
    }

    /// Workers that have registered.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.count(|phase| matches!(phase, Phase::Registered { .. }))
    }

    /// Failed starts of the last minute, by the second.
    #[must_use]
    pub fn failures_per_second(&self, now: Tick) -> f64 {
        self.pace.failures_per_second(now)
    }

    /// Why jobs lack slots and get none, as far as it is known.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        let failing = self.last_failure.as_deref().filter(|_| self.demand.missing > 0);
        self.full.as_deref().or(failing)
    }

    /// The workers that nobody will miss when the resource manager stops: those without a job.
    pub fn without_a_job(&self) -> impl Iterator<Item = &ResourceId> {
        let idle = |phase: &Phase| {
            matches!(
                phase,
                Phase::Requested | Phase::Allocated { .. } | Phase::Registered { idle: Some(_), .. }
            )
        };
        self.workers.iter().filter(move |(_, phase)| idle(phase)).map(|(id, _)| id)
    }

    fn count(&self, which: impl Fn(&Phase) -> bool) -> u32 {
        u32::try_from(self.workers.values().filter(|phase| which(phase)).count()).unwrap_or(u32::MAX)
    }

    fn failed(&mut self, cause: String, now: Tick) {
        self.pace.failed(now);
        self.last_failure = Some(cause);
    }

    fn stop(&mut self, id: &ResourceId, why: StopReason, now: Tick) {
        if let Some(phase) = self.workers.get_mut(id).filter(|phase| **phase != Phase::Stopping) {
            *phase = Phase::Stopping;
            self.effects.push(PoolEffect::Stop(id.clone(), why));
            self.check_soon(now);
        }
    }

    fn check_soon(&mut self, now: Tick) {
        self.check_by(now + DEBOUNCE);
    }

    fn check_by(&mut self, at: Tick) {
        self.check_at = Some(self.check_at.map_or(at, |earlier| earlier.min(at)));
    }
}
