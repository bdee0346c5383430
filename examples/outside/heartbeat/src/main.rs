//! Watches a worker that answers once and then falls silent, on a clock that this program makes up.

use heartbeat::{Effect, HeartbeatOptions, HeartbeatServices};
use runtime_core::{EpochMillis, Incarnation, Tick};

fn main() -> Result<(), heartbeat::OptionError> {
    let services = HeartbeatServices::new(HeartbeatOptions::default())?;
    let mut workers = services.create_heartbeat_manager_sender("worker");
    let (worker, life) = ("worker-1", Incarnation::from_u128(7));
    workers.monitor_target(worker, life, Tick::ZERO);
    let mut verdict = None;
    let mut now = Tick::ZERO;
    while verdict.is_none() {
        for effect in workers.advance(now) {
            match effect {
                Effect::Request { id, .. } if now == Tick::ZERO => {
                    println!("{id} is asked and answers");
                    workers.receive_heartbeat(&worker, &life, Tick::from_millis(100), EpochMillis(100));
                }
                Effect::Request { id, .. } => println!("{id} is asked at {now:?}"),
                Effect::Verdict(found) => verdict = Some(found.to_string()),
                _ => println!("the options switch on nothing else"),
            }
        }
        now = workers.next_wakeup().unwrap_or(now);
    }
    let verdict = verdict.unwrap_or_default();
    assert_eq!(verdict, "heartbeat of worker worker-1 timed out: last heard 50.0 s ago, 0 failed calls");
    println!("{verdict}");
    Ok(())
}
