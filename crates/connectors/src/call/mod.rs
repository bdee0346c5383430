//! What a step asks about a record: a table, a service, a function.
//!
//! A [`Call`] makes one attempt and classifies its outcome: a value, nothing known, a failure that a retry may help or
//! one that it cannot. Budgets, retries, order and policies are the asynchronous operator's and the chain's. Dropping
//! the future of a call is how an attempt is given up.

mod answer;
mod registry;
mod table;

#[cfg(feature = "http")]
mod http;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use job::idempotency::IdempotencyKey;
use job::options::{CallOptions, EnrichOptions};
use job::record::JsonRecord;
use runtime_core::Tick;

pub use registry::RustCalls;
pub use table::TableError;

use answer::AnswerRules;

/// One attempt to be made. Cloning shares the record's bytes.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// What is asked about.
    pub record: JsonRecord,
    /// The same for every attempt at this record, in every life of the job, and different for any two records.
    pub idempotency_key: IdempotencyKey,
    /// From 1.
    pub attempt: u32,
    /// When the attempt will be given up, if at all.
    pub deadline: Option<Tick>,
}

/// What an attempt came to.
pub type CallOutcome = Result<Answer, CallFailure>;

/// What is known about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One JSON value. What [`build`] makes gives it compacted, within the step's limit, and an object where it is to
    /// replace the record; what is registered as a [`RustCalls`] need not take care of that.
    Value(Bytes),
    /// Nothing is known.
    Empty,
}

/// An attempt that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// What was asked and what went wrong, for a person.
    pub message: String,
    /// Whether another attempt may help.
    pub retryable: bool,
    /// What whoever was asked wants to be left alone for.
    pub retry_after: Option<Duration>,
}

impl CallFailure {
    /// A failure that another attempt cannot help.
    #[must_use]
    pub fn terminal(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: false, retry_after: None }
    }

    /// A failure that another attempt may help.
    #[must_use]
    pub fn retryable(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: true, retry_after: None }
    }
}

/// What became of asking.
pub enum Called {
    /// There was nothing to ask, or no way to ask it: no attempt has begun, and none is counted.
    NotMade(CallOutcome),
    /// It is over already, so that neither a timer nor a task is needed.
    Ready(CallOutcome),
    /// It goes on as the future is polled, on a tokio runtime.
    Pending(BoxFuture<'static, CallOutcome>),
}

/// Something that can be asked. It is shared by the subtasks of a step.
pub trait Call: Send + Sync {
    /// Begins an attempt. It must not block.
    fn call(&self, request: &CallRequest) -> Called;
}

/// Why a step's call cannot be made ready. Tasks that need it cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nobody registered a function of this name.
    #[error("no Rust call `{name}` is registered in this task executor; registered are: {}", list(known))]
    UnknownRustCall {
        /// The name that the job file has.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The table cannot be loaded.
    #[error(transparent)]
    Table(#[from] TableError),
    /// What the job file says of the request makes no request.
    #[error("the http call of step `{step}`: {reason}")]
    Http {
        /// The step.
        step: String,
        /// What is wrong.
        reason: String,
    },
    /// This program was compiled without the connector.
    #[error("the http call of step `{step}`: this program was built without the feature `http`")]
    WithoutHttp {
        /// The step.
        step: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Makes a step's call ready. A table is loaded here, unless another step of this process holds it already; that blocks.
///
/// # Errors
///
/// [`BuildError`].
pub fn build(options: &EnrichOptions, rust_calls: &RustCalls) -> Result<Arc<dyn Call>, BuildError> {
    let rules = AnswerRules::of(options);
    match &options.call {
        CallOptions::Table(table) => Ok(Arc::new(table::TableCall::build(table, rules)?)),
        CallOptions::Rust(name) => rust_calls.build(name, rules),
        #[cfg(feature = "http")]
        CallOptions::Http(http) => http::HttpCall::build(http, rules)
            .map(|call| Arc::new(call) as Arc<dyn Call>)
            .map_err(|reason| BuildError::Http { step: options.name.clone(), reason }),
        #[cfg(not(feature = "http"))]
        CallOptions::Http(_) => Err(BuildError::WithoutHttp { step: options.name.clone() }),
    }
}

#[cfg(test)]
mod testing;
