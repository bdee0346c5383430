//! What a manager answers when it is told something.

/// What became of the wish to monitor a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monitored {
    /// It is monitored from now on.
    New,
    /// This life of it is monitored already, or was judged; nothing changed.
    Known,
    /// Another life of it was monitored; this one has taken its place and starts anew.
    Replaced,
    /// The manager is stopped; nothing changed.
    Stopped,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// The target's timeout starts anew.
    Applied,
    /// The target was judged before: noted for display, nothing revived.
    Settled,
    /// Its sender is not monitored: counted, not applied.
    UnknownTarget,
    /// Another life of its sender is monitored: counted, not applied.
    OtherIncarnation,
    /// A newer liveness frame of its sender has come before: counted, not applied.
    OldSequence,
    /// The manager is stopped.
    Stopped,
}
