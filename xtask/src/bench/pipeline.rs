//! File to file in one process: flights read, joined with their planes by a table call, written.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::flights;
use testkit::join::{self, Digest};
use testkit::processes::{Binaries, CommandLine};

use super::report::Report;

const NAME: &str = "pipeline/local/table/unordered/parallelism=2";

/// Copies of the sample that are about as many records as the whole file.
const SAMPLES: u64 = 17;

/// Measures `tidegate local` on some copies of the flights.
///
/// # Errors
/// A run failed or its output is wrong.
pub(super) fn measure(
    binaries: &Binaries,
    folder: &Path,
    data: &Path,
    copies: u64,
    runs: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let input = Input::make(folder, data, copies)?;
    let job = folder.join("pipeline.yaml");
    fs::write(&job, input.job_file())?;
    let job = job.to_string_lossy().into_owned();
    let command_line = CommandLine::new(binaries, folder);
    let (mut rates, mut peaks, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let output = command_line.run(&["local", &job, "--json"])?.expect_status(0)?;
        let result = output.json()?;
        let figure = |name: &str| result.get(name).and_then(Value::as_u64);
        let records = input.expected.lines;
        ensure!(
            figure("records_in") == Some(records) && figure("records_out") == Some(records),
            "{records} records went in, and the result is {result}"
        );
        if run == 0 {
            let written = Digest::of_files(&join::parts(&folder.join("out"))?)?;
            ensure!(written == input.expected, "the output is wrong: {written:?}, not {:?}", input.expected);
        }
        let seconds = figure("duration_ms").context("no duration_ms")? as f64 / 1e3;
        eprintln!(
            "{NAME}: {records} records in {seconds:.2} s, {:.2} s with start-up, {:.2} s CPU",
            output.took.as_secs_f64(),
            output.usage.cpu.as_secs_f64()
        );
        rates.push(records as f64 / seconds);
        peaks.push(output.usage.peak as f64 / 1e6);
        costs.push(output.usage.cpu.as_secs_f64() * 1e9 / records as f64);
    }
    report.median(NAME, "records/s", &rates)?;
    report.median(format!("{NAME}/peak-memory"), "MB", &peaks)?;
    report.median(format!("{NAME}/cpu"), "ns/record", &costs)
}

/// What is read, and what must come out of it.
struct Input {
    flights: PathBuf,
    planes: PathBuf,
    expected: Digest,
}

impl Input {
    /// Writes the copies one behind the other, unpacked.
    fn make(folder: &Path, data: &Path, copies: u64) -> anyhow::Result<Self> {
        let whole = data.join("flights.jsonl.gz");
        let (from, planes, copies) = if whole.is_file() {
            (whole, data.join("planes.jsonl"), copies)
        } else {
            eprintln!("{} is not there: the sample is repeated instead", whole.display());
            (flights::sample(), flights::planes(), copies * SAMPLES)
        };
        let joined = join::flights_with_planes(&from, &planes)?;
        let expected = Digest::of(&joined.lines).times(copies);
        drop(joined);
        let path = folder.join("flights.jsonl");
        let mut text = Vec::new();
        for line in flights::lines(&from)? {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        let mut file = BufWriter::new(File::create(&path)?);
        for _ in 0..copies {
            file.write_all(&text)?;
        }
        file.flush()?;
        Ok(Self { flights: path, planes, expected })
    }

    fn job_file(&self) -> String {
        let quoted = |path: &Path| Value::from(path.to_string_lossy()).to_string();
        format!(
            "name: pipeline\nparallelism: 2\nsource: {{file: {{path: {}}}}}\nsteps:\n  - enrich:\n      name: plane\n      \
             order: unordered\n      into: plane\n      call: {{table: {{file: {}, key: tailnum, by: tailnum}}}}\n\
             sink: {{file: {{path: out/, overwrite: true}}}}\n",
            quoted(&self.flights),
            quoted(&self.planes)
        )
    }
}
