//! The work, done by ours.
// A benchmark reads the machine's clock and waits on it: that is what it is for.
#![allow(clippy::disallowed_methods)]

use heartbeat::{Effect, HeartbeatManager, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices};
use runtime_core::{EpochMillis, ResourceId, Tick};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Enough that a run of the smallest size takes some milliseconds.
pub(crate) const BEATS: usize = 2_000_000;
/// The silence whose end is to be noticed, in [`lateness`].
pub(crate) const SILENCE: Duration = Duration::from_secs(2);
/// Simulated in [`cpu_share`], in steps of this.
const SIMULATED: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);
const INTERVAL: Duration = Duration::from_secs(10);

pub(crate) fn names(targets: usize) -> Vec<ResourceId> {
    (0..targets).map(|n| format!("worker-{n:06}").parse().unwrap()).collect()
}

pub(crate) fn shuffled(targets: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..targets).collect();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for i in (1..targets).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        order.swap(i, (random % (i as u64 + 1)) as usize);
    }
    order
}

fn services(timeout: Duration) -> HeartbeatServices {
    let interval = INTERVAL.min(timeout / 5);
    HeartbeatServices::new(HeartbeatOptions { interval, timeout, ..HeartbeatOptions::default() }).unwrap()
}

/// A manager and the names that it is to watch.
pub(crate) struct Ours {
    manager: HeartbeatManager<ResourceId, u64>,
    names: Vec<ResourceId>,
}

impl Ours {
    pub(crate) fn watching(names: Vec<ResourceId>) -> Self {
        Self { manager: services(Duration::from_secs(50)).create_heartbeat_manager("worker"), names }
    }

    pub(crate) fn watch_all(&mut self) {
        for name in &self.names {
            self.manager.monitor_target(name.clone(), 1, Tick::ZERO);
        }
    }
}

fn watching(names: &[ResourceId]) -> HeartbeatManager<ResourceId, u64> {
    let mut ours = Ours::watching(names.to_vec());
    ours.watch_all();
    ours.manager
}

/// Nanoseconds per heartbeat of a sender that has said its name. The names lie in the order in which they come, as they
/// do when they are read from a connection.
pub(crate) fn receive_by_id(names: &[ResourceId], order: &[usize]) -> f64 {
    let mut manager = watching(names);
    let coming: Vec<ResourceId> = order.iter().map(|&i| names[i].clone()).collect();
    let rounds = (BEATS / names.len()).max(1) as u64;
    let begin = Instant::now();
    for round in 1..=rounds {
        let now = Tick::from_millis(round);
        for name in &coming {
            black_box(manager.receive_heartbeat(name, &1, now, EpochMillis(0)));
        }
    }
    per_beat(begin, rounds, names.len())
}

/// The same where the connection keeps the handle of its peer.
pub(crate) fn receive_by_handle(names: &[ResourceId], order: &[usize]) -> f64 {
    let manager = watching(names);
    let coming: Vec<_> = order.iter().map(|&i| manager.handle(&names[i]).unwrap()).collect();
    let rounds = (BEATS / names.len()).max(1) as u64;
    let begin = Instant::now();
    for round in 1..=rounds {
        let now = Tick::from_millis(round);
        for handle in &coming {
            black_box(handle.receive_heartbeat(now));
        }
    }
    per_beat(begin, rounds, names.len())
}

pub(crate) fn per_beat(begin: Instant, rounds: u64, targets: usize) -> f64 {
    begin.elapsed().as_nanos() as f64 / (rounds as f64 * targets as f64)
}

/// Asks every target once an interval of 10 s on a simulated clock, has each answer, with every guard on. Share of a
/// core: the time that took, by the time that was simulated.
pub(crate) fn cpu_share(names: &[ResourceId]) -> f64 {
    let options = HeartbeatOptions {
        suspicion: true,
        own_stall_guard: true,
        hold: true,
        ..HeartbeatOptions::default()
    };
    let services = HeartbeatServices::new(options).unwrap();
    let mut manager: HeartbeatManagerSender<ResourceId, u64> =
        services.create_heartbeat_manager_sender("worker");
    for name in names {
        manager.monitor_target(name.clone(), 1, Tick::ZERO);
    }
    let (mut now, mut begin) = (Tick::ZERO, Instant::now());
    // The first two intervals spread the requests.
    let measured_from = Tick::ZERO + INTERVAL * 2;
    while now < measured_from + SIMULATED {
        if now == measured_from {
            begin = Instant::now();
        }
        for effect in manager.advance(now) {
            let Effect::Request { id, incarnation } = effect else { panic!("nobody was silent: {effect:?}") };
            manager.receive_heartbeat(&id, &incarnation, now, EpochMillis(0));
        }
        now = now + STEP;
    }
    100.0 * begin.elapsed().as_secs_f64() / SIMULATED.as_secs_f64()
}

/// Hears each target once, spread over a second, and then no more: by how many milliseconds after two seconds of silence
/// 99 of 100 are declared dead.
pub(crate) fn lateness(names: &[ResourceId], order: &[usize]) -> f64 {
    let start = Instant::now();
    let now = || Tick::from_nanos(start.elapsed().as_nanos() as u64);
    let mut manager: HeartbeatManager<ResourceId, u64> = services(SILENCE).create_heartbeat_manager("worker");
    for name in names {
        manager.monitor_target(name.clone(), 1, now());
    }
    let begin = now();
    for (k, &i) in order.iter().enumerate() {
        let due = begin + Duration::from_secs(1).mul_f64(k as f64 / names.len() as f64);
        while now() < due {
            std::hint::spin_loop();
        }
        manager.receive_heartbeat(&names[i], &1, now(), EpochMillis(0));
    }
    let mut late = Vec::with_capacity(names.len());
    while let Some(wakeup) = manager.next_wakeup() {
        std::thread::sleep(wakeup.since(now()));
        let verdicts = manager.advance(now());
        let seen = now();
        let late_by =
            |silence: Duration, judged: Tick| (silence + seen.since(judged)).saturating_sub(SILENCE);
        late.extend(verdicts.into_iter().filter_map(Effect::verdict).map(|v| late_by(v.silent_for, seen)));
    }
    p99_millis(late)
}

pub(crate) fn p99_millis(mut late: Vec<Duration>) -> f64 {
    late.sort_unstable();
    late.get(late.len() * 99 / 100).map_or(f64::NAN, |late| late.as_secs_f64() * 1e3)
}
