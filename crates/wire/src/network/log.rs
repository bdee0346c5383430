//! The event log of an in-memory network: what became of each message.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What became of one message, or of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEvent {
    /// When, counted from the making of the network.
    pub at: Duration,
    /// Who sent it.
    pub from: Arc<str>,
    /// Who was to get it.
    pub to: Arc<str>,
    /// `role.rpc`, with `>` for a request, `<` for an answer, `>>` and `<<` for the messages of a stream.
    pub message: Arc<str>,
    /// What became of it.
    pub fate: Fate,
}

/// What becomes of a message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Arrives after this time.
    Delivered(Duration),
    /// Arrives twice, after these times.
    Duplicated(Duration, Duration),
    /// Is lost; the caller learns nothing before its deadline.
    Lost,
    /// Is lost; the caller sees an unreachable peer after this time.
    LostUnreachable(Duration),
    /// Does not pass a cut link.
    Cut,
    /// Waits for a cut link to heal.
    Held,
    /// Nobody serves there; the caller sees an unreachable peer after this time.
    Refused(Duration),
    /// The stream is broken off.
    Broken,
    /// The node, not a message: it has crashed.
    Crashed,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered(after) => write!(f, "delivered after {after:?}"),
            Self::Duplicated(first, second) => write!(f, "delivered twice, after {first:?} and {second:?}"),
            Self::Lost => f.write_str("lost"),
            Self::LostUnreachable(after) => write!(f, "lost, unreachable after {after:?}"),
            Self::Cut => f.write_str("cut"),
            Self::Held => f.write_str("held"),
            Self::Refused(after) => write!(f, "refused after {after:?}"),
            Self::Broken => f.write_str("broken"),
            Self::Crashed => f.write_str("crashed"),
        }
    }
}

impl fmt::Display for NetworkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs_f64();
        write!(f, "{seconds:>12.6} {} -> {} {} {}", self.from, self.to, self.message, self.fate)
    }
}
