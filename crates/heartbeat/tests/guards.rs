//! Judging oneself before others: own stalls, suspicion, correlated loss, and the adaptive detector.
// What sets a test up may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use heartbeat::{
    Detector, Effect, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices, Reason, RpcOutcome,
    Verdict,
};
use runtime_core::Tick;
use std::collections::BTreeSet;
use std::time::Duration;
use support::{ms, wall};

type Sender = HeartbeatManagerSender<u32, u32>;

fn options(interval: u64, timeout: u64) -> HeartbeatOptions {
    HeartbeatOptions {
        interval: Duration::from_millis(interval),
        timeout: Duration::from_millis(timeout),
        ..HeartbeatOptions::default()
    }
}

fn sender(options: HeartbeatOptions, targets: u32) -> Sender {
    let mut sender = HeartbeatServices::new(options).unwrap().create_heartbeat_manager_sender("peer");
    for id in 0..targets {
        sender.monitor_target(id, 1, ms(0));
    }
    sender
}

/// Runs until `to`; targets for which `alive` holds answer at once. Everything but requests, with its time.
fn run(
    sender: &mut Sender,
    from: Tick,
    to: Tick,
    alive: impl Fn(u32, Tick) -> bool,
) -> Vec<(Tick, Effect<u32, u32>)> {
    let (mut told, mut now) = (Vec::new(), from);
    while now < to {
        for effect in sender.advance(now) {
            match effect {
                Effect::Request { id, .. } if alive(id, now) => {
                    sender.receive_heartbeat(&id, &1, now, wall(0));
                    assert_eq!(sender.rpc_outcome(&id, &1, RpcOutcome::Delivered, now), None);
                }
                Effect::Request { .. } => {}
                other => told.push((now, other)),
            }
        }
        now = sender.next_wakeup().unwrap_or(to);
    }
    told
}

fn verdicts(told: &[(Tick, Effect<u32, u32>)]) -> Vec<(Tick, Verdict<u32, u32>)> {
    told.iter().filter_map(|(at, effect)| Some((*at, effect.clone().verdict()?))).collect()
}

#[test]
fn h060_a_stall_of_twelve_seconds_is_no_death_of_anybody() {
    let guarded =
        HeartbeatOptions { own_stall_guard: true, suspicion: true, hold: true, ..options(1_000, 5_000) };
    let mut guarded = sender(guarded, 100);
    let mut flink = sender(options(1_000, 5_000), 100);
    for sender in [&mut guarded, &mut flink] {
        assert_eq!(run(sender, ms(0), ms(10_000), |_, _| true), []);
    }
    // Both loops stand from 10 s to 22 s. The answers that came meanwhile lie in the queue behind the timer.
    let effects = guarded.advance(ms(22_000));
    let stalls: Vec<_> = effects.iter().filter(|effect| !matches!(effect, Effect::Request { .. })).collect();
    assert!(matches!(stalls[..], [Effect::OwnStall(length)] if length.as_secs() >= 11), "{stalls:?}");
    assert_eq!(
        flink.advance(ms(22_000)).into_iter().filter_map(Effect::verdict).count(),
        100,
        "without the guard"
    );
    for id in 0..100 {
        guarded.receive_heartbeat(&id, &1, ms(22_001), wall(0));
    }
    assert_eq!(run(&mut guarded, ms(22_001), ms(60_000), |_, _| true), [], "0 verdicts, no second stall");
    assert_eq!((guarded.metrics().own_stalls.get(), guarded.metrics().timeouts.get()), (1, 0));
}

#[test]
fn a_stall_shifts_a_true_death_by_its_length_and_does_not_hide_it() {
    let mut sender = sender(HeartbeatOptions { own_stall_guard: true, ..options(1_000, 5_000) }, 3);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    // Target 2 dies just before a stall of 12 s.
    let told = run(&mut sender, ms(22_000), ms(60_000), |id, _| id != 2);
    let verdicts = verdicts(&told);
    let [(at, verdict)] = &verdicts[..] else { panic!("{verdicts:?}") };
    assert_eq!((verdict.id, verdict.reason), (2, Reason::Timeout));
    assert!(*at >= ms(26_000) && *at <= ms(27_000), "{at:?}");
    assert!(verdict.own_stall >= Duration::from_secs(11), "{verdict}");
    assert!(verdict.to_string().contains("of own stall not counted"), "{verdict}");
}

