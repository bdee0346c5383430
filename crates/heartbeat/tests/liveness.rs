//! Signs of life apart from the main loop: frames, handles, the passive side's lease, and callbacks that panic.
// What sets a test up may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use heartbeat::{
    CallEnd, Delivery, Effect, HeartbeatExchange, HeartbeatListener, HeartbeatManager, HeartbeatOptions,
    HeartbeatReceiver, HeartbeatServices, InMemoryNetwork, LivenessFrame, Reason, Received, RpcOutcome,
    Verdict,
};
use runtime_core::Tick;
use std::future::ready;
use std::time::Duration;
use support::{ms, services, wall};

fn frame(life: u32, sequence: u64, main_loop_age: u64) -> LivenessFrame<u32> {
    LivenessFrame {
        incarnation: life,
        sequence,
        sent_at: Tick::ZERO,
        main_loop_age: Duration::from_millis(main_loop_age),
        stall: Duration::ZERO,
        echo: None,
    }
}

fn manager(timeout: u64, stuck: u64) -> HeartbeatManager<&'static str, u32> {
    let options = HeartbeatOptions {
        interval: Duration::from_millis(timeout / 5),
        timeout: Duration::from_millis(timeout),
        stuck_timeout: Some(Duration::from_millis(stuck)),
        ..HeartbeatOptions::default()
    };
    let mut manager = HeartbeatServices::new(options).unwrap().create_heartbeat_manager("peer");
    manager.monitor_target("a", 1, ms(0));
    manager
}

#[test]
fn h072_a_peer_whose_loop_stands_is_alive_until_the_stuck_timeout_and_then_stuck() {
    for (stuck_timeout, verdict_at) in [(60_000, None), (10_000, Some(11_000_u64))] {
        let mut manager = manager(5_000, stuck_timeout);
        let mut verdicts = Vec::new();
        // Its loop blocks from 1 s to 31 s; the part that reads from the network answers once a second.
        for second in 1..=31_u64 {
            let age = (second - 1) * 1_000;
            manager.receive_frame(&"a", &frame(1, second, age), ms(second * 1_000));
            for at in (second * 1_000..(second + 1) * 1_000).step_by(250) {
                let told = manager.advance(ms(at)).into_iter().filter_map(Effect::verdict);
                verdicts.extend(told.map(|verdict| (at, verdict.reason)));
            }
            if verdicts.is_empty() {
                let shown = manager.liveness(&"a", ms(second * 1_000)).unwrap();
                assert_eq!(shown.main_loop_age, Some(Duration::from_millis(age)));
                assert_eq!(shown.as_str(), "ALIVE");
            }
        }
        match verdict_at {
            None => assert_eq!(verdicts, []),
            Some(first) => {
                let [(at, Reason::Stuck)] = verdicts[..] else { panic!("{verdicts:?}") };
                // It is looked at once a timeout at least.
                assert!((first..first + 5_000).contains(&at), "{at}");
            }
        }
    }
}

#[test]
fn a_stuck_verdict_says_so() {
    let mut manager = manager(5_000, 10_000);
    manager.receive_frame(&"a", &frame(1, 1, 12_000), ms(4_000));
    let told: Vec<_> = (4_000..10_000).flat_map(|at| manager.advance(ms(at))).collect();
    let [Effect::Verdict(verdict)] = &told[..] else { panic!("{told:?}") };
    assert!(
        verdict.to_string().starts_with("peer a is stuck: its main loop has not turned for 12.0 s"),
        "{verdict}"
    );
    assert_eq!(manager.liveness(&"a", ms(10_000)).unwrap().as_str(), "STUCK");
}

#[test]
fn h075_an_old_life_or_a_lower_number_is_dropped_counted_and_moves_no_timeout() {
    let mut manager = manager(500, 500);
    assert_eq!(manager.receive_frame(&"a", &frame(1, 5, 0), ms(100)), Received::Applied);
    for (life, sequence, received) in [
        (0, 6, Received::OtherIncarnation),
        (1, 5, Received::OldSequence),
        (1, 4, Received::OldSequence),
        (2, 9, Received::OtherIncarnation),
    ] {
        assert_eq!(
            manager.receive_frame(&"a", &frame(life, sequence, 0), ms(400)),
            received,
            "{life} {sequence}"
        );
    }
    assert_eq!(manager.receive_frame(&"x", &frame(1, 9, 0), ms(400)), Received::UnknownTarget);
    let metrics = manager.metrics();
    assert_eq!((metrics.from_other_incarnation.get(), metrics.old_sequence.get()), (2, 2));
    assert_eq!(manager.advance(ms(599)), []);
    assert_eq!(manager.advance(ms(600)).len(), 1, "500 ms after the one frame that counted");
}

