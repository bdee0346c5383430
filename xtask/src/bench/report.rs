//! The rows of a report: printed for people, and written one JSON object a line.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    bench: String,
    value: f64,
    unit: String,
    peer: Option<String>,
    peer_value: Option<f64>,
    /// Above 1 ours is better.
    ratio: Option<f64>,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

/// Which of two figures is the better one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Better {
    /// As of a rate.
    Higher,
    /// As of a cost.
    Lower,
}

/// What a figure has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// At least this ratio to the peer.
    Ratio(f64),
    /// At most this value.
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64, ratio: Option<f64>) -> bool {
        match self {
            Self::Ratio(least) => ratio.is_some_and(|ratio| ratio >= least),
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(least) => write!(f, ">= {least:.2}x"),
            Self::AtMost(most) => write!(f, "<= {most}"),
        }
    }
}

/// The same figure of somebody else, from the same rounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer<'a> {
    pub(super) name: &'a str,
    pub(super) runs: &'a [f64],
}

/// Where figures go.
pub(super) struct Report {
    file: Option<File>,
}

impl Report {
    /// To people, and to a file if there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn to(path: Option<&Path>) -> anyhow::Result<Self> {
        let create =
            |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        Ok(Self { file: path.map(create).transpose()? })
    }

    /// The median of some runs.
    ///
    /// # Errors
    /// There was no run, or the file cannot be written.
    pub(super) fn median(
        &mut self,
        bench: impl Into<String>,
        unit: &'static str,
        runs: &[f64],
    ) -> anyhow::Result<()> {
        let value = median(runs).context("nothing was measured")?;
        let bench = bench.into();
        let (peer, peer_value, ratio, target, met) = (None, None, None, None, None);
        let unit = unit.to_owned();
        let row = Row { bench, value, unit, peer, peer_value, ratio, runs: runs.len(), target, met };
        println!("{:<60} {:>12} {}", row.bench, shown(row.value), row.unit);
        self.write(&row)
    }

    /// The medians of some runs and of a peer's, and whether they are what they have to be. Says that too.
    ///
    /// # Errors
    /// There was no run, or the file cannot be written.
    pub(super) fn compared(
        &mut self,
        bench: &str,
        (unit, better): (&'static str, Better),
        runs: &[f64],
        peer: Option<Peer<'_>>,
        target: Option<Target>,
    ) -> anyhow::Result<Option<bool>> {
        let value = median(runs).with_context(|| format!("{bench} was not measured"))?;
        let peer_value = peer.and_then(|peer| median(peer.runs));
        let ratio = peer_value.map(|peer_value| match better {
            Better::Higher => value / peer_value,
            Better::Lower => peer_value / value,
        });
        let ratio = ratio.filter(|ratio| ratio.is_finite());
        let met = target.map(|target| target.is_met(value, ratio));
        let beside = peer.zip(peer_value).map_or_else(String::new, |(peer, value)| {
            let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
            format!("{ratio:>8} of {} {}{}", peer.name, shown(value), range(peer.runs))
        });
        let judged = match (target, met) {
            (Some(target), Some(true)) => format!("  {target}: met"),
            (Some(target), _) => format!("  {target}: MISSED"),
            (None, _) => String::new(),
        };
        println!("{bench:<58} {:>10}{} {unit} {beside}{judged}", shown(value), range(runs));
        let row = Row {
            bench: bench.to_owned(),
            value,
            unit: unit.to_owned(),
            peer: peer.map(|peer| peer.name.to_owned()),
            peer_value,
            ratio,
            runs: runs.len(),
            target: target.map(|target| target.to_string()),
            met,
        };
        self.write(&row)?;
        Ok(met)
    }

    /// A median that was taken elsewhere, of ours or of a peer beside it. A ratio above 1 says that ours is better.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn beside(
        &mut self,
        bench: &str,
        unit: &str,
        peer: &str,
        value: f64,
        ratio: f64,
        runs: usize,
    ) -> anyhow::Result<()> {
        println!("{bench:<48} {peer:<18} {:>12} {unit:<9} {ratio:>6.2}", shown(value));
        self.write(&Row {
            bench: bench.to_owned(),
            value,
            unit: unit.to_owned(),
            peer: Some(peer.to_owned()),
            peer_value: None,
            ratio: Some(ratio),
            runs,
            target: None,
            met: None,
        })
    }

    fn write(&mut self, row: &Row) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(row)?)?;
        }
        Ok(())
    }
}

