//! The manager against a plain model: a map of deadlines that is searched from end to end.

mod support;

use heartbeat::{Effect, HeartbeatManager, Reason, RpcOutcome};
use proptest::prelude::*;
use runtime_core::Tick;
use std::collections::BTreeMap;
use std::time::Duration;
use support::{ms, services, wall};

const TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
enum Step {
    Monitor(u8, u8),
    Unmonitor(u8),
    Heartbeat(u8, u8),
    Outcome(u8, u8, RpcOutcome),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome =
        prop_oneof![Just(RpcOutcome::Delivered), Just(RpcOutcome::Unreachable), Just(RpcOutcome::Other)];
    prop_oneof![
        2 => (0..4_u8, 0..2_u8).prop_map(|(id, life)| Step::Monitor(id, life)),
        1 => (0..4_u8).prop_map(Step::Unmonitor),
        4 => (0..4_u8, 0..2_u8).prop_map(|(id, life)| Step::Heartbeat(id, life)),
        3 => (0..4_u8, 0..2_u8, outcome).prop_map(|(id, life, outcome)| Step::Outcome(id, life, outcome)),
        4 => (0..60_u64).prop_map(Step::Pass),
        1 => (60..300_u64).prop_map(Step::Pass),
    ]
}

struct Plain {
    life: u8,
    deadline: Tick,
    failures: u32,
    judged: bool,
}

proptest! {
    /// A failing run prints the steps and the seed that repeats them.
    #[test]
    fn verdicts_are_those_of_a_plain_model(steps in prop::collection::vec(step(), 0..150)) {
        let mut manager: HeartbeatManager<u8, u8> = services(10, 100, 2).unwrap().create_heartbeat_manager("peer");
        let mut model: BTreeMap<u8, Plain> = BTreeMap::new();
        let mut now = ms(0);
        for step in steps {
            match step {
                Step::Monitor(id, life) => {
                    manager.monitor_target(id, life, now);
                    if model.get(&id).is_none_or(|plain| plain.life != life) {
                        model.insert(id, Plain { life, deadline: now + TIMEOUT, failures: 0, judged: false });
                    }
                }
                Step::Unmonitor(id) => prop_assert_eq!(manager.unmonitor_target(&id), model.remove(&id).is_some()),
                Step::Heartbeat(id, life) => {
                    manager.receive_heartbeat(&id, &life, now, wall(0));
                    if let Some(plain) = model.get_mut(&id).filter(|plain| plain.life == life) {
                        plain.deadline = now + TIMEOUT;
                    }
                }
                Step::Outcome(id, life, outcome) => {
                    let verdict = manager.rpc_outcome(&id, &life, outcome, now);
                    let mut expected = false;
                    if let Some(plain) = model.get_mut(&id).filter(|plain| plain.life == life) {
                        match outcome {
                            RpcOutcome::Delivered => plain.failures = 0,
                            RpcOutcome::Unreachable => plain.failures += 1,
                            RpcOutcome::Other => {}
                        }
                        expected = plain.failures >= 2 && !plain.judged;
                        plain.judged |= expected;
                    }
                    prop_assert_eq!(verdict.map(|v| (v.id, v.reason)), expected.then_some((id, Reason::Unreachable)));
                }
                Step::Pass(millis) => {
                    now = now + Duration::from_millis(millis);
                    let mut verdicts: Vec<(u8, u8)> =
                        manager.advance(now).into_iter().filter_map(Effect::verdict).map(|v| (v.id, v.incarnation)).collect();
                    verdicts.sort_unstable();
                    let mut expected = Vec::new();
                    for (id, plain) in model.iter_mut().filter(|(_, plain)| !plain.judged && plain.deadline <= now) {
                        plain.judged = true;
                        expected.push((*id, plain.life));
                    }
                    prop_assert_eq!(verdicts, expected);
                }
            }
            let earliest = model.values().filter(|plain| !plain.judged).map(|plain| plain.deadline).min();
            prop_assert_eq!(manager.next_wakeup().is_some(), earliest.is_some());
            prop_assert!(manager.next_wakeup() <= earliest);
        }
    }
}
