//! Who is alive: heartbeat managers, monitors and failure detectors.
//!
//! Two components watch each other. The *active* one asks at an interval, the *passive* one answers; each arms a timeout
//! per target that every sign of life moves, and each counts calls that were refused. Silence for the whole timeout, or
//! `rpc_failure_threshold` refused calls in a row, is a [`Verdict`], and a target gets at most one (Flink:
//! `HeartbeatManagerImpl`, `HeartbeatManagerSenderImpl`, with their names and defaults kept).
//!
//! Everything here is a core: no socket, no clock, no task, no lock. The owner passes the time in, carries the effects out, and
//! asks when to come back. So heartbeats are judged on the owner's own loop. They may be *noted* on any other thread.
//!
//! ```
//! use heartbeat::{Effect, HeartbeatOptions, HeartbeatServices};
//! use runtime_core::{EpochMillis, Incarnation, Tick};
//!
//! let services = HeartbeatServices::new(HeartbeatOptions::default())?; // 10 s, 50 s, 2 refused calls
//! let mut sender = services.create_heartbeat_manager_sender("worker");
//! let (worker, life) = ("worker-1", Incarnation::from_u128(7));
//! sender.monitor_target(worker, life, Tick::ZERO);
//! assert!(matches!(sender.advance(Tick::ZERO)[..], [Effect::Request { id: "worker-1", .. }]));
//!
//! // The worker answers once and then falls silent; the owner sleeps until `next_wakeup` and advances.
//! sender.receive_heartbeat(&worker, &life, Tick::from_millis(100), EpochMillis(1_700_000_000_100));
//! let effects = sender.advance(Tick::from_millis(50_100));
//! let Some(Effect::Verdict(verdict)) = effects.last() else { panic!("silent for 50 s") };
//! assert_eq!(verdict.to_string(), "heartbeat of worker worker-1 timed out: last heard 50.0 s ago, 0 failed calls");
//! # Ok::<(), heartbeat::OptionError>(())
//! ```
//!
//! # Parts
//!
//! | part | for |
//! |---|---|
//! | [`HeartbeatServices`] | checked options, and the factory of managers |
//! | [`HeartbeatManager`] | the passive side: timeouts, and the outcomes of its answers |
//! | [`HeartbeatManagerSender`] | the active side: the same, and when to ask whom |
//! | [`HeartbeatMonitor`] | the state machine of one target |
//! | [`HeartbeatExchange`] | a manager with its targets and listener: the original's calls, answered by futures |
//! | [`HeartbeatTarget`], [`HeartbeatListener`] | what an exchange calls: the peer, and the owner |
//! | [`HeartbeatMetrics`] | what was received, dropped, asked and judged |
//! | [`HeartbeatHandle`] | stamps one target from any thread: one store |
//! | [`LivenessFrame`], [`LivenessSource`] | signs of life from beside the main loop, with its age |
//! | [`PayloadOutbox`], [`PayloadInbox`] | what there is to report, apart, versioned and within a budget |
//! | [`SelfFence`], [`Suspends`] | the lease of the side that is watched, also on a machine that sleeps |
//! | [`OwnStallGuard`], [`CorrelatedLoss`], [`Gaps`], [`LocalHealth`] | the judgements beyond the timeout, each alone |
//! | [`InMemoryNetwork`] | links that can be cut, for tests |
//!
//! # What can be switched on
//!
//! | option | what it changes |
//! |---|---|
//! | `own_stall_guard` | while the owner stood still nobody was silent, and what came meanwhile is read before anybody is judged |
//! | `suspicion` | a target that missed an answer or refused a call is a suspect until it is heard |
//! | `hold` | verdicts wait once when most targets fall silent together |
//! | `detector` | a regular target is dead after three intervals of silence |
//! | `stuck_timeout` | how long the main loop of a target that answers may stand |
//! | `self_fence` | the side that is watched stops before it may be given up |
//!
//! Without them the rules are the original's to the letter.
//!
//! # What is different from the original
//!
//! - Targets have an incarnation. To monitor a new one replaces the old; what the old one still says is counted and dropped.
//! - A heartbeat stores the time and touches no timer: a timer that fires too early is armed again for the remainder.
//! - The first request goes out at once, the later ones keep places that are spread over the interval.
//! - A target that was judged is not asked any more, and one target's trouble never stops the others' requests.
//! - The placeholder manager for the time before a start is `Option::None`.
//!
//! What it does not do: it sends nothing, it does not know why a call failed (its caller says so as an [`RpcOutcome`]),
//! and it does not react to a verdict.

mod correlated;
mod detector;
mod exchange;
mod fence;
mod frame;
mod health;
mod index;
mod listener;
mod liveness;
mod manager;
mod metrics;
mod monitor;
mod network;
mod options;
mod outcome;
mod payload;
mod services;
mod slab;
mod source;
mod spread;
mod stall;
mod stamp;
mod target;
mod verdict;
mod watch;
mod wheel;

pub use correlated::{CorrelatedLoss, Held};
pub use detector::{Detector, Gaps};
pub use exchange::{Call, HeartbeatExchange};
pub use fence::{SelfFence, Suspends};
pub use frame::{FrameError, LivenessFrame};
pub use health::LocalHealth;
pub use listener::HeartbeatListener;
pub use liveness::Liveness;
pub use manager::{HeartbeatManager, HeartbeatManagerSender};
pub use metrics::HeartbeatMetrics;
pub use monitor::{HeartbeatMonitor, Judgement, LastHeartbeat, MonitorState};
pub use network::{Arrived, InMemoryNetwork};
pub use options::{HeartbeatOptions, OptionError, OptionWarning};
pub use outcome::{CallEnd, RpcOutcome};
pub use payload::{Part, PayloadFrame, PayloadInbox, PayloadOutbox, PayloadReceived};
pub use services::{CountedServices, HeartbeatServices};
pub use source::{LivenessSource, Waiting};
pub use stall::OwnStallGuard;
pub use stamp::HeartbeatHandle;
pub use target::{Delivery, HeartbeatReceiver, HeartbeatSender, HeartbeatTarget};
pub use verdict::{OthersInTrouble, Reason, Verdict};
pub use watch::{Effect, Monitored, Received};
