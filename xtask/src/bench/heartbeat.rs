//! What a heartbeat costs, beside other timers and beside Flink's manager: the benchmark of the crate in rounds, and what
//! the medians have to reach.
//!
//! The rounds are the outer loop, so that a slow minute of the machine hits everybody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::flink::Flink;
use super::report::{Better, Peer, Report, Target};
use crate::workspace::cargo;

const FLINK: &str = "flink";
const SIZES: [u64; 3] = [1_000, 10_000, 100_000];
/// What is measured, its unit, and the most that it may be at each size.
const ROWS: [(&str, &str, [Option<f64>; 3]); 5] = [
    ("receive-id", "ns", [Some(20.0), Some(30.0), Some(60.0)]),
    ("receive-handle", "ns", [Some(5.0), Some(5.0), Some(15.0)]),
    ("bytes", "bytes", [Some(128.0), Some(128.0), Some(128.0)]),
    ("cpu", "% of a core", [None, None, Some(5.0)]),
    ("lateness-p99", "ms", [None, Some(2.0), Some(10.0)]),
];

#[derive(Deserialize)]
struct Line {
    bench: String,
    value: f64,
    peer: Option<String>,
    peer_value: Option<f64>,
}

/// Measures and reports.
///
/// # Errors
/// The benchmark does not build or fails, or Flink's programs do.
pub(super) fn measure(rounds: usize, flink: Option<&Path>, report: &mut Report) -> anyhow::Result<()> {
    let flink = flink.map(Flink::prepare).transpose()?;
    let program = build()?;
    let mut results = Results::default();
    for round in 1..=rounds {
        eprintln!("heartbeat: round {round} of {rounds}");
        let output = Command::new(&program).args(["--bench", "--json", "--quick"]).output();
        let output = output.context("cannot start the benchmark of heartbeat")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the benchmark of heartbeat failed: {}", said.trim());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let line: Line =
                serde_json::from_str(line).with_context(|| format!("the benchmark printed: {line}"))?;
            results.take(line, round);
        }
        if let Some(flink) = &flink {
            for size in SIZES {
                ask(flink, size, round, &mut results)?;
            }
        }
    }
    print(&results, report)
}

/// The benchmark as cargo builds benches.
fn build() -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command.args(["bench", "--no-run", "--package", "heartbeat", "--bench", "heartbeat"]);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the benchmark of heartbeat cannot be built");
    let messages = String::from_utf8(output.stdout).context("what cargo printed")?;
    messages.lines().find_map(executable).context("cargo tells no program")
}

/// The program that this message of cargo's is about. The library has the same name.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    (message.pointer("/target/kind/0")? == "bench").then_some(())?;
    message.get("executable")?.as_str().map(PathBuf::from)
}

/// Runs Flink's manager once at one size, on the timer service that its RPC endpoints use. Its virtual machine has 4 GB:
/// cancelled timers stay in its queue until they are due.
fn ask(flink: &Flink, size: u64, round: usize, results: &mut Results) -> anyhow::Result<()> {
    // What a sender uses takes twenty seconds at each size and varies little: once is enough.
    let works = ["reset", "memory", "accuracy", "cpu"];
    for work in works.into_iter().filter(|work| round == 1 || *work != "cpu") {
        let args = [work.to_owned(), size.to_string(), FLINK.to_owned()];
        for line in flink.java("HeartbeatBench", &args, Some("-Xms4g -Xmx4g"))? {
            for (row, value) in figures(work, size, &line)? {
                results.theirs(&name(row, size), FLINK, value);
            }
        }
    }
    Ok(())
}

/// The rows that a line of Flink's is about, in their units.
fn figures(work: &str, size: u64, line: &Value) -> anyhow::Result<Vec<(&'static str, f64)>> {
    let member = |name: &str| {
        let figure = line.get(name).and_then(Value::as_f64);
        figure.with_context(|| format!("no `{name}` in {line}"))
    };
    Ok(match work {
        // It knows targets by name alone.
        "reset" => {
            vec![("receive-id", member("ns_per_heartbeat")?), ("receive-handle", member("ns_per_heartbeat")?)]
        }
        "memory" => vec![("bytes", member("bytes_per_target_after_5")?)],
        "accuracy" => vec![("lateness-p99", member("late_us_p99")? / 1e3)],
        // Measured at an interval of a second; here a heartbeat comes every ten.
        _ => vec![("cpu", member("cpu_us_per_heartbeat")? * size as f64 / 10.0 / 1e6 * 100.0)],
    })
}