#[test]
fn a_frame_through_a_handle_is_checked_alike() {
    let mut manager = manager(500, 500);
    let handle = manager.handle(&"a").unwrap();
    assert_eq!(handle.receive_frame(&frame(1, 2, 30), ms(100)), Received::Applied);
    assert_eq!(handle.receive_frame(&frame(1, 1, 0), ms(200)), Received::OldSequence);
    let shown = manager.liveness(&"a", ms(300)).unwrap();
    assert_eq!((shown.silent_for.as_millis(), shown.main_loop_age), (200, Some(Duration::from_millis(30))));
    manager.monitor_target("a", 2, ms(300));
    assert_eq!(handle.receive_heartbeat(ms(400)), Received::UnknownTarget, "the handle is of the old life");
    assert_eq!(manager.liveness(&"a", ms(400)).unwrap().silent_for.as_millis(), 100);
    assert_eq!(manager.handle(&"x").map(|_| ()), None);
}

#[test]
fn a_heartbeat_by_handle_while_the_owner_is_busy_is_seen_when_it_looks() {
    let mut manager = manager(500, 500);
    let handle = manager.handle(&"a").unwrap();
    std::thread::spawn(move || {
        for at in (0..2_000).step_by(100) {
            handle.receive_heartbeat(ms(at));
        }
    })
    .join()
    .unwrap();
    assert_eq!(manager.advance(ms(2_000)), [], "the owner looks for the first time after four timeouts");
    assert_eq!(manager.metrics().received.get(), 20);
}

#[test]
fn a_handle_outlives_its_manager() {
    let mut manager = manager(500, 500);
    let handle = manager.handle(&"a").unwrap();
    manager.stop();
    assert_eq!(handle.receive_heartbeat(ms(100)), Received::UnknownTarget);
    drop(manager);
    assert_eq!(handle.receive_heartbeat(ms(100)), Received::UnknownTarget);
}

/// A watcher and a worker that is watched, over a network, with a lease on the worker's side.
#[test]
fn h077_after_a_one_way_cut_the_worker_stops_before_the_watcher_gives_it_up() {
    for latency in [0_u64, 300] {
        let timeout = Duration::from_secs(10);
        let options = HeartbeatOptions {
            interval: Duration::from_secs(2),
            timeout,
            self_fence: true,
            ..HeartbeatOptions::default()
        };
        let services = HeartbeatServices::new(options).unwrap();
        let mut watcher = services.create_heartbeat_manager_sender::<_, u32>("worker");
        let mut fence = services.self_fence(ms(0)).unwrap();
        let most = Duration::from_millis(latency);
        let mut network: InMemoryNetwork<&str, LivenessFrame<u32>> =
            InMemoryNetwork::new(7).latency(most / 2, most);
        network.start("watcher");
        network.start("worker");
        watcher.monitor_target("worker", 1, ms(0));
        let cut_at = ms(31_000);
        let (mut sequence, mut heard, mut stopped, mut verdict) = (0, None, None, None);
        for millis in 0..60_000 {
            let now = ms(millis);
            if now == cut_at {
                network.cut("watcher", "worker");
            }
            for effect in watcher.advance(now) {
                match effect {
                    Effect::Request { .. } => {
                        let request = LivenessFrame { sent_at: now, echo: heard, ..frame(9, 1, 0) };
                        network.send("watcher", "worker", request, now);
                    }
                    other => verdict = verdict.or(other.verdict().map(|_| now)),
                }
            }
            while let Some(arrived) = network.arrive(now) {
                if arrived.to == "watcher" {
                    watcher.receive_frame(&"worker", &arrived.message, now);
                    heard = heard.max(Some(arrived.message.sent_at));
                } else {
                    if let Some(echo) = arrived.message.echo {
                        fence.renew(echo);
                    }
                    sequence += 1;
                    let answer = LivenessFrame { sent_at: now, ..frame(1, sequence, 0) };
                    network.send("worker", "watcher", answer, now);
                }
            }
            if fence.is_due(now) {
                stopped = stopped.or(Some(now));
            }
        }
        let (stopped, verdict) = (stopped.unwrap(), verdict.unwrap());
        assert!(stopped > cut_at && stopped <= cut_at + timeout.mul_f64(0.8), "{stopped:?}");
        assert!(verdict >= stopped, "outputs until {stopped:?}, replaced from {verdict:?}");
        assert!(verdict + Duration::from_secs(2) >= cut_at + timeout, "{verdict:?}");
    }
}

