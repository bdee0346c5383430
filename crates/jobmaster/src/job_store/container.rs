//! The form of a stored file: one line that says what it is, then its content as JSON.
//!
//! ```text
//! {"tidegate":"submission","version":1,"job":"0123456789abcdef0123456789abcdef","length":120,"xxh3":"89abcdef01234567"}
//! {"file": ...}
//! ```
//!
//! People can read it; length and checksum tell a file that a disk or an editor has changed from one that was written
//! here, and `job` one that was copied into the wrong folder.

use runtime_core::JobId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Another version is refused: it may mean something else by the same names.
const VERSION: u32 = 1;

/// Why a stored file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The first line is none of ours.
    #[error("its first line does not say what it is")]
    Header,
    /// It is something else than its name says.
    #[error("it says that it is `{found}`")]
    Kind {
        /// What it says.
        found: String,
    },
    /// Another version of the program has written it.
    #[error("it is of version {found}, and this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It is another job's.
    #[error("it is of job {found}")]
    Job {
        /// The job.
        found: String,
    },
    /// It is shorter or longer than it was.
    #[error("it has {found} bytes after its first line where {expected} were written")]
    Length {
        /// What was written.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// Its bytes have changed.
    #[error("its checksum is wrong")]
    Checksum,
    /// It is whole, and means nothing.
    #[error("its content makes no sense: {cause}")]
    Content {
        /// What was found.
        cause: String,
    },
    /// There is none, and there must be one.
    #[error("it is missing")]
    Missing,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    tidegate: String,
    version: u32,
    job: String,
    length: u64,
    xxh3: String,
}

pub(super) fn encode<T: Serialize>(kind: &str, job: JobId, content: &T) -> serde_json::Result<Vec<u8>> {
    let content = serde_json::to_vec(content)?;
    let header = Header {
        tidegate: kind.to_owned(),
        version: VERSION,
        job: job.to_string(),
        length: content.len() as u64,
        xxh3: format!("{:016x}", xxh3_64(&content)),
    };
    let mut bytes = serde_json::to_vec(&header)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&content);
    Ok(bytes)
}

pub(super) fn decode<T: DeserializeOwned>(kind: &str, job: JobId, bytes: &[u8]) -> Result<T, Damage> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(Damage::Header)?;
    let (line, content) = bytes.split_at(end);
    let content = content.get(1..).unwrap_or_default();
    let header: Header = serde_json::from_slice(line).map_err(|_| Damage::Header)?;
    if header.version != VERSION {
        return Err(Damage::Version { found: header.version });
    }
    if header.tidegate != kind {
        return Err(Damage::Kind { found: header.tidegate });
    }
    if header.job != job.to_string() {
        return Err(Damage::Job { found: header.job });
    }
    let found = content.len() as u64;
    if header.length != found {
        return Err(Damage::Length { expected: header.length, found });
    }
    if header.xxh3 != format!("{:016x}", xxh3_64(content)) {
        return Err(Damage::Checksum);
    }
    serde_json::from_slice(content).map_err(|error| Damage::Content { cause: error.to_string() })
}
