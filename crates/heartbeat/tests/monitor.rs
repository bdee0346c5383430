//! One target: its timeout, its payloads, and what is ignored.

mod support;

use heartbeat::{
    Effect, HeartbeatManager, LastHeartbeat, MonitorState, Monitored, OptionError, Reason, Received,
    RpcOutcome,
};
use runtime_core::Tick;
use std::time::Duration;
use support::{Exchange, Owner, carry_out, ms, peer, services, wall};

fn manager(timeout: u64) -> Result<HeartbeatManager<&'static str, u32>, OptionError> {
    Ok(services(10, timeout, 2)?.create_heartbeat_manager("peer"))
}

fn judged(effects: Vec<Effect<&'static str, u32>>) -> Vec<u32> {
    effects.into_iter().filter_map(Effect::verdict).map(|verdict| verdict.incarnation).collect()
}

fn exchange(payloads: &[(&'static str, u32)]) -> Result<Exchange, OptionError> {
    let owner = Owner { payloads: payloads.iter().copied().collect(), ..Owner::default() };
    Ok(Exchange::answering("me", services(10, 1_000, 2)?.create_heartbeat_manager("peer"), owner))
}

#[test]
fn h001_a_request_is_reported_and_answered_with_the_payload_of_its_sender() {
    let mut exchange = exchange(&[("target", 42)]).unwrap();
    let (target, told) = peer();
    exchange.monitor_target("target", 1, target, ms(0));
    let call = exchange.request_heartbeat(&"target", &1, Some("a"), ms(5), wall(5)).unwrap();
    assert_eq!(carry_out(&mut exchange, call, ms(5)), Some(RpcOutcome::Delivered));
    assert_eq!(exchange.listener().reported, [("target", "a")]);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [("answer", "me", Some(42))]);
}

#[test]
fn h002_an_answer_is_reported_and_not_answered() {
    let mut exchange = exchange(&[("target", 42)]).unwrap();
    let (target, told) = peer();
    exchange.monitor_target("target", 1, target, ms(0));
    assert_eq!(exchange.receive_heartbeat(&"target", &1, Some("b"), ms(5), wall(5)), Received::Applied);
    assert_eq!(exchange.listener().reported, [("target", "b")]);
    assert_eq!(told.try_iter().count(), 0);
}

/// The original cancels the first timeout and schedules a second. Here the one timer is looked at when it is due and
/// moved: what can be seen is when the owner is woken.
#[test]
fn h003_a_heartbeat_moves_the_end_of_the_timeout_and_no_timer() {
    let mut manager = manager(1_000).unwrap();
    manager.monitor_target("a", 1, ms(0));
    assert_eq!(manager.next_wakeup(), Some(ms(1_000)));
    manager.receive_heartbeat(&"a", &1, ms(300), wall(300));
    assert_eq!(manager.next_wakeup(), Some(ms(1_000)), "nothing was armed");
    assert_eq!(manager.advance(ms(1_000)), [], "the first timeout is none");
    assert_eq!(
        manager.next_wakeup(),
        Some(ms(1_300)),
        "the second is due a full timeout after the heartbeat"
    );
    assert_eq!(manager.advance(ms(1_300)).len(), 1);
    assert_eq!(manager.next_wakeup(), None, "there is no third");
}

#[test]
fn h004_the_timeout_runs_from_the_last_heartbeat_and_fires_once() {
    let mut manager = manager(200).unwrap();
    manager.monitor_target("a", 1, ms(0));
    for at in (0..=250).step_by(50) {
        assert_eq!(manager.advance(ms(at)), []);
        manager.receive_heartbeat(&"a", &1, ms(at), wall(0));
    }
    for at in 250..450 {
        assert_eq!(manager.advance(ms(at)), [], "{at}");
    }
    let verdicts: Vec<_> = manager.advance(ms(450)).into_iter().filter_map(Effect::verdict).collect();
    assert_eq!(verdicts.iter().map(|v| (v.id, v.reason)).collect::<Vec<_>>(), [("a", Reason::Timeout)]);
    assert_eq!(verdicts[0].last_seen_age, Some(Duration::from_millis(200)));
    assert_eq!(manager.advance(ms(10_000)), []);
}

#[test]
fn h006_an_unmonitored_target_gets_no_verdict() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    assert!(manager.unmonitor_target(&"a"));
    assert_eq!(manager.next_wakeup(), None);
    assert_eq!(manager.advance(ms(100)), []);
}

