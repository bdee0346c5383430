//! Input splits, asked for at the job master.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use connectors::source::file::{FileSplit, Position};
use runtime_core::{AttemptId, Clock};
use wire::{JobMasterGateway, RpcError, RpcErrorKind, v1};

use runtime_core::time::TokioClock;

use crate::task::{NextSplit, SplitError, SplitProvider};

/// How long one request may take; a repeat has the same number and so brings the same split.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Pauses between requests that failed, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a source waits for a job master that does not answer. Above the default heartbeat timeout: by then the task
/// has been stopped if the job master is dead.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands in a message for "to the end of the file, wherever that is".
const TO_THE_END: u64 = u64::MAX;

/// Asks the master of one job, in one term.
pub(crate) struct JobMasterSplits {
    pub(crate) gateway: Arc<dyn JobMasterGateway>,
    pub(crate) fence: Option<v1::Fence>,
    pub(crate) clock: TokioClock,
}

#[async_trait]
impl SplitProvider for JobMasterSplits {
    async fn next_split(&self, attempt: AttemptId, request: u64) -> Result<NextSplit, SplitError> {
        let message = v1::RequestNextInputSplitRequest {
            fence: self.fence.clone(),
            attempt: Some(attempt.into()),
            request,
        };
        let give_up = self.clock.now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = self.gateway.request_next_input_split(message.clone());
            let error = match tokio::time::timeout(REQUEST_TIMEOUT, asked).await {
                Ok(Ok(reply)) => return Ok(next_split(reply)),
                Ok(Err(error)) => error,
                Err(_) => RpcError::deadline(format!("no answer within {REQUEST_TIMEOUT:?}")),
            };
            if !may_pass(error.kind) || self.clock.now() >= give_up {
                return Err(SplitError(error.to_string()));
            }
            tracing::debug!(%attempt, request, %error, "asking for an input split again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether asking again may help.
const fn may_pass(kind: RpcErrorKind) -> bool {
    matches!(
        kind,
        RpcErrorKind::Unreachable
            | RpcErrorKind::Deadline
            | RpcErrorKind::NotStarted
            | RpcErrorKind::Overloaded
    )
}

fn next_split(reply: v1::RequestNextInputSplitReply) -> NextSplit {
    let split = reply.split.map(|split| FileSplit {
        id: split.id,
        path: PathBuf::from(split.path),
        start: split.start,
        end: (split.end != TO_THE_END).then_some(split.end),
        gzip: split.gzip,
        resume: split.resume.map(|at| Position { offset: at.offset, line: at.line }),
    });
    NextSplit { split, max_rate: (reply.max_rate > 0.0).then_some(reply.max_rate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_end_and_no_limit_travel_as_values_of_their_own() {
        let (path, end) = ("/a".into(), u64::MAX);
        let split = v1::FileSplit { id: 3, path, start: 7, end, ..v1::FileSplit::default() };
        let next = next_split(v1::RequestNextInputSplitReply { split: Some(split), max_rate: 0.0 });
        let split = next.split.unwrap();
        assert_eq!((split.id, split.start, split.end), (3, 7, None));
        assert_eq!(next.max_rate, None);
    }
}
