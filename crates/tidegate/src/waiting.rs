//! Waiting for the end of a job, through restarts of the job master.

use runtime_core::time::{Clock as _, TokioClock};
use runtime_core::{JobId, Tick};

use crate::client::{ClientError, JobDetail, JobMasterClient, JobResult};
use crate::failure::Failure;
use crate::output::note;
use crate::patience::{Patience, Pauses, RIDE_OUT};
use crate::progress::Progress;

/// Looks at a job again and again until it has ended.
pub(crate) struct Waiting<'a> {
    client: &'a JobMasterClient,
    job: JobId,
    clock: TokioClock,
    pauses: Pauses,
    patience: Patience,
    progress: Progress,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(client: &'a JobMasterClient, job: JobId, progress: Progress) -> Self {
        Self {
            client,
            job,
            clock: TokioClock::start(),
            pauses: Pauses::of_polling(),
            patience: Patience::new(RIDE_OUT),
            progress,
        }
    }

    /// Waits a little and looks at the job: its result if it has ended. Safe to drop: a look that was not completed is
    /// repeated by the next one.
    ///
    /// # Errors
    ///
    /// The job master does not know the job, or has been away for too long.
    pub(crate) async fn look(&mut self) -> Result<Option<JobResult>, Failure> {
        tokio::time::sleep(self.pauses.next()).await;
        match self.ask().await {
            Ok(result) => {
                self.patience.answered();
                if result.is_some() {
                    self.progress.clear();
                }
                Ok(result)
            }
            Err(error) => {
                let pause = ride_out(&mut self.patience, &error, self.clock.now());
                let Some(pause) = pause else {
                    self.progress.clear();
                    return Err(of_job(error, self.job));
                };
                self.progress.say(&format!("waiting for the job master: {error}"));
                tokio::time::sleep(pause).await;
                Ok(None)
            }
        }
    }

    /// Looks until the job has ended.
    ///
    /// # Errors
    ///
    /// As [`Self::look`].
    pub(crate) async fn end(&mut self) -> Result<JobResult, Failure> {
        loop {
            if let Some(result) = self.look().await? {
                return Ok(result);
            }
        }
    }

    /// Takes the progress line away, so that something else can be said.
    pub(crate) fn clear(&self) {
        self.progress.clear();
    }

    async fn ask(&mut self) -> Result<Option<JobResult>, ClientError> {
        let result = self.client.result(self.job).await?;
        if result.is_none() && self.progress.is_shown() {
            let detail: JobDetail = self.client.read(&self.client.job(self.job).await?)?;
            self.progress.show(&detail.result, self.clock.now());
        }
        Ok(result)
    }
}

/// How long to wait after a failure, where waiting may help; says so the first time.
pub(crate) fn ride_out(
    patience: &mut Patience,
    error: &ClientError,
    now: Tick,
) -> Option<std::time::Duration> {
    if !error.is_passing() {
        return None;
    }
    if !patience.is_tried() {
        note(&format!("{error}; trying for {} seconds", RIDE_OUT.as_secs()));
    }
    patience.failed(now)
}

/// A failure of a question about one job.
pub(crate) fn of_job(error: ClientError, job: JobId) -> Failure {
    match error {
        ClientError::NotFound { url, .. } => Failure::UnknownJob { job, url },
        other => other.into(),
    }
}
