//! A small HTTP look-up service over a file, for trying jobs out.
//!
//! It stands for the slow and now and then failing service that a job asks: every answer may be delayed, and a share of
//! them replaced by "503 Service Unavailable". Which ones is decided by a seed and the order of the requests, so that a
//! trial can be repeated. It is no database: rows are read once, at the start.

mod faults;
mod rows;
mod service;

#[cfg(test)]
mod tests;

pub use faults::Faults;
pub use rows::Rows;
pub use service::{Counts, LookupService};

use std::path::PathBuf;

use connectors::source::file::SourceError;
use entrypoint::listen::ListenError;

/// Why a look-up service cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The file cannot be read.
    #[error("the table cannot be loaded: {0}")]
    Source(#[from] SourceError),
    /// A line is no row with a key.
    #[error("the table `{}`, line {line}: {reason}", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot listen there.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// It listens no more.
    #[error("the look-up service on {bound} ended: {cause}")]
    Ended {
        /// Where it was.
        bound: std::net::SocketAddr,
        /// What the system says.
        cause: std::io::Error,
    },
}