/// Panics when it is asked for the payload of "bad".
struct Fragile(Vec<&'static str>);

impl HeartbeatListener<&'static str, u32> for Fragile {
    type Input = ();
    type Output = u32;

    fn notify_heartbeat_timeout(&mut self, verdict: &Verdict<&'static str, u32>) {
        assert_ne!(verdict.id, "bad", "a listener that fails");
        self.0.push(verdict.id);
    }

    fn notify_target_unreachable(&mut self, verdict: &Verdict<&'static str, u32>) {
        self.notify_heartbeat_timeout(verdict);
    }

    fn report_payload(&mut self, id: &&'static str, (): ()) {
        assert_ne!(*id, "bad", "a listener that fails");
    }

    fn retrieve_payload(&mut self, id: &&'static str) -> Option<u32> {
        assert_ne!(*id, "bad", "a listener that fails");
        Some(1)
    }
}

#[test]
fn a_listener_that_panics_for_one_target_costs_the_others_nothing() {
    let manager = services(100, 1_000, 2).unwrap().create_heartbeat_manager_sender("peer");
    let mut exchange = HeartbeatExchange::asking("me", manager, Fragile(Vec::new()));
    let target = || {
        heartbeat::HeartbeatSender(|_: &&str, _: Option<u32>| {
            Box::pin(ready(RpcOutcome::Delivered)) as Delivery
        })
    };
    for id in ["bad", "good", "better"] {
        exchange.monitor_target(id, 1, target(), ms(0));
    }
    assert_eq!(exchange.advance(ms(0)).len(), 3, "all are asked, the one without its payload");
    exchange.receive_heartbeat(&"bad", &1, Some(()), ms(10), wall(0));
    let mut asked = 0;
    for at in 1..1_000 {
        asked += exchange.advance(ms(at)).len();
    }
    assert!(asked >= 24, "and asked again: {asked}");
    for at in 1_000..1_200 {
        drop(exchange.advance(ms(at)));
    }
    let mut lost = exchange.listener().0.clone();
    lost.sort_unstable();
    assert_eq!(lost, ["better", "good"]);
    assert!(exchange.metrics().panics.get() > 10);
}

#[test]
fn a_verdict_quotes_the_last_error_and_a_delivered_call_clears_it() {
    let mut manager = manager(500, 500);
    let refused = || CallEnd::failed(RpcOutcome::Unreachable, "connection refused (os error 111)");
    assert_eq!(manager.rpc_outcome(&"a", &1, refused(), ms(1)), None);
    assert_eq!(
        manager.liveness(&"a", ms(1)).unwrap().last_error.as_deref(),
        Some("connection refused (os error 111)")
    );
    assert_eq!(manager.rpc_outcome(&"a", &1, CallEnd::delivered(Duration::from_millis(3)), ms(2)), None);
    assert_eq!(manager.liveness(&"a", ms(2)).unwrap().last_error, None);
    assert_eq!(manager.metrics().rtt.snapshot().count(), 1);
    assert_eq!(manager.rpc_outcome(&"a", &1, refused(), ms(3)), None);
    let verdict = manager.rpc_outcome(&"a", &1, refused(), ms(4)).unwrap();
    assert!(verdict.to_string().contains("last error: connection refused (os error 111)"), "{verdict}");
}

#[test]
fn a_target_that_is_only_answered_is_never_asked() {
    let manager = services(100, 1_000, 2).unwrap().create_heartbeat_manager("peer");
    let mut exchange = HeartbeatExchange::answering("me", manager, Fragile(Vec::new()));
    let target =
        HeartbeatReceiver(|_: &&str, _: Option<u32>| Box::pin(ready(RpcOutcome::Delivered)) as Delivery);
    exchange.monitor_target("good", 1, target, ms(0));
    assert_eq!((0..900).map(|at| exchange.advance(ms(at)).len()).sum::<usize>(), 0);
}
