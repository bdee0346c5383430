//! The REST interface of a job master, as the command line uses it.
//!
//! Every method asks once. Whether a failure is worth waiting for is said by [`ClientError::is_passing`]; who waits, and
//! for how long, is decided by the command. All requests may be repeated: a submission carries the job's id.

mod answers;
mod error;
mod exchange;
mod url;

use runtime_core::JobId;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use answers::{
    Checkpoint, Checkpoints, ExecutionResult, JobDetail, JobFailure, JobOverview, JobResult, Metrics,
    OperationStatus, SavepointOperation, SavepointStatus, Step, Subtask, TaskExecutor, Vertex, Workforce,
};
pub use error::ClientError;
pub use url::JobMasterUrl;

use exchange::{Body, Exchange, Method};

/// A client of one job master. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct JobMasterClient {
    exchange: Exchange,
}

impl JobMasterClient {
    /// A client; nothing is connected yet.
    ///
    /// # Errors
    ///
    /// The machine does not let one be made.
    pub fn new(url: &JobMasterUrl) -> Result<Self, ClientError> {
        Ok(Self { exchange: Exchange::new(url)? })
    }

    /// Who is asked.
    #[must_use]
    pub const fn url(&self) -> &JobMasterUrl {
        self.exchange.url()
    }

    /// Submits a job file (JSON, with absolute paths) under an id that the caller has drawn. The same file under the same
    /// id is the same job, however often it is sent.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] where the file is; [`ClientError::Conflict`] where the id is that of another job.
    pub async fn submit(&self, job: JobId, file: &str, savepoint: Option<&str>) -> Result<(), ClientError> {
        let job = job.to_string();
        let mut query = vec![("jobid", job.as_str())];
        query.extend(savepoint.map(|path| ("savepointPath", path)));
        let body = Body::Text(file.to_owned());
        self.exchange.ask(Method::POST, &["jobs"], &query, Some(body)).await.map(drop)
    }

    /// All jobs, newest first: the documents of `/jobs/overview`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn jobs(&self) -> Result<Vec<Value>, ClientError> {
        let answer = self.get(&["jobs", "overview"]).await?;
        self.list(answer, "jobs")
    }

    /// One job in detail.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] where there is no such job.
    pub async fn job(&self, job: JobId) -> Result<Value, ClientError> {
        self.get(&["jobs", &job.to_string()]).await
    }

    /// The result of a job; absent while it runs.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] where there is no such job.
    pub async fn result(&self, job: JobId) -> Result<Option<JobResult>, ClientError> {
        let answer = self.get(&["jobs", &job.to_string(), "execution-result"]).await?;
        let answer: ExecutionResult = self.read(&answer)?;
        match (answer.status.is_completed(), answer.result) {
            (false, _) => Ok(None),
            (true, Some(result)) => Ok(Some(result)),
            (true, None) => Err(self.exchange.strange("an ended job without a `job-execution-result`")),
        }
    }

    /// Asks for the end of a job; it has ended only when its state says so.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`], and [`ClientError::Conflict`] where it has come to another end.
    pub async fn cancel(&self, job: JobId) -> Result<(), ClientError> {
        let path = ["jobs", &job.to_string()];
        self.exchange.ask(Method::PATCH, &path, &[("mode", "cancel")], None).await.map(drop)
    }

    /// Asks for a savepoint, below `folder` or where the cluster keeps them, and returns the number of the request.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] and [`ClientError::MethodNotAllowed`] where the cluster makes none.
    pub async fn savepoint(&self, job: JobId, folder: Option<&str>) -> Result<String, ClientError> {
        let body = json!({ "target-directory": folder, "cancel-job": false });
        self.trigger(job, "savepoints", body).await
    }

    /// Asks for a savepoint after which the job ends; with `drain` time is advanced to its end first.
    ///
    /// # Errors
    ///
    /// As [`Self::savepoint`].
    pub async fn stop(&self, job: JobId, folder: Option<&str>, drain: bool) -> Result<String, ClientError> {
        self.trigger(job, "stop", json!({ "targetDirectory": folder, "drain": drain })).await
    }

    async fn trigger(&self, job: JobId, what: &str, body: Value) -> Result<String, ClientError> {
        let body = Body::Json(body);
        let answer =
            self.exchange.ask(Method::POST, &["jobs", &job.to_string(), what], &[], Some(body)).await?;
        let request = answer.get("request-id").and_then(Value::as_str);
        request.map(str::to_owned).ok_or_else(|| self.exchange.strange("no `request-id`"))
    }

    /// How a savepoint that was asked for stands.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn savepoint_status(&self, job: JobId, request: &str) -> Result<SavepointStatus, ClientError> {
        let answer = self.get(&["jobs", &job.to_string(), "savepoints", request]).await?;
        self.read(&answer)
    }

    /// The task executors: the documents of `/taskmanagers`, and what stands beside them.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn task_executors(&self) -> Result<(Vec<Value>, Workforce), ClientError> {
        let answer = self.get(&["taskmanagers"]).await?;
        let workforce = self.read(&answer)?;
        Ok((self.list(answer, "taskmanagers")?, workforce))
    }

    /// Reads a document that this client gave.
    ///
    /// # Errors
    ///
    /// [`ClientError::Strange`] where it is not of that kind.
    pub fn read<T: DeserializeOwned>(&self, document: &Value) -> Result<T, ClientError> {
        T::deserialize(document).map_err(|error| self.exchange.strange(&error.to_string()))
    }

    async fn get(&self, path: &[&str]) -> Result<Value, ClientError> {
        self.exchange.ask(Method::GET, path, &[], None).await
    }

    fn list(&self, mut answer: Value, key: &str) -> Result<Vec<Value>, ClientError> {
        match answer.get_mut(key).map(Value::take) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(self.exchange.strange(&format!("no array `{key}`"))),
        }
    }
}
