//! What somebody asks of a coordinator, and in which order it is done.

use std::collections::VecDeque;

/// So many requests may wait (Flink: `CheckpointRequestDecider`).
const MOST: usize = 1000;

/// Somebody wants a checkpoint or a savepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The number that its answer carries.
    pub number: u64,
    /// What is wanted.
    pub wanted: Wanted,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A checkpoint like any other, now.
    Checkpoint,
    /// A savepoint in this folder, a URL.
    Savepoint {
        /// Where.
        url: String,
        /// Whether the job ends with it, and how; absent: it goes on.
        stop: Option<Stop>,
    },
}

/// How a job ends with a savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Where it stands; what is in flight is in the savepoint.
    Suspend,
    /// Once everything that was read has come to its end, as if the input had ended.
    Drain,
}

impl Wanted {
    /// The folder of a savepoint, and how the job ends with it.
    #[must_use]
    pub fn savepoint(&self) -> Option<(&str, Option<Stop>)> {
        match self {
            Self::Checkpoint => None,
            Self::Savepoint { url, stop } => Some((url, *stop)),
        }
    }
}

/// Requests that wait: savepoints first, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Requests(VecDeque<Request>);

impl Requests {
    /// Takes a request in its turn; gives it back where too many wait.
    pub(super) fn push(&mut self, request: Request) -> Result<(), Request> {
        if self.0.len() >= MOST {
            return Err(request);
        }
        let place = match request.wanted {
            Wanted::Checkpoint => self.0.len(),
            Wanted::Savepoint { .. } => {
                self.0.iter().position(|r| r.wanted == Wanted::Checkpoint).unwrap_or(self.0.len())
            }
        };
        self.0.insert(place, request);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Request> {
        self.0.pop_front()
    }
}
