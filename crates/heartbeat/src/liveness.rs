//! What can be shown of a target.

use crate::monitor::{LastHeartbeat, MonitorState};
use std::time::Duration;

/// What can be shown of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Liveness {
    /// Where its monitor stands.
    pub state: MonitorState,
    /// Whether it is alive with a doubt.
    pub suspect: bool,
    /// When it was last heard, by the wall clock.
    pub last_heartbeat: LastHeartbeat,
    /// How long ago that was, by the monotonic clock; before the first, since it is monitored.
    pub silent_for: Duration,
    /// Refused calls since the last delivered one.
    pub consecutive_failures: u32,
    /// What the last call that failed said, while none was delivered after it.
    pub last_error: Option<Box<str>>,
    /// How old the last turn of its main loop was when it last said so; `None` if it never did.
    pub main_loop_age: Option<Duration>,
    /// How unusual its silence is by its own habits; `None` with the fixed detector.
    pub phi: Option<f64>,
}

impl Liveness {
    /// `ALIVE`, `SUSPECT`, or why it is dead: `TIMEOUT`, `UNREACHABLE`, `STUCK`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match (self.state, self.suspect) {
            (MonitorState::Running, false) => "ALIVE",
            (MonitorState::Running, true) => "SUSPECT",
            (MonitorState::Timeout, _) => "TIMEOUT",
            (MonitorState::Unreachable, _) => "UNREACHABLE",
            (MonitorState::Stuck, _) => "STUCK",
            (MonitorState::Canceled, _) => "CANCELED",
        }
    }

    /// Why, in words; `None` for a target of which nothing is wrong.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        if self.as_str() == "ALIVE" {
            return None;
        }
        let mut text = format!("not heard for {:.1} s", self.silent_for.as_secs_f64());
        if self.consecutive_failures > 0 {
            text.push_str(&format!(", {} refused in a row", self.consecutive_failures));
        }
        if let Some(error) = &self.last_error {
            text.push_str(&format!(", last error: {error}"));
        }
        Some(text)
    }
}
