//! Why a command did not do what it was asked, and with which status the program ends for it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use job::file::JobFileErrors;
use runtime_core::JobId;

use crate::client::{ClientError, JobMasterUrl};
use crate::lookup::LookupError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no such file, or it is no text.
    #[error("{}: the job file cannot be read: {cause}", file.display())]
    JobFileUnreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The job file has mistakes.
    #[error(transparent)]
    JobFile(#[from] JobFileErrors),
    /// The job is well formed, but what it needs is not there or something is in its way. A line each.
    #[error("{}", .0.join("\n"))]
    Findings(Vec<String>),
    /// The job master does not take the job. A line each.
    #[error("{}", .0.join("\n"))]
    JobRefused(Vec<String>),
    /// What was given as an id is none. Nothing was sent.
    #[error(
        "`{text}` is no job id, which has 32 hexadecimal digits; `tidegate list -a` shows those that exist"
    )]
    NoJobId {
        /// What was given.
        text: String,
    },
    /// The job master knows no such job.
    #[error("the job master at {url} knows no job {job}; `tidegate list -a` shows those that it knows")]
    UnknownJob {
        /// The id.
        job: JobId,
        /// Who was asked.
        url: JobMasterUrl,
    },
    /// A job came to another end than the one that was waited for.
    #[error("job {job} ({name}) ended {state}{}", failure.as_deref().map(|f| format!(": {f}")).unwrap_or_default())]
    Ended {
        /// The id.
        job: String,
        /// Its name.
        name: String,
        /// Its last state.
        state: String,
        /// The cause.
        failure: Option<String>,
    },
    /// The cluster of this process has fewer slots than the job needs.
    #[error(
        "the job needs {needed} slots and --slots gives it {slots}: leave --slots out, or lower `parallelism`"
    )]
    TooFewSlots {
        /// How many it needs.
        needed: u32,
        /// How many there would be.
        slots: u32,
    },
    /// The cluster of this process could not be started, or has ended.
    #[error("the cluster in this process failed: {0:#}")]
    Cluster(anyhow::Error),
    /// Somebody wanted this process to end at once.
    #[error("interrupted; the job has left nothing behind but files whose names begin with a dot")]
    Interrupted,
    /// The command was interrupted while its job runs on.
    #[error("job {job} is left to run; `tidegate show {job}` looks at it, `tidegate cancel {job}` ends it")]
    Left {
        /// The id.
        job: JobId,
    },
    /// The command was interrupted before the job master confirmed the job.
    #[error(
        "interrupted before the job master at {url} confirmed job {job}; should it run, `tidegate cancel {job}` ends it"
    )]
    Unconfirmed {
        /// The id.
        job: JobId,
        /// Who was asked.
        url: JobMasterUrl,
    },
    /// The job has ended, so it can neither be cancelled nor saved.
    #[error("job {job} has ended already: it is {state}")]
    EndedAlready {
        /// The id.
        job: JobId,
        /// Its last state.
        state: String,
    },
    /// The cluster is of a version that makes no savepoints.
    #[error("the job master at {url} makes no savepoints; `tidegate cancel {job}` ends the job without one")]
    NoSavepoints {
        /// The id.
        job: JobId,
        /// Who was asked.
        url: JobMasterUrl,
    },
    /// A savepoint was begun and did not succeed. The job runs on.
    #[error("the savepoint of job {job} failed: {cause}")]
    SavepointFailed {
        /// The id.
        job: JobId,
        /// What the job master says.
        cause: String,
    },
    /// A process is not well.
    #[error(transparent)]
    Health(#[from] entrypoint::telemetry::ProbeError),
    /// The job master could not be asked, or gave no answer that can be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A look-up service cannot be given.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The system does not give what any program needs.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        cause: io::Error,
    },
}

impl Failure {
    /// The program's exit status: 2 for a job file that is refused, whoever refuses it, otherwise 1.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::JobFileUnreadable { .. }
            | Self::JobFile(_)
            | Self::Findings(_)
            | Self::JobRefused(_)
            | Self::TooFewSlots { .. } => 2,
            _ => 1,
        }
    }

    /// What is said of it: a line for each mistake of a job file, otherwise one line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::JobFile(errors) => errors.iter().map(|error| on_one_line(&error.to_string())).collect(),
            Self::Findings(lines) | Self::JobRefused(lines) => lines.iter().map(|l| on_one_line(l)).collect(),
            other => vec![on_one_line(&other.to_string())],
        }
    }

    pub(crate) fn complain(&self) {
        for line in self.lines() {
            // A closed stderr must not turn the exit status into another.
            let _ = writeln!(io::stderr(), "error: {line}");
        }
    }
}

/// A text with its lines joined: an error is one line, whatever a server or a library put into it.
fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_job_file_is_status_2_and_a_line_for_each_mistake() {
        let refused = Failure::JobRefused(vec!["first".into(), "second,\n  continued".into()]);
        assert_eq!(refused.status(), 2);
        assert_eq!(refused.lines(), ["first", "second,; continued"]);
    }

    #[test]
    fn what_fails_at_run_time_is_status_1_and_one_line() {
        let ended = Failure::Ended {
            job: JobId::from_u128(1).to_string(),
            name: "orders".into(),
            state: "FAILED".into(),
            failure: Some("source, subtask 0:\nno such file".into()),
        };
        assert_eq!(ended.status(), 1);
        assert_eq!(
            ended.lines(),
            ["job 00000000000000000000000000000001 (orders) ended FAILED: source, subtask 0:; no such file"]
        );
    }
}
