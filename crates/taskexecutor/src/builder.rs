//! Task executor programs with calls written in Rust.

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use connectors::call::{Call, CallOutcome, CallRequest, RustCalls};
use entrypoint::Role;

use crate::server;

/// Makes a task executor program of calls. It understands the same command line and configuration as the plain
/// `taskexecutor`; steps of a job name a call by `rust: NAME`.
///
/// ```no_run
/// use connectors::call::{Answer, CallFailure, CallRequest};
/// use taskexecutor::TaskExecutor;
///
/// async fn shout(request: CallRequest) -> Result<Answer, CallFailure> {
///     let Some(name) = request.record.field("name") else { return Ok(Answer::Empty) };
///     Ok(Answer::Value(name.text().to_uppercase().into()))
/// }
///
/// fn main() -> std::process::ExitCode {
///     TaskExecutor::builder().call("shout", shout).run()
/// }
/// ```
#[derive(Debug, Default)]
#[must_use = "it runs when `run` is called"]
pub struct TaskExecutorBuilder {
    calls: RustCalls,
}

impl TaskExecutorBuilder {
    /// Registers an `async fn` under the name that job files use; of equal names the last counts.
    ///
    /// Its future runs on the I/O runtime beside heartbeats, so it must not block. Dropping it is how an attempt is
    /// given up; a panic is a failure of that record that is not retried.
    pub fn call<F, Fut>(mut self, name: impl Into<String>, call: F) -> Self
    where
        F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = CallOutcome> + Send + 'static,
    {
        self.calls.register(name, call);
        self
    }

    /// Registers a [`Call`], which may answer at once and so needs no task for each record.
    pub fn register_call(mut self, name: impl Into<String>, call: Arc<dyn Call>) -> Self {
        self.calls.register_call(name, call);
        self
    }

    /// The calls as they stand, for [`TaskExecutor::start`](crate::TaskExecutor::start).
    #[must_use]
    pub fn into_calls(self) -> RustCalls {
        self.calls
    }

    /// Runs the program: reads the command line, serves until it is told to stop, and yields the exit status.
    #[must_use]
    pub fn run(self) -> ExitCode {
        entrypoint::run_server(Role::TaskExecutor, |server| server::run(server, self.calls))
    }
}
