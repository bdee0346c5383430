//! Why a task has failed.

use std::fmt;

/// One sentence naming place and cause, and whether a restart can help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    /// The sentence, without the task's name: whoever reports it adds that.
    pub message: String,
    /// Whether it will be so again: a malformed input, an answer that fails the job by its policy.
    pub unrecoverable: bool,
}

impl TaskError {
    /// A restart may help.
    pub fn recoverable(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), unrecoverable: false }
    }

    /// It would be so again.
    pub fn unrecoverable(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), unrecoverable: true }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TaskError {}
