//! Refused calls: what counts, what does not, and when it is enough.

mod support;

use heartbeat::{
    Delivery, Effect, HeartbeatManager, HeartbeatReceiver, HeartbeatSender, HeartbeatTarget, MonitorState,
    OptionError, Reason, RpcOutcome,
};
use std::fmt;
use std::future::ready;
use std::task::{Context, Poll, Waker};
use support::{Exchange, Owner, carry_out, ms, peer, services, wall};

fn manager(threshold: i32) -> Result<HeartbeatManager<&'static str, u32>, OptionError> {
    let mut manager = services(20, 10_000, threshold)?.create_heartbeat_manager("peer");
    manager.monitor_target("a", 1, ms(0));
    Ok(manager)
}

#[test]
fn h020_one_refused_request_is_enough_at_threshold_one_and_no_timeout_follows() {
    let manager = services(20, 10_000, 1).unwrap().create_heartbeat_manager_sender("peer");
    let mut exchange = Exchange::asking("me", manager, Owner::default());
    let (target, told) = peer();
    drop(told);
    exchange.monitor_target("a", 1, target, ms(0));
    for call in exchange.advance(ms(0)) {
        assert_eq!(carry_out(&mut exchange, call, ms(0)), Some(RpcOutcome::Unreachable));
    }
    assert_eq!(exchange.listener().unreachable, ["a"]);
    assert!(exchange.advance(ms(100_000)).is_empty());
    assert_eq!((exchange.listener().unreachable.len(), exchange.listener().timed_out.len()), (1, 0));
}

#[test]
fn h021_a_passive_manager_counts_its_refused_answers() {
    let manager = services(20, 10_000, 5).unwrap().create_heartbeat_manager("peer");
    let mut exchange = Exchange::answering("me", manager, Owner::default());
    let (target, told) = peer();
    drop(told);
    exchange.monitor_target("a", 1, target, ms(0));
    for at in 1..=5 {
        assert_eq!(exchange.listener().unreachable.len(), 0);
        let call = exchange.request_heartbeat(&"a", &1, None, ms(at), wall(0)).unwrap();
        carry_out(&mut exchange, call, ms(at));
    }
    assert_eq!(exchange.listener().unreachable, ["a"]);
}

#[test]
fn h022_without_threshold_refused_calls_never_judge_but_silence_does() {
    let mut manager = manager(-1).unwrap();
    for _ in 0..10 {
        assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(1)), None);
    }
    let verdicts: Vec<_> = manager.advance(ms(10_000)).into_iter().filter_map(Effect::verdict).collect();
    assert_eq!(
        verdicts.iter().map(|v| (v.reason, v.consecutive_failures)).collect::<Vec<_>>(),
        [(Reason::Timeout, 10)]
    );
}

#[test]
fn h023_a_delivered_call_starts_the_count_anew() {
    let mut manager = manager(2).unwrap();
    use RpcOutcome::{Delivered, Unreachable};
    for outcome in [Unreachable, Delivered, Unreachable, Delivered, Unreachable] {
        assert_eq!(manager.rpc_outcome(&"a", &1, outcome, ms(1)), None);
    }
}

#[test]
fn a_heartbeat_does_not_start_the_count_anew() {
    let mut manager = manager(2).unwrap();
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(1)), None);
    manager.receive_heartbeat(&"a", &1, ms(2), wall(2));
    let verdict = manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(3)).unwrap();
    assert_eq!((verdict.reason, verdict.consecutive_failures), (Reason::Unreachable, 2));
    assert_eq!(manager.liveness(&"a", ms(3)).unwrap().state, MonitorState::Unreachable);
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(4)), None, "said once");
    assert_eq!(manager.advance(ms(100_000)), [], "and no timeout after it");
}

#[derive(Debug)]
struct Wrapped(Box<dyn std::error::Error + 'static>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("call failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}

#[test]
fn h026_a_refusal_wrapped_twice_is_a_refusal() {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let error = Wrapped(Box::new(Wrapped(Box::new(refused))));
    let outcome = RpcOutcome::of_error(&error, |e| e.is::<std::io::Error>());
    assert!(manager(1).unwrap().rpc_outcome(&"a", &1, outcome, ms(1)).is_some());
}

#[test]
fn h027_other_failures_neither_count_nor_reset() {
    let mut manager = manager(1).unwrap();
    for _ in 0..10 {
        assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Other, ms(1)), None);
    }
    let mut manager = self::manager(2).unwrap();
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(1)), None);
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Other, ms(2)), None);
    assert!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(3)).is_some());
}

#[test]
fn h029_an_outcome_after_the_target_was_dropped_is_ignored() {
    let mut manager = manager(1).unwrap();
    manager.unmonitor_target(&"a");
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(1)), None);
}

#[test]
fn a_refused_call_to_an_old_life_does_not_count_for_the_new() {
    let mut manager = manager(1).unwrap();
    manager.monitor_target("a", 2, ms(1));
    assert_eq!(manager.rpc_outcome(&"a", &1, RpcOutcome::Unreachable, ms(2)), None);
    assert_eq!(manager.liveness(&"a", ms(2)).unwrap().consecutive_failures, 0);
}

#[test]
fn a_dead_process_is_noticed_within_two_intervals() {
    let mut sender = services(10_000, 50_000, 2).unwrap().create_heartbeat_manager_sender::<_, u32>("peer");
    sender.monitor_target("a", 1, ms(0));
    let mut now = ms(0);
    // It dies at 12 s, before its request of that interval or after it.
    let died = ms(12_000);
    let verdict = loop {
        let mut verdict = None;
        for effect in sender.advance(now) {
            let Effect::Request { id, incarnation } = effect else { panic!("too late: {effect:?}") };
            let outcome = if now < died { RpcOutcome::Delivered } else { RpcOutcome::Unreachable };
            verdict = sender.rpc_outcome(&id, &incarnation, outcome, now);
        }
        match verdict {
            Some(verdict) => break verdict,
            None => now = sender.next_wakeup().unwrap(),
        }
    };
    assert_eq!(verdict.reason, Reason::Unreachable);
    assert!(now.since(died).as_secs() <= 20, "after {:?}", now.since(died));
}

#[test]
fn the_half_that_a_target_does_not_have_fails_without_counting() {
    let delivered = |_: &&'static str, _: Option<u32>| Box::pin(ready(RpcOutcome::Delivered)) as Delivery;
    let (asked, answered) = (HeartbeatSender(delivered), HeartbeatReceiver(delivered));
    let outcome = |mut delivery: Delivery| delivery.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(outcome(asked.request_heartbeat(&"me", None)), Poll::Ready(RpcOutcome::Delivered));
    assert_eq!(outcome(asked.receive_heartbeat(&"me", None)), Poll::Ready(RpcOutcome::Other));
    assert_eq!(outcome(answered.receive_heartbeat(&"me", None)), Poll::Ready(RpcOutcome::Delivered));
    assert_eq!(outcome(answered.request_heartbeat(&"me", None)), Poll::Ready(RpcOutcome::Other));
}
