//! Replies that wait for a commit, for handlers that write to a log.
//!
//! A [`CommitQueue`] of the processor's own serves any kind of item; this one belongs to the loop, takes the time from the
//! event's start to the commit, and answers by itself.

use crate::commit_queue::{CommitQueue, OutOfOrder};
use crate::reply::Reply;
use runtime_core::Tick;

/// An answer that waits, of whatever type.
pub(crate) struct Uncommitted {
    /// When the event started that wrote.
    pub(crate) started: Tick,
    /// Answers. Dropped instead, the reply tells that it was abandoned.
    pub(crate) answer: Box<dyn FnOnce() + Send>,
}

impl Uncommitted {
    fn new<T: Send + 'static>(started: Tick, reply: Reply<T>, value: T) -> Self {
        Self { started, answer: Box::new(move || reply.send(value)) }
    }
}

pub(crate) type Commits = CommitQueue<Uncommitted>;

/// Adds an answer for an offset.
pub(crate) fn add<T: Send + 'static>(
    commits: &mut Commits,
    started: Tick,
    offset: u64,
    reply: Reply<T>,
    value: T,
) -> Result<(), OutOfOrder<(Reply<T>, T)>> {
    if let Some(highest) = commits.highest().filter(|highest| *highest > offset) {
        return Err(OutOfOrder { item: (reply, value), offset, highest });
    }
    // Cannot be out of order: that has just been looked at.
    drop(commits.add(offset, Uncommitted::new(started, reply, value)));
    Ok(())
}

/// Adds an answer behind all others, or answers at once if there is none.
pub(crate) fn add_behind_all<T: Send + 'static>(
    commits: &mut Commits,
    started: Tick,
    reply: Reply<T>,
    value: T,
) {
    if let Some(at_once) = commits.add_behind_all(Uncommitted::new(started, reply, value)) {
        (at_once.answer)();
    }
}