#[test]
fn nobody_is_unreachable_while_what_came_during_a_stall_is_read() {
    let mut sender = sender(HeartbeatOptions { own_stall_guard: true, ..options(1_000, 5_000) }, 1);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    assert!(matches!(sender.advance(ms(22_000))[0], Effect::OwnStall(_)));
    for _ in 0..2 {
        assert_eq!(sender.rpc_outcome(&0, &1, RpcOutcome::Unreachable, ms(22_100)), None, "held");
    }
    let told = run(&mut sender, ms(22_100), ms(24_000), |_, _| false);
    let verdicts = verdicts(&told);
    assert!(
        matches!(&verdicts[..], [(at, v)] if v.reason == Reason::Unreachable && *at == ms(23_000)),
        "{verdicts:?}"
    );
}

#[test]
fn a_suspended_machine_is_a_stall_too() {
    let mut sender = sender(HeartbeatOptions { own_stall_guard: true, ..options(1_000, 5_000) }, 1);
    run(&mut sender, ms(0), ms(2_000), |_, _| true);
    // The monotonic clock went on by 5 s; another clock says that the machine slept.
    sender.stood_still(ms(2_000), ms(7_000));
    assert_eq!(verdicts(&run(&mut sender, ms(7_000), ms(8_000), |_, _| true)), []);
}

#[test]
fn a_loop_that_waits_for_nobody_does_not_stand_still() {
    let mut sender = sender(HeartbeatOptions { own_stall_guard: true, ..options(1_000, 5_000) }, 1);
    assert_eq!(verdicts(&run(&mut sender, ms(0), ms(20_000), |_, _| false)).len(), 1);
    assert_eq!(sender.advance(ms(60_000)), [], "everybody was judged");
    sender.unmonitor_target(&0);
    sender.monitor_target(1, 1, ms(90_000));
    assert!(matches!(sender.advance(ms(90_000))[..], [Effect::Request { .. }]));
    sender.unmonitor_target(&1);
    assert_eq!(sender.advance(ms(200_000)), [], "nobody is monitored");
    assert_eq!(sender.metrics().own_stalls.get(), 0);
}

#[test]
fn h064_when_most_fall_silent_at_once_verdicts_wait_once_and_then_fall() {
    let (interval, timeout) = (1_000, 5_000);
    let mut sender =
        sender(HeartbeatOptions { hold: true, suspicion: true, ..options(interval, timeout) }, 100);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    let told = run(&mut sender, ms(10_000), ms(30_000), |id, _| id >= 60);
    let began = told.iter().find_map(|(at, effect)| match effect {
        Effect::CorrelatedLoss { dying, of, until } => Some((*at, *dying, *of, *until)),
        _ => None,
    });
    let (at, dying, of, until) = began.expect("the hold is told");
    assert_eq!((dying, of), (60, 100));
    assert_eq!(until.since(at), Duration::from_millis((timeout / 2).min(2 * interval)));
    let line =
        told.iter().map(|(_, effect)| effect.to_string()).find(|line| line.contains("fell silent together"));
    assert!(line.is_some_and(|line| line.starts_with("60 of 100")));
    let verdicts = verdicts(&told);
    assert_eq!(verdicts.iter().map(|(_, v)| v.id).collect::<BTreeSet<_>>(), (0..60).collect());
    assert_eq!(verdicts.len(), 60);
    assert!(
        verdicts.iter().all(|(at, _)| *at >= until && at.since(until) <= Duration::from_millis(interval))
    );
    assert!(verdicts.iter().all(|(_, v)| v.to_string().contains("as a correlated loss")));
    assert_eq!(sender.metrics().holds.get(), 1);
}

#[test]
fn those_who_come_back_during_the_hold_live() {
    let mut sender = sender(HeartbeatOptions { hold: true, ..options(1_000, 5_000) }, 100);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    let told = run(&mut sender, ms(10_000), ms(60_000), |id, now| id >= 60 || now >= ms(15_500));
    assert!(matches!(&told[..], [(_, Effect::CorrelatedLoss { .. })]), "{told:?}");
}

#[test]
fn a_probe_that_finds_the_own_network_well_ends_the_hold() {
    let mut sender = sender(HeartbeatOptions { hold: true, ..options(1_000, 5_000) }, 10);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    let mut now = ms(10_000);
    while !sender.advance(now).iter().any(|effect| matches!(effect, Effect::CorrelatedLoss { .. })) {
        now = sender.next_wakeup().unwrap();
    }
    sender.probed(true, now);
    let told = run(&mut sender, now, now + Duration::from_millis(300), |_, _| false);
    assert!(!verdicts(&told).is_empty(), "within a fraction of an interval");
}

