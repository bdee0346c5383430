//! Two processes that watch each other over UDP.
//!
//! `cargo run -p heartbeat --example udp` starts a second process of itself, lets both watch each other for two seconds, kills
//! the second and says how it noticed. To try it by hand, with SIGSTOP for instance, in two terminals:
//! `... udp 127.0.0.1:7001 127.0.0.1:7002` and `... udp 127.0.0.1:7002 127.0.0.1:7001`.
//!
//! A datagram is a mark, `?` for a request or `!` for an answer, and a liveness frame. Each side asks at its interval and
//! answers what it is asked. It first hears of the other's life by its first frame; another life takes the place of the old.

use heartbeat::{
    CallEnd, Effect, HeartbeatManagerSender, HeartbeatOptions, HeartbeatServices, LivenessFrame, RpcOutcome,
};
use runtime_core::{Clock, Incarnation, Tick, time::TokioClock};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};

const REQUEST: u8 = b'?';
const ANSWER: u8 = b'!';

struct Side {
    name: &'static str,
    clock: TokioClock,
    socket: UdpSocket,
    life: Incarnation,
    sequence: u64,
    manager: HeartbeatManagerSender<SocketAddr, Incarnation>,
    peer: SocketAddr,
    heard: Option<Tick>,
    monitored: bool,
}

impl Side {
    async fn new(name: &'static str, own: SocketAddr, peer: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let options = HeartbeatOptions {
            interval: Duration::from_millis(200),
            timeout: Duration::from_secs(1),
            suspicion: true,
            own_stall_guard: true,
            ..HeartbeatOptions::default()
        };
        let clock = TokioClock::start();
        let socket = UdpSocket::bind(own).await?;
        // A connected socket is told when the other port is closed.
        socket.connect(peer).await?;
        let life = u128::from(std::process::id()) << 64 | u128::from(clock.wall().0.unsigned_abs());
        let manager = HeartbeatServices::new(options)?.create_heartbeat_manager_sender("process");
        let life = Incarnation::from_u128(life);
        Ok(Self { name, clock, socket, life, sequence: 0, manager, peer, heard: None, monitored: false })
    }

    async fn send(&mut self, mark: u8) -> io::Result<()> {
        self.sequence += 1;
        let frame = LivenessFrame {
            incarnation: self.life,
            sequence: self.sequence,
            sent_at: self.clock.now(),
            main_loop_age: Duration::ZERO,
            stall: Duration::ZERO,
            echo: self.heard,
        };
        let mut datagram = vec![mark];
        datagram.extend(frame.encode());
        self.socket.send(&datagram).await.map(drop)
    }

    fn say(&self, what: impl std::fmt::Display) {
        println!("{:>5} ms  {}: {what}", self.clock.now().as_millis(), self.name);
    }

    /// Watches until the other side is lost, or until `ends`.
    async fn watch(&mut self, ends: Tick) -> io::Result<Option<String>> {
        let mut buffer = [0; 64];
        while self.clock.now() < ends {
            // While nobody is monitored, somebody has to say the first word.
            let hello = self.clock.now() + Duration::from_millis(100);
            let wakeup = if self.monitored { self.manager.next_wakeup().unwrap_or(ends) } else { hello };
            tokio::select! {
                biased;
                received = self.socket.recv(&mut buffer) => match received {
                    Ok(length) => self.received(buffer.get(..length).unwrap_or_default()).await?,
                    Err(error) => if let Some(verdict) = self.refused(&error) { return Ok(Some(verdict)); },
                },
                () = self.clock.sleep_until(wakeup.min(ends)) => {
                    if let Some(verdict) = self.advance().await { return Ok(Some(verdict)); }
                }
            }
        }
        Ok(None)
    }

    async fn received(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Some((mark, frame)) = datagram.split_first() else { return Ok(()) };
        let frame = match LivenessFrame::decode(frame) {
            Ok(frame) => frame,
            Err(error) => {
                self.say(error);
                return Ok(());
            }
        };
        let now = self.clock.now();
        if !self.monitored {
            self.say(format_args!("watches {}", self.peer));
            self.monitored = true;
        }
        self.manager.monitor_target(self.peer, frame.incarnation, now);
        self.manager.receive_frame(&self.peer, &frame, now);
        self.heard = Some(frame.sent_at);
        if *mark == REQUEST {
            self.send(ANSWER).await?;
        }
        Ok(())
    }

    fn refused(&mut self, error: &io::Error) -> Option<String> {
        let now = self.clock.now();
        let (_, life) = self.manager.targets().next()?;
        let life = *life;
        let end = CallEnd::failed(RpcOutcome::Unreachable, error);
        self.manager.rpc_outcome(&self.peer, &life, end, now).map(|verdict| verdict.to_string())
    }

    async fn advance(&mut self) -> Option<String> {
        if !self.monitored {
            // Nobody may be there yet.
            let _ = self.send(REQUEST).await;
        }
        for effect in self.manager.advance(self.clock.now()) {
            match effect {
                Effect::Request { .. } => {
                    if let Err(error) = self.send(REQUEST).await
                        && let Some(verdict) = self.refused(&error)
                    {
                        return Some(verdict);
                    }
                }
                Effect::Verdict(verdict) => return Some(verdict.to_string()),
                other => self.say(other),
            }
        }
        None
    }
}

fn second_process(own: SocketAddr, peer: SocketAddr) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args([own.to_string(), peer.to_string()])
        .kill_on_drop(true)
        .spawn()
}

fn free_port() -> io::Result<SocketAddr> {
    std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [own, peer] = &args[..] {
        let mut side = Side::new("second", own.parse()?, peer.parse()?).await?;
        while let Some(verdict) = side.watch(Tick::MAX).await? {
            side.say(verdict);
            side.manager.unmonitor_target(&side.peer.clone());
            side.monitored = false;
        }
        return Ok(());
    }
    let (own, peer) = (free_port()?, free_port()?);
    let mut side = Side::new("first", own, peer).await?;
    let mut second = second_process(peer, own)?;
    if let Some(verdict) = side.watch(Tick::from_millis(2_000)).await? {
        return Err(verdict.into());
    }
    side.say("kills the other process");
    second.kill().await?;
    let killed = side.clock.now();
    let verdict = side.watch(killed + Duration::from_secs(5)).await?.ok_or("nobody noticed")?;
    side.say(format_args!("after {} ms: {verdict}", side.clock.now().since(killed).as_millis()));
    Ok(())
}
