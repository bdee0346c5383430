//! A master watches two workers over a network in memory, on a clock that is paused: the two minutes take no time.
//!
//! `cargo run -p heartbeat --example in_memory`. After 30 s the link to the first worker is cut in one direction: its
//! requests are lost, so it stops its outputs when its lease ends, and only then is it given up. After 60 s the process of
//! the second is killed. Both are started again, as other lives of themselves, after 90 s.

use heartbeat::{
    Effect, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices, InMemoryNetwork, LivenessFrame,
    RpcOutcome, SelfFence,
};
use runtime_core::{Clock, EpochMillis, Tick, time::TokioClock};
use std::time::Duration;

const MASTER: &str = "master";

fn frame(life: u32, sequence: u64, sent_at: Tick, echo: Option<Tick>) -> LivenessFrame<u32> {
    let (main_loop_age, stall) = (Duration::ZERO, Duration::ZERO);
    LivenessFrame { incarnation: life, sequence, sent_at, main_loop_age, stall, echo }
}

/// A worker answers every request, and has outputs while its lease lasts.
struct Worker {
    id: &'static str,
    life: u32,
    sequence: u64,
    fence: Option<SelfFence>,
}

/// The master's view of a worker: what it last heard from it goes back with the next request.
#[derive(Default)]
struct Heard {
    echo: Option<Tick>,
    requests: u64,
}

struct World {
    clock: TokioClock,
    network: InMemoryNetwork<&'static str, LivenessFrame<u32>>,
    manager: HeartbeatManagerSender<&'static str, u32>,
    workers: [(Worker, Heard); 2],
}

impl World {
    fn say(&self, what: impl std::fmt::Display) {
        println!("{:>6.1} s  {what}", self.clock.now().since(Tick::ZERO).as_secs_f64());
    }

    /// The master's loop turns.
    fn advance(&mut self) {
        let now = self.clock.now();
        for effect in self.manager.advance(now) {
            match effect {
                Effect::Request { id, incarnation } => {
                    let Some((_, heard)) = self.workers.iter_mut().find(|(worker, _)| worker.id == id) else {
                        continue;
                    };
                    heard.requests += 1;
                    let request = frame(1, heard.requests, now, heard.echo);
                    let outcome = self.network.send(MASTER, id, request, now);
                    if let Some(verdict) = self.manager.rpc_outcome(&id, &incarnation, outcome, now) {
                        self.lost(&verdict);
                    }
                }
                Effect::Verdict(verdict) => self.lost(&verdict),
                other => self.say(other),
            }
        }
    }

    fn lost(&mut self, verdict: &heartbeat::Verdict<&'static str, u32>) {
        self.say(verdict);
        self.manager.unmonitor_target(&verdict.id);
    }

    /// What has arrived is read, by the master and by the workers.
    fn read(&mut self) {
        let now = self.clock.now();
        while let Some(arrived) = self.network.arrive(now) {
            let peer = if arrived.to == MASTER { arrived.from } else { arrived.to };
            let Some((worker, heard)) = self.workers.iter_mut().find(|(worker, _)| worker.id == peer) else {
                continue;
            };
            if arrived.to == MASTER {
                heard.echo = heard.echo.max(Some(arrived.message.sent_at));
                self.manager.receive_frame(&peer, &arrived.message, now);
                continue;
            }
            if let (Some(fence), Some(echo)) = (&mut worker.fence, arrived.message.echo) {
                fence.renew(echo);
            }
            worker.sequence += 1;
            let answer = frame(worker.life, worker.sequence, now, None);
            let _sent: RpcOutcome = self.network.send(worker.id, MASTER, answer, now);
        }
        let due = |(worker, _): &mut (Worker, Heard)| {
            worker.fence.take_if(|fence| fence.is_due(now)).map(|_| worker.id)
        };
        for id in self.workers.each_mut().map(due).into_iter().flatten() {
            self.say(format_args!("{id} stops its outputs: its lease has ended"));
        }
    }

    fn start(&mut self, services: &HeartbeatServices, life: u32) {
        let now = self.clock.now();
        for (worker, heard) in &mut self.workers {
            *heard = Heard::default();
            (worker.life, worker.sequence, worker.fence) = (life, 0, services.self_fence(now));
            self.network.start(worker.id);
            self.network.heal(MASTER, worker.id);
            self.manager.monitor_target(worker.id, life, now);
        }
        self.say(format_args!("life {life} of both workers is monitored"));
    }

    fn next(&self) -> Option<Tick> {
        let leases = self.workers.iter().filter_map(|(worker, _)| Some(worker.fence?.deadline()));
        [self.manager.next_wakeup(), self.network.next_arrival()].into_iter().flatten().chain(leases).min()
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), heartbeat::OptionError> {
    let services = HeartbeatServices::new(HeartbeatOptions {
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(25),
        suspicion: true,
        own_stall_guard: true,
        self_fence: true,
        ..HeartbeatOptions::default()
    })?;
    let worker = |id| (Worker { id, life: 0, sequence: 0, fence: None }, Heard::default());
    let mut world = World {
        clock: TokioClock::start_at(EpochMillis(1_700_000_000_000)),
        network: InMemoryNetwork::new(7).latency(Duration::from_millis(1), Duration::from_millis(40)),
        manager: services.create_heartbeat_manager_sender("worker"),
        workers: [worker("first"), worker("second")],
    };
    world.network.start(MASTER);
    world.start(&services, 1);
    let at = |second: u64| Tick::from_millis(second * 1_000);
    let mut script =
        [at(30), at(60), at(90), at(120)].into_iter().zip(["cut", "kill", "again", "end"]).peekable();
    while let Some((at, what)) = script.peek().copied() {
        let wakeup = world.next().map_or(at, |wakeup| wakeup.min(at));
        world.clock.sleep_until(wakeup).await;
        // What came in is read before anybody is judged.
        world.read();
        world.advance();
        if world.clock.now() < at {
            continue;
        }
        script.next();
        match what {
            "cut" => {
                world.say("the link from the master to first is cut");
                world.network.cut(MASTER, "first");
            }
            "kill" => {
                world.say("the process of second is killed");
                world.network.kill("second");
                let [_, (second, _)] = &mut world.workers;
                second.fence = None;
            }
            "again" => world.start(&services, 2),
            _ => world.say("the end"),
        }
    }
    Ok(())
}