fn median(runs: &[f64]) -> Option<f64> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let above = sorted.get(sorted.len() / 2).copied()?;
    if sorted.len() % 2 == 1 {
        return Some(above);
    }
    sorted.get(sorted.len() / 2 - 1).map(|below| f64::midpoint(*below, above))
}

/// From the least to the greatest, if there was more than one run.
fn range(runs: &[f64]) -> String {
    let least = runs.iter().copied().min_by(f64::total_cmp);
    let greatest = runs.iter().copied().max_by(f64::total_cmp);
    match least.zip(greatest) {
        Some((least, greatest)) if runs.len() > 1 => format!(" [{}..{}]", shown(least), shown(greatest)),
        _ => String::new(),
    }
}

fn shown(value: f64) -> String {
    match value {
        1e6.. => format!("{:.2}M", value / 1e6),
        1e3.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_row_is_one_json_object_on_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures");
        let mut report = Report::to(Some(&path)).unwrap();
        report.median("a/b", "MB", &[1.5]).unwrap();
        report.median("c", "ms", &[2.0, 4.0]).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"bench\":\"a/b\",\"value\":1.5,\"unit\":\"MB\",\"peer\":null,\"peer_value\":null,\"ratio\":null,\"runs\":1}\n\
             {\"bench\":\"c\",\"value\":3.0,\"unit\":\"ms\",\"peer\":null,\"peer_value\":null,\"ratio\":null,\"runs\":2}\n"
        );
    }

    #[test]
    fn a_ratio_above_one_is_better_whatever_the_figure() {
        let mut report = Report::to(None).unwrap();
        let mut judge = |better, ours: f64, peers: f64| {
            let peer = Peer { name: "peer", runs: &[peers] };
            report.compared("a", ("u", better), &[ours], Some(peer), Some(Target::Ratio(2.0))).unwrap()
        };
        assert_eq!(judge(Better::Higher, 20.0, 10.0), Some(true));
        assert_eq!(judge(Better::Higher, 19.0, 10.0), Some(false));
        assert_eq!(judge(Better::Lower, 5.0, 10.0), Some(true));
        assert_eq!(judge(Better::Lower, 10.0, 5.0), Some(false));
    }

    #[test]
    fn a_value_is_judged_without_a_peer_and_a_ratio_is_missed_without_one() {
        let mut report = Report::to(None).unwrap();
        let mut judge =
            |value, target| report.compared("a", ("ns", Better::Lower), &[value], None, target).unwrap();
        assert_eq!(judge(0.0, Some(Target::AtMost(0.0))), Some(true));
        assert_eq!(judge(15.1, Some(Target::AtMost(15.0))), Some(false));
        assert_eq!(judge(1.0, Some(Target::Ratio(1.0))), Some(false));
        assert_eq!(judge(1.0, None), None);
    }

    #[test]
    fn a_comparison_says_whose_figure_it_is_and_what_it_has_to_reach() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures");
        let mut report = Report::to(Some(&path)).unwrap();
        let peer = Peer { name: "peer", runs: &[2.0, 8.0, 4.0] };
        report
            .compared("a", ("/s", Better::Higher), &[9.0, 8.0, 10.0], Some(peer), Some(Target::Ratio(2.0)))
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"bench\":\"a\",\"value\":9.0,\"unit\":\"/s\",\"peer\":\"peer\",\"peer_value\":4.0,\"ratio\":2.25,\
             \"runs\":3,\"target\":\">= 2.00x\",\"met\":true}\n"
        );
    }
}
