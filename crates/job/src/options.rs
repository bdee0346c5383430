//! The checked options of a job and of every source, step, call and sink in it.
//!
//! What stands here has been checked: a capacity is above zero, a condition is compiled, a template has its braces
//! closed. Paths are as the job file has them; the command line makes them absolute before it sends a job, and a job
//! master refuses a job with a relative one.

use std::path::PathBuf;
use std::time::Duration;

use crate::filter::Filter;
use crate::template::Template;

/// When a failed job is run again (Flink: `restart-strategy.type`).
#[derive(Debug, Clone, PartialEq)]
pub enum RestartStrategy {
    /// Never. The default without checkpoints.
    None,
    /// As long as no more than `attempts` failures were counted.
    FixedDelay {
        /// How many failures are forgiven.
        attempts: u32,
        /// The pause before the job runs again.
        delay: Duration,
    },
    /// As long as no more than `max_failures` failures fall into `interval`.
    FailureRate {
        /// How many failures are forgiven within the interval.
        max_failures: u32,
        /// The interval.
        interval: Duration,
        /// The pause before the job runs again.
        delay: Duration,
    },
    /// With growing pauses. The default with checkpoints.
    ExponentialDelay {
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
        /// By how much a pause grows; at least 1.
        multiplier: f64,
        /// By which part a pause is moved at random, 0 to 1.
        jitter: f64,
        /// After how long without failure the pause is the first one again.
        reset_after: Duration,
        /// How many failures are forgiven; absent: any number.
        attempts: Option<u32>,
    },
}

/// How checkpoints are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// From the start of one to the start of the next.
    pub interval: Duration,
    /// At least this long from the end of one to the start of the next.
    pub min_pause: Duration,
    /// After which a checkpoint is given up.
    pub timeout: Duration,
    /// How many may fail one after the other; one more fails the job.
    pub tolerable_failures: u32,
    /// A URL: `file:///var/lib/tidegate/checkpoints`, `s3://bucket/path`; a plain path only before paths were made absolute.
    pub dir: String,
    /// How many completed ones are kept.
    pub retain: u32,
}

/// A source.
#[derive(Debug, Clone)]
pub enum SourceOptions {
    /// Lines of files.
    File(FileSourceOptions),
}

/// The file source.
#[derive(Debug, Clone)]
pub struct FileSourceOptions {
    /// An absolute path of a file or a directory, or a glob.
    pub path: String,
    /// How files are cut; never [`SplitMode::Auto`] after planning.
    pub split: SplitMode,
    /// The field that holds the event time.
    pub event_time: Option<String>,
    /// How far event times may run backwards.
    pub watermark_lag: Duration,
    /// Records per second of the whole job.
    pub max_rate: Option<f64>,
    /// The longest line in bytes.
    pub max_record: u64,
}

/// How files are cut into splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitMode {
    /// To be decided by the planner.
    Auto,
    /// Each file is one split.
    File,
    /// Large uncompressed files are cut at line ends.
    Range,
}

/// A filter step.
#[derive(Debug, Clone)]
pub struct FilterOptions {
    /// A name for dead letters, errors and metrics: `filter-1`, counted over the job's filters.
    pub name: String,
    /// The condition.
    pub condition: Filter,
    /// What becomes of a record for which the condition cannot be evaluated.
    pub on_failure: OnFailure,
}

/// An asynchronous step.
#[derive(Debug, Clone)]
pub struct EnrichOptions {
    /// Unique in the job.
    pub name: String,
    /// In which order records leave.
    pub order: Order,
    /// The field that keyed order goes by; present exactly when the order is keyed.
    pub key: Option<String>,
    /// Calls of one key at a time; 1 unless said otherwise.
    pub max_in_flight_per_key: usize,
    /// Elements in the operator, per subtask.
    pub capacity: usize,
    /// The budget of one record; absent: none.
    pub timeout: Option<Duration>,
    /// The budget of one call.
    pub attempt_timeout: Option<Duration>,
    /// When a call is made again.
    pub retry: Retry,
    /// What becomes of a record that nothing is known about.
    pub on_empty: OnEmpty,
    /// What becomes of a record whose calls have failed.
    pub on_failure: OnFailure,
    /// The field that receives the answer; absent: the answer replaces the record.
    pub into: Option<String>,
    /// The longest answer in bytes.
    pub max_answer: u64,
    /// What is asked.
    pub call: CallOptions,
}

/// The order in which records leave an asynchronous step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they came.
    Ordered,
    /// As they are ready.
    Unordered,
    /// As they came within a key.
    Keyed,
}

/// When a call is made again.
#[derive(Debug, Clone, PartialEq)]
pub enum Retry {
    /// Never.
    None,
    /// After equal pauses.
    FixedDelay {
        /// Calls beyond the first.
        max_retries: u32,
        /// The pause.
        delay: Duration,
    },
    /// After growing pauses.
    ExponentialDelay {
        /// Calls beyond the first.
        max_retries: u32,
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
        /// By how much a pause grows; at least 1.
        multiplier: f64,
        /// By which part a pause is moved at random, 0 to 1.
        jitter: f64,
    },
}

/// What becomes of a record with an empty answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnEmpty {
    /// The field becomes null; without `into` the record stays as it is.
    Keep,
    /// It is left out.
    Drop,
    /// It is a dead letter.
    DeadLetter,
    /// The job fails.
    Fail,
}

/// What becomes of a record that could not be dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The job fails.
    Fail,
    /// It is left out.
    Drop,
    /// It is a dead letter.
    DeadLetter,
    /// A filter lets it pass; an enrichment puts null into the field.
    Keep,
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum CallOptions {
    /// An HTTP service.
    Http(HttpOptions),
    /// A file that is held in memory.
    Table(TableOptions),
    /// A function that the task executor's program registered under this name.
    Rust(String),
}

/// The `http` call.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address asked.
    pub url: Template,
    /// The method, upper case.
    pub method: String,
    /// Headers by name.
    pub headers: Vec<(String, Template)>,
    /// The request's body.
    pub body: Option<Template>,
    /// Statuses whose body is the answer.
    pub success: StatusSet,
    /// Statuses that say that nothing is known.
    pub empty: StatusSet,
    /// Statuses after which a retry may help.
    pub retryable: StatusSet,
}

/// A set of HTTP statuses as ranges, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSet(pub Vec<(u16, u16)>);

impl StatusSet {
    /// Whether the status belongs to the set.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(from, to)| (from..=to).contains(&status))
    }
}

/// The `table` call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// The file, absolute.
    pub file: PathBuf,
    /// The field of a row that names it.
    pub key: String,
    /// The field of a record that names its row.
    pub by: String,
}

/// A sink.
#[derive(Debug, Clone)]
pub enum SinkOptions {
    /// Lines of files.
    File(FileSinkOptions),
}

/// The file sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSinkOptions {
    /// An absolute path: a file, or with `parts` the folder of the parts.
    pub path: PathBuf,
    /// Whether the path ended in `/`: each subtask writes parts of its own. Otherwise there is one subtask.
    pub parts: bool,
    /// Whether earlier output is removed before the first deployment.
    pub overwrite: bool,
    /// Whether it is the job's dead letters that are written.
    pub dead_letters: bool,
}
