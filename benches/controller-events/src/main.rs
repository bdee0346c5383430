//! `controller-events` beside channels and actors, in one run.
//!
//! A producer's thread appends events, the consumer's runs them in order; all peers get the same events, by value or
//! boxed, and the rounds are the outer loop, so that a slow minute of the machine hits everybody. Ours has its metrics on,
//! as it always has. Each row is the median of the rounds, printed as one JSON object a line with the ratio to ours.
//!
//! ```text
//! bench-controller-events [--quick] [--only burst|steady|latency|timers] [--peer NAME,..] [--rounds N] [--java PATH]
//! ```
//! PATH is a Java class path. What is found on it is measured in the same rounds: `ClassicQueue`, the classic queue of
//! Kafka's controller re-created, and `KafkaQueue` of the folder `java` with Kafka's own `KafkaEventQueue`.

mod java;
mod job;
mod latency;
mod peers;
mod report;
mod throughput;
mod timers;

use java::{Java, Peer};
use job::{Boxed, Plain};
use peers::Kind;
use report::Rows;

/// What to measure and how long.
struct Args {
    quick: bool,
    only: Option<String>,
    peer: Option<String>,
    rounds: usize,
    java: Option<String>,
}

fn args() -> Result<Args, String> {
    let mut args = Args { quick: false, only: None, peer: None, rounds: 5, java: None };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let mut value = || given.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--quick" => (args.quick, args.rounds) = (true, 1),
            "--only" => args.only = Some(value()?),
            "--peer" => args.peer = Some(value()?),
            "--rounds" => args.rounds = value()?.parse().map_err(|_| "--rounds needs a number".to_owned())?,
            "--java" => args.java = Some(value()?),
            other => return Err(format!("unknown flag {other}")),
        }
    }
    Ok(args)
}

fn main() -> Result<(), String> {
    let args = args()?;
    let wanted = |what: &str| args.only.as_deref().is_none_or(|only| only == what);
    let named =
        |name: &str| args.peer.as_deref().is_none_or(|peers| peers.split(',').any(|peer| peer == name));
    let kinds = || Kind::ALL.into_iter().filter(|kind| named(kind.name()));
    let java = args.java.clone().map(Java::at).transpose()?;
    let java_peers = || {
        let all = java.iter().flat_map(|java| java.peers.iter().map(move |peer| (java, *peer)));
        all.filter(|(_, peer)| named(peer.name()))
    };
    let mut rows = Rows::default();
    let events = if args.quick { 200_000 } else { 2_000_000 };
    for round in 0..args.rounds {
        for load in ["burst", "steady"].into_iter().filter(|load| wanted(load)) {
            for producers in [1, 2, 4] {
                for kind in kinds() {
                    let events = events / kind.times_slower();
                    if kind.takes_values() {
                        let rate = throughput::measure::<Plain>(kind, load, producers, events);
                        rows.rate(format!("{load}/{producers}/value"), kind.name(), rate);
                    }
                    let rate = throughput::measure::<Boxed>(kind, load, producers, events);
                    rows.rate(format!("{load}/{producers}/boxed"), kind.name(), rate);
                }
                for (java, peer) in java_peers() {
                    let rate = java.throughput(peer, load, producers, events)?;
                    rows.rate(format!("{load}/{producers}/boxed"), peer.name(), rate);
                }
            }
        }
        if wanted("latency") {
            for kind in kinds().filter(|kind| *kind != Kind::OursWithTickets) {
                let (p50, p99) = latency::measure(kind, if args.quick { 500 } else { 5_000 });
                rows.nanos("latency/p50".to_owned(), kind.name(), p50);
                rows.nanos("latency/p99".to_owned(), kind.name(), p99);
            }
            for (java, peer) in java_peers() {
                let (p50, p99) = java.latency(peer, if args.quick { 500 } else { 5_000 })?;
                rows.nanos("latency/p50".to_owned(), peer.name(), p50);
                rows.nanos("latency/p99".to_owned(), peer.name(), p99);
            }
        }
        if wanted("timers") {
            timers::measure(args.quick, &mut rows);
            for (java, _) in java_peers().filter(|(_, peer)| *peer == Peer::Kafka) {
                for size in if args.quick { &[10_000][..] } else { &[10_000, 100_000] } {
                    for (what, nanos) in timers::STEPS.into_iter().zip(java.timers(*size)?) {
                        rows.nanos(format!("timers/{what}/{size}/distinct"), Peer::Kafka.name(), nanos);
                    }
                }
            }
        }
        eprintln!("round {} of {} done", round + 1, args.rounds);
    }
    rows.print();
    Ok(())
}