fn name(row: &str, size: u64) -> String {
    format!("heartbeat/{row}/targets={size}")
}

/// The figures of each row, a round each: ours, and those of each peer.
#[derive(Default)]
struct Results {
    ours: BTreeMap<String, (usize, Vec<f64>)>,
    theirs: BTreeMap<String, Vec<(String, Vec<f64>)>>,
}

impl Results {
    fn take(&mut self, line: Line, round: usize) {
        // Ours stands beside each peer's.
        let (last, ours) = self.ours.entry(line.bench.clone()).or_default();
        if std::mem::replace(last, round) != round {
            ours.push(line.value);
        }
        if let (Some(peer), Some(value)) = (line.peer, line.peer_value) {
            self.theirs(&line.bench, &peer, value);
        }
    }

    fn theirs(&mut self, bench: &str, peer: &str, value: f64) {
        let peers = self.theirs.entry(bench.to_owned()).or_default();
        match peers.iter_mut().find(|(name, _)| name == peer) {
            Some((_, runs)) => runs.push(value),
            None => peers.push((peer.to_owned(), vec![value])),
        }
    }
}

fn print(results: &Results, report: &mut Report) -> anyhow::Result<()> {
    let (mut met, mut missed) = (0, 0);
    for (row, unit, most) in ROWS {
        for (size, most) in SIZES.into_iter().zip(most) {
            let bench = name(row, size);
            let Some((_, ours)) = results.ours.get(&bench) else { continue };
            // Judged once, beside whichever peer is first.
            let mut target = most.map(Target::AtMost);
            let peers = results.theirs.get(&bench).map_or(&[][..], Vec::as_slice);
            let peers = peers.iter().map(|(name, runs)| Some(Peer { name, runs }));
            let alone = peers.len() == 0;
            for peer in peers.chain(alone.then_some(None)) {
                match report.compared(&bench, (unit, Better::Lower), ours, peer, target.take())? {
                    Some(true) => met += 1,
                    Some(false) => missed += 1,
                    None => {}
                }
            }
        }
    }
    println!("heartbeat: {met} targets met, {missed} missed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flinks_figures_are_told_in_our_units() {
        let line = serde_json::json!({"cpu_percent": 50.0, "cpu_us_per_heartbeat": 5.0});
        // 10,000 heartbeats a second at 5 microseconds.
        assert_eq!(figures("cpu", 100_000, &line).unwrap(), [("cpu", 5.0)]);
        let line = serde_json::json!({"late_us_p99": 600});
        assert_eq!(figures("accuracy", 1_000, &line).unwrap(), [("lateness-p99", 0.6)]);
        assert!(figures("reset", 1_000, &line).unwrap_err().to_string().contains("ns_per_heartbeat"));
    }

    #[test]
    fn ours_is_counted_once_a_round_however_many_peers_stand_beside_it() {
        let mut results = Results::default();
        for round in 1..=2 {
            for peer in ["a", "b"] {
                let line = Line {
                    bench: "row".into(),
                    value: f64::from(round),
                    peer: Some(peer.into()),
                    peer_value: Some(7.0),
                };
                results.take(line, round as usize);
            }
        }
        assert_eq!(results.ours.get("row").map(|(_, runs)| runs.as_slice()), Some(&[1.0, 2.0][..]));
        let peers = results.theirs.get("row").unwrap();
        assert_eq!(peers, &[("a".to_owned(), vec![7.0, 7.0]), ("b".to_owned(), vec![7.0, 7.0])]);
    }

    #[test]
    fn only_the_benchmarks_own_message_names_its_program() {
        let message = |kind: &str| {
            format!(r#"{{"target":{{"kind":["{kind}"],"name":"heartbeat"}},"executable":"a/b"}}"#)
        };
        assert_eq!(executable(&message("bench")), Some(PathBuf::from("a/b")));
        assert_eq!(executable(&message("lib")), None);
    }
}