#[test]
fn h008_who_is_not_monitored_was_last_heard_at_minus_one() {
    let manager = manager(50).unwrap();
    assert_eq!(manager.last_heartbeat(&"x"), LastHeartbeat::NotMonitored);
    assert_eq!(manager.last_heartbeat(&"x").as_millis(), -1);
}

#[test]
fn h009_who_was_not_heard_yet_was_last_heard_at_zero_and_then_by_the_wall_clock() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    assert_eq!(manager.last_heartbeat(&"a").as_millis(), 0);
    manager.receive_heartbeat(&"a", &1, ms(7), wall(7));
    assert_eq!(manager.last_heartbeat(&"a"), LastHeartbeat::At(wall(7)));
}

#[test]
fn h010_a_known_life_keeps_its_first_target_and_another_life_brings_its_own() {
    let mut exchange = exchange(&[]).unwrap();
    let ((first, first_told), (second, second_told), (third, third_told)) = (peer(), peer(), peer());
    assert_eq!(exchange.monitor_target("a", 1, first, ms(0)), Monitored::New);
    assert_eq!(exchange.monitor_target("a", 1, second, ms(0)), Monitored::Known);
    exchange.request_heartbeat(&"a", &1, None, ms(1), wall(1)).unwrap();
    assert_eq!((first_told.try_iter().count(), second_told.try_iter().count()), (1, 0));
    assert_eq!(exchange.monitor_target("a", 2, third, ms(2)), Monitored::Replaced);
    exchange.request_heartbeat(&"a", &2, None, ms(3), wall(3)).unwrap();
    assert_eq!((first_told.try_iter().count(), third_told.try_iter().count()), (0, 1));
}

#[test]
fn h011_an_answer_of_somebody_unknown_is_reported_and_arms_nothing() {
    let mut exchange = exchange(&[]).unwrap();
    assert_eq!(exchange.receive_heartbeat(&"x", &1, Some("p"), ms(1), wall(1)), Received::UnknownTarget);
    assert_eq!(exchange.listener().reported, [("x", "p")]);
    assert_eq!(exchange.next_wakeup(), None);
}

#[test]
fn a_request_of_somebody_unknown_is_neither_reported_nor_answered() {
    let mut exchange = exchange(&[("x", 1)]).unwrap();
    assert!(exchange.request_heartbeat(&"x", &1, Some("p"), ms(1), wall(1)).is_none());
    assert_eq!(exchange.listener().reported, []);
}

#[test]
fn h013_an_empty_request_is_answered_and_not_reported() {
    let mut exchange = exchange(&[("a", 7)]).unwrap();
    let (target, told) = peer();
    exchange.monitor_target("a", 1, target, ms(0));
    exchange.request_heartbeat(&"a", &1, None, ms(1), wall(1)).unwrap();
    assert_eq!(exchange.listener().reported, []);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [("answer", "me", Some(7))]);
}

#[test]
fn h014_an_owner_without_payload_answers_all_the_same() {
    let mut exchange = exchange(&[]).unwrap();
    let (target, told) = peer();
    exchange.monitor_target("a", 1, target, ms(0));
    exchange.request_heartbeat(&"a", &1, None, ms(1), wall(1)).unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [("answer", "me", None)]);
}

#[test]
fn h015_each_target_gets_its_own_payload_only() {
    let mut exchange = exchange(&[("a", 1), ("b", 2)]).unwrap();
    let ((a, a_told), (b, b_told)) = (peer(), peer());
    exchange.monitor_target("a", 1, a, ms(0));
    exchange.monitor_target("b", 1, b, ms(0));
    for id in ["a", "b"] {
        exchange.request_heartbeat(&id, &1, None, ms(1), wall(1)).unwrap();
    }
    assert_eq!(a_told.try_iter().collect::<Vec<_>>(), [("answer", "me", Some(1))]);
    assert_eq!(b_told.try_iter().collect::<Vec<_>>(), [("answer", "me", Some(2))]);
}

#[test]
fn h017_a_stopped_exchange_ignores_everything() {
    let mut exchange = exchange(&[("a", 1)]).unwrap();
    let ((a, told), (b, _)) = (peer(), peer());
    exchange.monitor_target("a", 1, a, ms(0));
    exchange.stop();
    assert_eq!(exchange.monitor_target("b", 1, b, ms(1)), Monitored::Stopped);
    assert!(exchange.request_heartbeat(&"a", &1, Some("p"), ms(1), wall(1)).is_none());
    assert_eq!(exchange.receive_heartbeat(&"a", &1, Some("p"), ms(1), wall(1)), Received::Stopped);
    for _ in 0..10 {
        exchange.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(1));
    }
    assert_eq!(exchange.last_heartbeat(&"a").as_millis(), -1);
    assert!(exchange.advance(ms(10_000)).is_empty());
    let owner = exchange.listener();
    assert_eq!((owner.reported.len(), owner.timed_out.len(), owner.unreachable.len()), (0, 0, 0));
    assert_eq!(told.try_iter().count(), 0);
}

