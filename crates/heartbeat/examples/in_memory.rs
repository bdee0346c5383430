//! A master watches two workers over channels, on a clock that is paused: the minute takes no time.
//!
//! `cargo run -p heartbeat --example in_memory`. The loops are what an owner's loop looks like: take what came in, advance
//! when it is time, carry the effects out. One worker falls silent after 12 s, the other one's process goes away after 30 s.

use heartbeat::{Effect, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices, RpcOutcome};
use runtime_core::{Clock, EpochMillis, Tick, time::TokioClock};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;

/// A heartbeat on the wire: from whom, and which of its lives.
type Beat = (&'static str, u32);

async fn master(
    clock: TokioClock,
    mut manager: HeartbeatManagerSender<&'static str, u32>,
    workers: BTreeMap<&'static str, mpsc::Sender<Beat>>,
    mut answers: mpsc::Receiver<Beat>,
) {
    for id in workers.keys() {
        manager.monitor_target(id, 1, clock.now());
    }
    while let Some(wakeup) = manager.next_wakeup() {
        tokio::select! {
            // Biased: what came in is noted before anybody is judged.
            biased;
            Some((id, life)) = answers.recv() => {
                manager.receive_heartbeat(&id, &life, clock.now(), clock.wall());
            }
            () = clock.sleep_until(wakeup) => {
                for effect in manager.advance(clock.now()) {
                    let verdict = match effect {
                        Effect::Verdict(verdict) => Some(verdict),
                        Effect::Request { id, incarnation } => {
                            let sent = workers.get(id).is_some_and(|worker| worker.try_send(("master", 1)).is_ok());
                            let outcome = if sent { RpcOutcome::Delivered } else { RpcOutcome::Unreachable };
                            manager.rpc_outcome(&id, &incarnation, outcome, clock.now())
                        }
                        // The options switch on nothing else.
                        _ => None,
                    };
                    if let Some(verdict) = verdict {
                        println!("{:>5.1} s  {verdict}", clock.now().since(Tick::ZERO).as_secs_f64());
                        manager.unmonitor_target(&verdict.id);
                    }
                }
            }
        }
    }
}

/// Answers requests until `silent_from`, and is gone at `gone_at`.
async fn worker(
    id: &'static str,
    clock: TokioClock,
    silent_from: Tick,
    gone_at: Tick,
    mut requests: mpsc::Receiver<Beat>,
    master: mpsc::Sender<Beat>,
) {
    loop {
        tokio::select! {
            biased;
            () = clock.sleep_until(gone_at) => return,
            request = requests.recv() => {
                if request.is_none() || (clock.now() < silent_from && master.send((id, 1)).await.is_err()) {
                    return;
                }
            }
        }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), heartbeat::OptionError> {
    let services = HeartbeatServices::new(HeartbeatOptions {
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(25),
        ..HeartbeatOptions::default()
    })?;
    let clock = TokioClock::start_at(EpochMillis(1_700_000_000_000));
    let (to_master, answers) = mpsc::channel(16);
    let mut workers = BTreeMap::new();
    for (id, silent_from, gone_at) in
        [("silent", Tick::from_millis(12_000), Tick::MAX), ("gone", Tick::MAX, Tick::from_millis(30_000))]
    {
        let (to_worker, requests) = mpsc::channel(16);
        workers.insert(id, to_worker);
        tokio::spawn(worker(id, clock.clone(), silent_from, gone_at, requests, to_master.clone()));
    }
    drop(to_master);
    master(clock, services.create_heartbeat_manager_sender("worker"), workers, answers).await;
    println!("both workers are lost");
    Ok(())
}
