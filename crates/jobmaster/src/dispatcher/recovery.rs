//! Taking up the jobs of an earlier life.

use std::sync::Arc;

use controller_events::Handle;
use job::file::JobFile;
use job::graph::JobGraph;
use runtime_core::JobId;

use super::{DispatcherEvent, History, PastJob};
use crate::job_store::{JobStore, Remembered, Unrecoverable};
use crate::master::view::JobResult;
use crate::status::JobStatus;

/// How errors name a job file that was stored.
const STORED: &str = "the stored job file";

/// Reads what is remembered of these jobs and hands it to the dispatcher, one by one. It blocks: files are read and job
/// files planned.
///
/// A job with a result is over: that is stored before the job is forgotten, and a crash in between leaves both
/// (FLINK-21928).
pub(crate) fn take_up(store: &JobStore, history: &History, jobs: &[JobId], events: &Handle<DispatcherEvent>) {
    let found = jobs.iter().filter_map(|job| {
        if history.get(*job).is_some() {
            if let Err(error) = store.folder(*job).remove() {
                tracing::warn!(%job, %error, "what is left of a job that is over cannot be removed");
            }
            return None;
        }
        let found = store.load(*job).transpose()?;
        Some(match found.and_then(planned) {
            Ok((graph, remembered)) => DispatcherEvent::TakeUp(*job, graph, Box::new(remembered)),
            Err(unrecoverable) => {
                tracing::error!(%job, "a job of before cannot be taken up: {unrecoverable}");
                DispatcherEvent::GiveUp(*job, Box::new(given_up(*job, unrecoverable)))
            }
        })
    });
    for event in found.chain([DispatcherEvent::TakenUp]) {
        if events.put(event).is_err() {
            tracing::debug!("the dispatcher ended while jobs were being taken up");
            return;
        }
    }
}

/// Its outputs exist and its inputs were looked at when it was submitted: only the plan is made anew.
fn planned(remembered: Remembered) -> Result<(Arc<JobGraph>, Remembered), Unrecoverable> {
    let graph = JobFile::parse(&remembered.submission.file, STORED).and_then(|file| job::plan::plan(&file));
    match graph {
        Ok(graph) => Ok((Arc::new(graph), remembered)),
        Err(errors) => Err(Unrecoverable {
            cause: format!("This program does not take the job file any more: {errors}"),
            folder: remembered.folder.path(),
            submission: Some(remembered.submission),
        }),
    }
}

/// How a job that cannot be taken up is shown: as failed, with what is wrong and what to do.
pub(super) fn given_up(job: JobId, unrecoverable: Unrecoverable) -> PastJob {
    let failure = unrecoverable.to_string();
    let (file, at, savepoint) = unrecoverable
        .submission
        .map_or_else(Default::default, |s| (s.file, s.submitted_at, s.savepoint.map(|from| from.url)));
    let name = serde_json::from_str::<serde_json::Value>(&file)
        .ok()
        .and_then(|file| file.get("name")?.as_str().map(str::to_owned));
    PastJob {
        result: JobResult {
            job_id: job.to_string(),
            name: name.unwrap_or_else(|| "(unknown)".to_owned()),
            state: JobStatus::Failed.as_str().to_owned(),
            failure: Some(failure),
            ..JobResult::default()
        },
        start_time: at,
        end_time: at,
        tasks: 0,
        failures: Vec::new(),
        file,
        savepoint,
    }
}
