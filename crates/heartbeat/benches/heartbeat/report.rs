//! Medians, ours and the peers' in turn, as a table or as JSON lines.

use crate::peers::Peer;
use std::fmt::Write as _;

pub(crate) struct Report {
    json: bool,
    runs: usize,
    only: Option<String>,
}

impl Report {
    pub(crate) const fn new(json: bool, runs: usize, only: Option<String>) -> Self {
        Self { json, runs, only }
    }

    fn is_wanted(&self, bench: &str) -> bool {
        // The dollar tells the thousand from the ten thousand.
        self.only.as_ref().is_none_or(|only| format!("{bench}$").contains(only))
    }

    /// Measures what no peer does.
    pub(crate) fn measure_alone(&self, bench: &str, unit: &str, run: impl FnMut() -> f64) {
        if !self.is_wanted(bench) {
            return;
        }
        let ours = median(std::iter::repeat_with(run).take(self.runs).collect());
        if self.json {
            let runs = self.runs;
            println!(
                r#"{{"bench":"{bench}","value":{ours},"unit":"{unit}","peer":null,"peer_value":null,"ratio":null,"runs":{runs}}}"#
            );
        } else {
            println!("{bench:<42} {ours:>9.3} {unit:<12}");
        }
    }

    /// Measures ours (`None`) and each peer, run by run, and prints the medians. Every figure here is a cost: the smaller the
    /// better.
    pub(crate) fn measure(&self, bench: &str, unit: &str, mut run: impl FnMut(Option<Peer>) -> f64) {
        if !self.is_wanted(bench) {
            return;
        }
        let (mut ours, mut peers) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..self.runs {
            ours.push(run(None));
            for (peer, values) in Peer::ALL.into_iter().zip(&mut peers) {
                values.push(run(Some(peer)));
            }
        }
        let ours = median(ours);
        let mut line = format!("{bench:<42} {ours:>9.3} {unit:<12}");
        for (peer, values) in Peer::ALL.into_iter().zip(peers) {
            let (peer, value) = (peer.name(), median(values));
            let (ratio, runs) = (value / ours, self.runs);
            if self.json {
                println!(
                    r#"{{"bench":"{bench}","value":{ours},"unit":"{unit}","peer":"{peer}","peer_value":{value},"ratio":{ratio:.3},"runs":{runs}}}"#
                );
            }
            let _ = write!(line, " {peer} {value:.3} ({ratio:.2}x)");
        }
        if !self.json {
            println!("{line}");
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