#[test]
fn a_single_death_is_not_held() {
    let mut sender = sender(HeartbeatOptions { hold: true, ..options(1_000, 5_000) }, 100);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    let told = run(&mut sender, ms(10_000), ms(30_000), |id, _| id != 7);
    assert!(matches!(&told[..], [(at, Effect::Verdict(v))] if v.id == 7 && *at <= ms(15_000)), "{told:?}");
}

fn regular(gaps: u64, jitter: u64, detector: Detector) -> (Sender, Tick) {
    let mut sender = sender(HeartbeatOptions { detector, ..options(1_000, 50_000) }, 1);
    let mut now = ms(0);
    for n in 0..=gaps {
        now = now + Duration::from_millis(1_000 - jitter + n % 3 * jitter);
        assert_eq!(sender.advance(now).into_iter().filter_map(Effect::verdict).count(), 0, "at {now:?}");
        sender.receive_heartbeat(&0, &1, now, wall(0));
        // The loop turns once more between two heartbeats, as it does when it sends requests.
        drop(sender.advance(now + Duration::from_millis(500)));
    }
    (sender, now)
}

#[test]
fn h065_a_regular_target_is_dead_after_three_intervals_of_silence_and_not_before() {
    let (mut sender, last) = regular(200, 20, Detector::Adaptive);
    let told = verdicts(&run(&mut sender, last, last + Duration::from_secs(60), |_, _| false));
    let [(at, verdict)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(verdict.reason, Reason::Timeout);
    let after = at.since(last);
    // phi = 8 comes after 1.6 s; the floor is three intervals, the bound the timeout of 50 s.
    assert!(after >= Duration::from_secs(3) && after <= Duration::from_millis(3_100), "{after:?}");
}

#[test]
fn h065_an_irregular_target_is_never_judged_later_than_the_timeout() {
    let mut sender = sender(HeartbeatOptions { detector: Detector::Adaptive, ..options(1_000, 5_000) }, 1);
    let mut now = ms(0);
    for n in 0..200_u64 {
        now = now + Duration::from_millis(200 + n % 4 * 1_400);
        assert_eq!(sender.advance(now).into_iter().filter_map(Effect::verdict).count(), 0, "at {now:?}");
        sender.receive_heartbeat(&0, &1, now, wall(0));
    }
    let told = verdicts(&run(&mut sender, now, now + Duration::from_secs(60), |_, _| false));
    let after = told[0].0.since(now);
    assert!(after > Duration::from_secs(3) && after <= Duration::from_millis(5_001), "{after:?}");
}

#[test]
fn two_signs_of_life_of_one_answer_are_one_gap() {
    let adaptive = HeartbeatOptions { detector: Detector::Adaptive, ..options(10_000, 50_000) };
    let mut sender = sender(adaptive, 1);
    let mut now = ms(0);
    // It is looked at with every other answer: this loop comes late for each request.
    for _ in 0..16 {
        drop(sender.advance(now));
        sender.receive_heartbeat(&0, &1, now, wall(0));
        sender.receive_heartbeat(&0, &1, now + Duration::from_millis(2), wall(0));
        now = now + Duration::from_secs(10);
    }
    let last = now - Duration::from_millis(9_998);
    let told = verdicts(&run(&mut sender, now, now + Duration::from_secs(60), |_, _| false));
    let after = told[0].0.since(last);
    assert!(after >= Duration::from_secs(30) && after <= Duration::from_millis(30_100), "{after:?}");
}

#[test]
fn h067_a_target_of_which_one_gap_is_known_is_judged_by_the_timeout() {
    for detector in [Detector::Adaptive, Detector::Fixed] {
        let (mut sender, last) = regular(1, 20, detector);
        let told = verdicts(&run(&mut sender, last, last + Duration::from_secs(100), |_, _| false));
        assert_eq!(told.iter().map(|(at, _)| at.since(last)).collect::<Vec<_>>(), [Duration::from_secs(50)]);
    }
}

#[test]
fn gaps_in_which_the_watcher_stood_still_are_no_habit_of_the_peer() {
    let adaptive =
        HeartbeatOptions { detector: Detector::Adaptive, own_stall_guard: true, ..options(1_000, 50_000) };
    let mut sender = sender(adaptive, 1);
    run(&mut sender, ms(0), ms(30_000), |_, _| true);
    let mut now = ms(30_000);
    for _ in 0..5 {
        // It stands for 10 s, and hears the peer when it goes on.
        now = now + Duration::from_secs(10);
        drop(sender.advance(now));
        sender.receive_heartbeat(&0, &1, now, wall(0));
        assert_eq!(verdicts(&run(&mut sender, now, now + Duration::from_secs(5), |_, _| true)), []);
        now = now + Duration::from_secs(5);
    }
    let told = verdicts(&run(&mut sender, now, now + Duration::from_secs(60), |_, _| false));
    assert!(told[0].0.since(now) <= Duration::from_millis(3_600), "still known as regular: {told:?}");
}

#[test]
fn h069_one_missed_answer_makes_a_suspect_and_the_next_heartbeat_clears_it() {
    let mut sender = sender(HeartbeatOptions { suspicion: true, ..options(1_000, 5_000) }, 2);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    // Target 1 misses the one request that falls into this second.
    let told = run(&mut sender, ms(10_000), ms(20_000), |id, now| id != 1 || now >= ms(11_000));
    let kinds: Vec<_> = told
        .iter()
        .map(|(_, effect)| match effect {
            Effect::Suspect { id: 1, consecutive_failures: 0, .. } => "suspect",
            Effect::Alive { id: 1, .. } => "alive",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["suspect", "alive"], "{told:?}");
    assert!(!sender.is_suspect(&1));
}

#[test]
fn a_healthy_target_is_never_a_suspect() {
    let mut sender = sender(HeartbeatOptions { suspicion: true, ..options(1_000, 5_000) }, 1_000);
    assert_eq!(run(&mut sender, ms(0), ms(60_000), |_, _| true), []);
}

#[test]
fn a_refused_call_makes_a_suspect_at_once_and_a_delivered_one_clears_it() {
    let mut sender = sender(HeartbeatOptions { suspicion: true, ..options(1_000, 5_000) }, 1);
    run(&mut sender, ms(0), ms(3_000), |_, _| true);
    assert_eq!(sender.rpc_outcome(&0, &1, RpcOutcome::Unreachable, ms(3_000)), None);
    assert_eq!(sender.next_wakeup(), Some(ms(3_000)));
    assert!(matches!(
        sender.advance(ms(3_000))[..],
        [Effect::Suspect { id: 0, consecutive_failures: 1, .. }]
    ));
    assert!(sender.is_suspect(&0));
    assert_eq!(sender.rpc_outcome(&0, &1, RpcOutcome::Delivered, ms(3_010)), None);
    assert!(matches!(sender.advance(ms(3_010))[..], [Effect::Alive { id: 0, .. }]));
}

#[test]
fn a_suspect_that_is_heard_through_its_handle_is_cleared_soon() {
    let mut sender = sender(HeartbeatOptions { suspicion: true, ..options(1_000, 5_000) }, 1);
    let handle = sender.handle(&0).unwrap();
    let told = run(&mut sender, ms(0), ms(2_000), |_, _| false);
    assert!(matches!(&told[..], [(_, Effect::Suspect { .. })]), "{told:?}");
    handle.receive_heartbeat(ms(2_000));
    let told = run(&mut sender, ms(2_000), ms(2_130), |_, _| false);
    assert!(matches!(&told[..], [(_, Effect::Alive { .. })]), "{told:?}");
}

#[test]
fn whoever_is_unwell_suspects_later_and_judges_no_later() {
    let guarded = HeartbeatOptions { own_stall_guard: true, suspicion: true, ..options(1_000, 5_000) };
    let mut sender = sender(guarded, 1);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    sender.probed(false, ms(10_000));
    assert_eq!(sender.local_health().score(), 1);
    let told = run(&mut sender, ms(10_000), ms(20_000), |_, _| false);
    assert_eq!(verdicts(&told).len(), 1);
    assert!(verdicts(&told)[0].0 <= ms(15_001));
    assert_eq!(sender.local_health().score(), 0, "intervals without trouble");
}

#[test]
fn a_verdict_says_how_many_others_are_in_trouble() {
    let mut sender = sender(HeartbeatOptions { suspicion: true, ..options(1_000, 5_000) }, 4);
    run(&mut sender, ms(0), ms(10_000), |_, _| true);
    let told = verdicts(&run(&mut sender, ms(10_000), ms(20_000), |id, _| id == 3));
    assert!(told[0].1.to_string().contains("2 of 3 others in trouble"), "{}", told[0].1);
    assert!(told[2].1.others_in_trouble.is_some_and(|others| others.suspects == 0));
}
