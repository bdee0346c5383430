//! The Java peers, where they are at hand: a process each, with the loads and the warm-up of their own harness.

use std::process::Command;

/// What is found on the class path.
pub(crate) struct Java {
    class_path: String,
    pub(crate) peers: Vec<Peer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The classic queue of Kafka's controller, re-created.
    Classic,
    /// Kafka's own `KafkaEventQueue`.
    Kafka,
}

impl Peer {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Classic => "java-classic",
            Self::Kafka => "kafka",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Classic => "ClassicQueue",
            Self::Kafka => "KafkaQueue",
        }
    }
}

impl Java {
    pub(crate) fn at(class_path: String) -> Result<Self, String> {
        let mut java = Self { class_path, peers: Vec::new() };
        for peer in [Peer::Classic, Peer::Kafka] {
            // The first few events tell whether its classes are there.
            if java.run(peer, &["burst", "1", "1000"]).is_ok() {
                java.peers.push(peer);
            }
        }
        if java.peers.is_empty() {
            Err(format!("no Java peer runs with the class path {}", java.class_path))
        } else {
            Ok(java)
        }
    }

    /// Events a second.
    pub(crate) fn throughput(
        &self,
        peer: Peer,
        load: &str,
        producers: u64,
        events: u64,
    ) -> Result<f64, String> {
        number(&self.run(peer, &[load, &producers.to_string(), &events.to_string()])?, "events_per_s")
    }

    /// Median and 99th of a hundred, in nanoseconds.
    pub(crate) fn latency(&self, peer: Peer, events: usize) -> Result<(f64, f64), String> {
        let text = self.run(peer, &["latency", "10000", &events.to_string()])?;
        Ok((number(&text, "p50_us")? * 1e3, number(&text, "p99_us")? * 1e3))
    }

    /// Nanoseconds to schedule, to schedule again and to cancel; Kafka only.
    pub(crate) fn timers(&self, size: u64) -> Result<[f64; 3], String> {
        let text = self.run(Peer::Kafka, &["timers", &size.to_string(), "distinct"])?;
        Ok([number(&text, "schedule")?, number(&text, "schedule-again")?, number(&text, "cancel")?])
    }

    fn run(&self, peer: Peer, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("java")
            .args(["-Xms4g", "-Xmx4g", "-XX:+UseParallelGC", "-cp", &self.class_path, peer.class()])
            .args(arguments)
            .env("REPS", "1")
            .output()
            .map_err(|error| format!("java: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("{}: {}", peer.name(), String::from_utf8_lossy(&output.stderr)))
        }
    }
}

fn number(text: &str, name: &str) -> Result<f64, String> {
    let found = text.split(&format!("\"{name}\":")).nth(1).and_then(|rest| rest.split([',', '}']).next());
    found.and_then(|number| number.trim().parse().ok()).ok_or(format!("java printed no {name}: {text}"))
}
