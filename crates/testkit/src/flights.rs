//! The flights: where the sample lies and how JSON lines are read.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;

/// Records in the sample.
pub const RECORDS: u64 = 20_000;
/// Of these, flights without a tail number: no call is made for them.
pub const WITHOUT_TAILNUM: u64 = 67;
/// Of these, flights whose plane is not in the table.
pub const UNKNOWN_PLANE: u64 = 3_194;

/// The root of the project.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").components().fold(PathBuf::new(), |mut path, part| {
        if part == std::path::Component::ParentDir {
            path.pop();
        } else {
            path.push(part);
        }
        path
    })
}

/// The sample of flights, packed.
#[must_use]
pub fn sample() -> PathBuf {
    root().join("data/nycflights/flights-sample.jsonl.gz")
}

/// The planes.
#[must_use]
pub fn planes() -> PathBuf {
    root().join("data/nycflights/planes.jsonl")
}

/// Reads a file of lines, packed if its name says so.
///
/// # Errors
/// It cannot be opened.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// All lines of a file, without line ends.
///
/// # Errors
/// It cannot be read.
pub fn lines(path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let lines: Result<Vec<_>, _> = open(path)?.split(b'\n').collect();
    lines.with_context(|| format!("cannot read {}", path.display()))
}
