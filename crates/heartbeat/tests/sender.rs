//! The active side: who is asked when, and two sides together.

mod support;

use heartbeat::{Effect, HeartbeatManagerSender, OptionError};
use runtime_core::Tick;
use std::collections::BTreeMap;
use std::time::Duration;
use support::{Exchange, Owner, carry_out, ms, peer, services, wall};

fn sender(interval: u64, timeout: u64) -> Result<HeartbeatManagerSender<u32, u32>, OptionError> {
    Ok(services(interval, timeout, 2)?.create_heartbeat_manager_sender("peer"))
}

fn asked(effects: &[Effect<u32, u32>]) -> Vec<u32> {
    let id = |effect: &Effect<u32, u32>| match effect {
        Effect::Request { id, .. } => Some(*id),
        _ => None,
    };
    effects.iter().filter_map(id).collect()
}

#[test]
fn h040_targets_monitored_before_the_loop_turns_are_asked_in_its_first_turn() {
    let mut sender = sender(2_000, 10_000).unwrap();
    sender.monitor_target(1, 0, ms(0));
    sender.monitor_target(2, 0, ms(0));
    assert_eq!(sender.next_wakeup(), Some(ms(0)));
    assert_eq!(asked(&sender.advance(ms(0))), [1, 2]);
    assert_eq!(asked(&sender.advance(ms(0))), []);
}

#[test]
fn a_target_that_comes_between_requests_is_asked_at_once() {
    let mut sender = sender(2_000, 10_000).unwrap();
    sender.monitor_target(1, 0, ms(0));
    assert_eq!(asked(&sender.advance(ms(0))), [1]);
    sender.monitor_target(2, 0, ms(300));
    assert_eq!(sender.next_wakeup(), Some(ms(300)));
    assert_eq!(asked(&sender.advance(ms(300))), [2]);
}

#[test]
fn h041_two_sides_keep_each_other_alive_until_one_stops() {
    let (interval, timeout) = (50_u64, 200_u64);
    let services = services(interval, timeout, 2).unwrap();
    let owner = |id| Owner { payloads: [(id, 1)].into(), ..Owner::default() };
    let mut active =
        Exchange::asking("active", services.create_heartbeat_manager_sender("peer"), owner("passive"));
    let mut passive =
        Exchange::answering("passive", services.create_heartbeat_manager("peer"), owner("active"));
    let ((to_passive, at_passive), (to_active, at_active)) = (peer(), peer());
    active.monitor_target("passive", 1, to_passive, ms(0));
    passive.monitor_target("active", 1, to_active, ms(0));

    let stop_at = 10 * timeout;
    for now in 0..stop_at + 2 * timeout {
        if now == stop_at {
            passive.stop();
        }
        let at = ms(now);
        for call in active.advance(at) {
            carry_out(&mut active, call, at);
        }
        for (_, origin, _) in at_passive.try_iter() {
            if let Some(call) = passive.request_heartbeat(&origin, &1, Some("asked"), at, wall(0)) {
                carry_out(&mut passive, call, at);
            }
        }
        for (_, origin, _) in at_active.try_iter() {
            active.receive_heartbeat(&origin, &1, Some("answered"), at, wall(0));
        }
        assert!(passive.advance(at).is_empty());
        assert!(now >= stop_at || active.listener().timed_out.is_empty(), "timed out at {now}");
    }
    let nominal = usize::try_from(stop_at / interval).unwrap();
    assert!(active.listener().reported.len() >= nominal / 2, "{}", active.listener().reported.len());
    assert!(passive.listener().reported.len() >= nominal / 2, "{}", passive.listener().reported.len());
    assert_eq!(active.listener().timed_out, ["passive"]);
    assert!(passive.listener().timed_out.is_empty());
}