#[test]
fn h019_to_stop_twice_or_to_drop_somebody_unknown_does_nothing() {
    let mut manager = manager(50).unwrap();
    assert!(!manager.unmonitor_target(&"x"));
    manager.monitor_target("a", 1, ms(0));
    manager.stop();
    manager.stop();
    assert!(!manager.unmonitor_target(&"a"));
    assert!(manager.is_stopped());
    assert_eq!(manager.targets().count(), 0);
}

#[test]
fn a_heartbeat_of_an_old_life_is_counted_and_moves_no_timeout() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 2, ms(0));
    assert_eq!(manager.receive_heartbeat(&"a", &1, ms(40), wall(40)), Received::OtherIncarnation);
    assert_eq!(manager.last_heartbeat(&"a").as_millis(), 0);
    assert_eq!(manager.metrics().from_other_incarnation.get(), 1);
    assert_eq!(manager.advance(ms(50)).len(), 1);
}

#[test]
fn a_new_life_starts_with_the_full_timeout_and_no_failures() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(40)), None);
    assert_eq!(manager.monitor_target("a", 2, ms(45)), Monitored::Replaced);
    assert_eq!(manager.rpc_outcome(&"a", &2, RpcOutcome::Unreachable, ms(46)), None);
    assert_eq!(manager.advance(ms(94)), []);
    assert_eq!(judged(manager.advance(ms(95))), [2]);
}

#[test]
fn a_late_good_bye_of_an_old_life_leaves_the_new_one() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 2, ms(0));
    assert!(!manager.unmonitor_incarnation(&"a", &1));
    assert_eq!(manager.targets().collect::<Vec<_>>(), [(&"a", &2)]);
    assert!(manager.unmonitor_incarnation(&"a", &2));
    assert_eq!(manager.targets().count(), 0);
}

#[test]
fn a_judged_target_is_not_revived_until_it_is_monitored_anew() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    assert_eq!(manager.advance(ms(50)).len(), 1);
    assert_eq!(manager.receive_heartbeat(&"a", &1, ms(51), wall(51)), Received::Settled);
    assert_eq!(manager.monitor_target("a", 1, ms(52)), Monitored::Known);
    let liveness = manager.liveness(&"a", ms(60)).unwrap();
    assert_eq!(
        (liveness.state, liveness.last_heartbeat),
        (MonitorState::Timeout, LastHeartbeat::At(wall(51)))
    );
    assert_eq!(manager.next_wakeup(), None);
    manager.unmonitor_target(&"a");
    assert_eq!(manager.monitor_target("a", 1, ms(70)), Monitored::New);
    assert_eq!(manager.next_wakeup(), Some(ms(120)));
}

#[test]
fn heartbeats_that_waited_through_a_stall_are_noted_before_the_verdict() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    manager.receive_heartbeat(&"a", &1, ms(200), wall(200));
    assert_eq!(manager.advance(ms(200)), []);
    assert_eq!(manager.next_wakeup(), Some(ms(250)));
}

#[test]
fn churn_leaves_no_timer_behind() {
    let mut manager = manager(50_000).unwrap();
    for round in 0..1_000 {
        manager.monitor_target("a", round, ms(u64::from(round)));
        if round % 2 == 0 {
            manager.unmonitor_target(&"a");
        }
    }
    manager.unmonitor_target(&"a");
    assert_eq!(manager.next_wakeup(), None);
    assert_eq!(manager.metrics().targets.get(), 0);
}

#[test]
fn the_end_of_time_ends() {
    let mut sender = services(10, 50, 2).unwrap().create_heartbeat_manager_sender::<_, u32>("peer");
    sender.monitor_target("a", 1, Tick::MAX);
    assert!(matches!(sender.advance(Tick::MAX)[..], [Effect::Request { .. }]), "asked once");
    assert_eq!(sender.next_wakeup(), None);
}

#[test]
fn a_heartbeat_that_was_overtaken_does_not_bring_the_deadline_forward() {
    let mut manager = manager(50).unwrap();
    manager.monitor_target("a", 1, ms(0));
    manager.receive_heartbeat(&"a", &1, ms(40), wall(40));
    manager.receive_heartbeat(&"a", &1, ms(10), wall(10));
    assert_eq!(manager.advance(ms(89)), []);
    assert_eq!(manager.advance(ms(90)).len(), 1);
}
