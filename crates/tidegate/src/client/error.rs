//! What can go wrong between the command line and a job master.

use super::url::JobMasterUrl;

/// A question to a job master failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there, or the connection broke. Whether the request was acted on is not known.
    #[error(
        "the job master at {url} cannot be reached: {cause}; is one running there? start it with `jobmaster`, or name \
         another with --jobmaster URL"
    )]
    Unreachable {
        /// Who was asked.
        url: JobMasterUrl,
        /// What the system says.
        cause: String,
    },
    /// It is starting or stopping, or waits for somebody itself. Nothing was changed.
    #[error("the job master at {url} is not ready: {message}")]
    Unavailable {
        /// Who was asked.
        url: JobMasterUrl,
        /// What it says.
        message: String,
    },
    /// It does not accept what was sent. Nothing was changed.
    #[error("{}", errors.join("\n"))]
    Refused {
        /// Each reason; never empty.
        errors: Vec<String>,
    },
    /// It knows no such thing.
    #[error("the job master at {url} answers: {message}")]
    NotFound {
        /// Who was asked.
        url: JobMasterUrl,
        /// What it says.
        message: String,
    },
    /// It does not do that.
    #[error("the job master at {url} answers: {message}")]
    MethodNotAllowed {
        /// Who was asked.
        url: JobMasterUrl,
        /// What it says.
        message: String,
    },
    /// It stands against what is so already. Nothing was changed.
    #[error("the job master at {url} answers: {message}")]
    Conflict {
        /// Who was asked.
        url: JobMasterUrl,
        /// What it says.
        message: String,
    },
    /// It failed.
    #[error("the job master at {url} answers {status}: {message}")]
    Status {
        /// Who was asked.
        url: JobMasterUrl,
        /// The HTTP status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// What answers is no job master, or one of another version.
    #[error("what answers at {url} does not speak as a job master of this version: {what}")]
    Strange {
        /// Who was asked.
        url: JobMasterUrl,
        /// What is strange.
        what: String,
    },
    /// No client can be made.
    #[error("no HTTP client can be made: {cause}")]
    Client {
        /// Why.
        cause: String,
    },
}

impl ClientError {
    /// Whether the same question may be answered a little later: connections that are refused or break, and 503.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Unavailable { .. })
    }
}