#[test]
fn h042_a_loop_that_stalls_for_three_intervals_asks_once_and_then_at_the_old_place() {
    let mut sender = sender(1_000, 10_000).unwrap();
    sender.monitor_target(1, 0, ms(0));
    assert_eq!(asked(&sender.advance(ms(0))), [1]);
    let second = sender.next_wakeup().unwrap();
    assert_eq!(asked(&sender.advance(second + Duration::from_millis(3_000))), [1]);
    assert_eq!(sender.next_wakeup(), Some(second + Duration::from_millis(4_000)));
}

/// The requests between `from` and `to`, each answered at once, waking up whenever the sender wants to.
fn requests(sender: &mut HeartbeatManagerSender<u32, u32>, from: Tick, to: Tick) -> Vec<(Tick, u32)> {
    let mut requests = Vec::new();
    let mut now = from;
    while now < to {
        for id in asked(&sender.advance(now)) {
            sender.receive_heartbeat(&id, &0, now, wall(0));
            requests.push((now, id));
        }
        now = sender.next_wakeup().unwrap_or(Tick::MAX);
    }
    requests
}

fn assert_spread(requests: &[(Tick, u32)], from: Tick) {
    let mut slices = BTreeMap::<u128, usize>::new();
    for (at, _) in requests {
        *slices.entry(at.since(from).as_millis() / 500).or_default() += 1;
    }
    assert!(slices.len() == 20 && slices.values().all(|&in_slice| in_slice <= 60), "{slices:?}");
    let mut ids: Vec<u32> = requests.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..1_000).collect::<Vec<_>>(), "each target once");
}

#[test]
fn h045_a_thousand_targets_that_come_at_once_are_asked_evenly_over_the_interval() {
    let mut sender = sender(10_000, 50_000).unwrap();
    for id in 0..1_000 {
        sender.monitor_target(id, 0, ms(0));
    }
    assert_eq!(requests(&mut sender, ms(0), ms(1)).len(), 1_000, "the first at once");
    requests(&mut sender, ms(1), ms(20_000));
    assert_spread(&requests(&mut sender, ms(20_000), ms(30_000)), ms(20_000));
}

#[test]
fn a_stall_of_the_owner_does_not_bunch_the_requests_for_good() {
    let mut sender = sender(10_000, 50_000).unwrap();
    for id in 0..1_000 {
        sender.monitor_target(id, 0, ms(0));
    }
    requests(&mut sender, ms(0), ms(20_000));
    assert_eq!(requests(&mut sender, ms(45_000), ms(45_001)).len(), 1_000, "each once after the stall");
    requests(&mut sender, ms(45_001), ms(60_000));
    assert_spread(&requests(&mut sender, ms(60_000), ms(70_000)), ms(60_000));
}

#[test]
fn h046_a_stopped_sender_asks_nobody() {
    let mut sender = sender(1_000, 10_000).unwrap();
    sender.monitor_target(1, 0, ms(0));
    assert_eq!(asked(&sender.advance(ms(0))), [1]);
    sender.stop();
    assert_eq!(sender.next_wakeup(), None);
    assert_eq!(sender.advance(ms(100_000)), []);
}

#[test]
fn a_lost_target_is_not_asked_any_more_and_the_others_are() {
    let mut sender = sender(1_000, 3_000).unwrap();
    sender.monitor_target(1, 0, ms(0));
    sender.monitor_target(2, 0, ms(0));
    let (mut lost_at, mut after) = (None, Vec::new());
    let mut now = ms(0);
    while now < ms(8_000) {
        sender.receive_heartbeat(&2, &0, now, wall(0));
        let effects = sender.advance(now);
        if lost_at.is_some() {
            after.extend(asked(&effects));
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Verdict(verdict) if verdict.id == 1)) {
            lost_at = Some(now);
        }
        now = sender.next_wakeup().unwrap();
    }
    assert_eq!(lost_at, Some(ms(3_000)));
    assert!(after.len() >= 4 && after.iter().all(|id| *id == 2), "{after:?}");
}
