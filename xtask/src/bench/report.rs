//! The rows of a report: printed for people, and written one JSON object a line.

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
    unit: &'static str,
    peer: Option<String>,
    peer_value: Option<f64>,
    /// Above 1 ours is better.
    ratio: Option<f64>,
    runs: usize,
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
        let row = Row { bench, value, unit, peer: None, peer_value: None, ratio: None, runs: runs.len() };
        println!("{:<60} {:>12} {}", row.bench, shown(row.value), row.unit);
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&row)?)?;
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

fn shown(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
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
}
