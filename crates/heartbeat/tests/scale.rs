//! A hundred thousand targets, and coming and going: minutes in debug builds, so only with `cargo xtask test --slow`.
// The machine's clock is what is measured with.
#![allow(clippy::disallowed_methods)]
// What sets a test up may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use heartbeat::{Effect, HeartbeatManager, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices};
use runtime_core::Tick;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use support::{ms, wall};

/// Both tests look at the memory of the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Resident bytes of this process.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

#[test]
#[ignore = "100,000 targets for a simulated minute"]
fn h080_a_hundred_thousand_targets_cost_a_quarter_of_a_core_at_most() {
    let _alone = ALONE.lock();
    let targets = 100_000_u64;
    let options = HeartbeatOptions {
        suspicion: true,
        own_stall_guard: true,
        hold: true,
        ..HeartbeatOptions::default()
    };
    let services = HeartbeatServices::new(options).unwrap();
    let mut sender: HeartbeatManagerSender<u64, u64> = services.create_heartbeat_manager_sender("peer");
    let before = resident();
    for id in 0..targets {
        sender.monitor_target(id, 1, ms(0));
    }
    let bytes = (resident() - before) / targets;
    assert!(bytes <= 200, "{bytes} bytes a target");

    let (begin, simulated) = (Instant::now(), Duration::from_secs(60));
    let mut now = ms(0);
    let mut beats = 0_u64;
    while now < Tick::ZERO + simulated {
        for effect in sender.advance(now) {
            let Effect::Request { id, incarnation } = effect else { panic!("nobody is silent: {effect:?}") };
            sender.receive_heartbeat(&id, &incarnation, now, wall(0));
            beats += 1;
        }
        now = now + Duration::from_millis(5);
    }
    let share = begin.elapsed().as_secs_f64() / simulated.as_secs_f64();
    println!(
        "{bytes} bytes a target, {beats} heartbeats in a simulated minute, {:.1} % of a core",
        share * 100.0
    );
    assert!(beats >= 500_000, "{beats}");
    assert!(share < 0.25, "{:.1} % of a core", share * 100.0);
    assert_eq!(sender.metrics().timeouts.get(), 0);
}

#[test]
#[ignore = "300,000 targets come and go"]
fn h082_coming_and_going_leaves_nothing_behind() {
    let _alone = ALONE.lock();
    let services = HeartbeatServices::new(HeartbeatOptions::default()).unwrap();
    let mut manager: HeartbeatManager<u64, u64> = services.create_heartbeat_manager("peer");
    let (mut next, mut settled) = (0_u64, 0);
    for second in 0..60_u64 {
        for n in 0..5_000 {
            let now = ms(second * 1_000 + n / 5);
            manager.monitor_target(next, 1, now);
            // A thousand are there at any time; the others have gone, long before their timers were due.
            if let Some(gone) = next.checked_sub(1_000) {
                assert!(manager.unmonitor_target(&gone));
            }
            next += 1;
            assert_eq!(manager.advance(now), []);
        }
        if second == 9 {
            settled = resident();
        }
    }
    let grown = resident().saturating_sub(settled);
    assert!(grown < 256 << 10, "grown by {grown} bytes in 50 s");
    assert_eq!(manager.targets().count(), 1_000);
    for gone in next - 1_000..next {
        assert!(manager.unmonitor_target(&gone));
    }
    assert_eq!(manager.next_wakeup(), None, "no timer is left");
}
