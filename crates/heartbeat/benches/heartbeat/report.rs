//! Medians, ours and the peers' in turn, as a table or as JSON lines.

use crate::peers::Peer;
use std::fmt::Write as _;

struct Row {
    bench: String,
    unit: &'static str,
    ours: f64,
    peers: Vec<(Peer, f64)>,
}

pub(crate) struct Report {
    json: bool,
    runs: usize,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) const fn new(json: bool, runs: usize) -> Self {
        Self { json, runs, rows: Vec::new() }
    }

    /// Measures ours (`None`) and each peer, run by run.
    pub(crate) fn measure(
        &mut self,
        bench: &str,
        unit: &'static str,
        mut run: impl FnMut(Option<Peer>) -> f64,
    ) {
        let (mut ours, mut peers) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..self.runs {
            ours.push(run(None));
            for (peer, values) in Peer::ALL.into_iter().zip(&mut peers) {
                values.push(run(Some(peer)));
            }
        }
        let peers = Peer::ALL.into_iter().zip(peers).map(|(peer, values)| (peer, median(values))).collect();
        self.rows.push(Row { bench: bench.into(), unit, ours: median(ours), peers });
    }

    pub(crate) fn print(&self) {
        for row in &self.rows {
            // Every figure here is a cost: the smaller the better.
            let ratio = |peer: f64| peer / row.ours;
            if self.json {
                for (peer, value) in &row.peers {
                    println!(
                        r#"{{"bench":"{}","value":{},"unit":"{}","peer":"{}","peer_value":{value},"ratio":{:.3},"runs":{}}}"#,
                        row.bench,
                        row.ours,
                        row.unit,
                        peer.name(),
                        ratio(*value),
                        self.runs
                    );
                }
            } else {
                let mut line = format!("{:<42} {:>9.2} {:<12}", row.bench, row.ours, row.unit);
                for (peer, value) in &row.peers {
                    let _ = write!(line, " {} {value:.2} ({:.1}x)", peer.name(), ratio(*value));
                }
                println!("{line}");
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
