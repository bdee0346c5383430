//! How completions come from other threads to the one that owns the operator.
//!
//! A shell, not a core: it has a lock. The lock is held for a push or a swap; no user code runs under it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::entry::EntryId;
use crate::output::CallError;

/// An attempt has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion<R, E> {
    /// Whose attempt.
    pub entry: EntryId,
    /// Which attempt.
    pub attempt: u32,
    /// How it ended.
    pub result: Result<R, CallError<E>>,
}

#[derive(Debug)]
struct State<R, E> {
    completions: Vec<Completion<R, E>>,
    waker: Option<Waker>,
    closed: bool,
}

/// Where completions are put by any thread and taken out, all at once, by one.
///
/// Completions that come after the inbox was dropped or [closed](Self::close) are dropped quietly: their operator is gone.
#[derive(Debug)]
pub struct CompletionInbox<R, E> {
    state: Arc<Mutex<State<R, E>>>,
}

impl<R, E> CompletionInbox<R, E> {
    /// An empty inbox.
    #[must_use]
    pub fn new() -> Self {
        let state = State { completions: Vec::new(), waker: None, closed: false };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The handle by which an attempt is completed: once, or by being dropped.
    pub fn handle(&self, entry: EntryId, attempt: u32) -> CompletionHandle<R, E> {
        CompletionHandle { state: Some(Arc::clone(&self.state)), entry, attempt }
    }

    /// Moves all completions to the end of `into`, in the order in which they came.
    pub fn drain_into(&self, into: &mut Vec<Completion<R, E>>) {
        let mut state = lock(&self.state);
        if into.is_empty() {
            // The buffers change places, so that neither side allocates once both have grown.
            std::mem::swap(&mut state.completions, into);
        } else {
            into.append(&mut state.completions);
        }
    }

    /// Has `waker` woken by the first completion that comes into the empty inbox. Says whether there are completions
    /// already: then nobody is woken for them.
    pub fn register(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.state);
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        !state.completions.is_empty()
    }

    /// Waits until there are completions, without taking them out. May be dropped and begun again. It takes the waker's
    /// place: one task waits at a time.
    pub async fn wait(&self) {
        poll_fn(|cx| if self.register(cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Drops what is in it and whatever comes later.
    pub fn close(&self) {
        let dropped = {
            let mut state = lock(&self.state);
            state.closed = true;
            (std::mem::take(&mut state.completions), state.waker.take())
        };
        drop(dropped);
    }
}

impl<R, E> Default for CompletionInbox<R, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, E> Drop for CompletionInbox<R, E> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Completes one attempt, from any thread, exactly once. Dropped without that, it completes the attempt with
/// [`CallError::HandleDropped`], so that a lost callback leaves nobody waiting (Flink waits for the timeout, if any).
#[derive(Debug)]
#[must_use = "a handle that is dropped completes its attempt with an error"]
pub struct CompletionHandle<R, E> {
    /// Absent once completed.
    state: Option<Arc<Mutex<State<R, E>>>>,
    entry: EntryId,
    attempt: u32,
}

impl<R, E> CompletionHandle<R, E> {
    /// Hands the result over. Runs nothing but a waker.
    pub fn complete(mut self, result: Result<R, E>) {
        self.put(result.map_err(CallError::Error));
    }

    fn put(&mut self, result: Result<R, CallError<E>>) {
        let Some(shared) = self.state.take() else { return };
        let completion = Completion { entry: self.entry, attempt: self.attempt, result };
        let mut state = lock(&shared);
        if state.closed {
            // What a user's value does when dropped must not happen under the lock.
            drop(state);
            drop(completion);
            return;
        }
        let was_empty = state.completions.is_empty();
        state.completions.push(completion);
        let waker = if was_empty { state.waker.clone() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<R, E> Drop for CompletionHandle<R, E> {
    fn drop(&mut self) {
        self.put(Err(CallError::HandleDropped));
    }
}

/// A poisoned lock is taken as it is: a push or a swap leaves nothing half done.
fn lock<R, E>(state: &Mutex<State<R, E>>) -> MutexGuard<'_, State<R, E>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn entry(sequence: u64) -> EntryId {
        EntryId { sequence, slot: 0 }
    }

    fn drained(inbox: &CompletionInbox<u32, String>) -> Vec<Completion<u32, String>> {
        let mut completions = Vec::new();
        inbox.drain_into(&mut completions);
        completions
    }

    #[test]
    fn only_the_first_completion_of_a_batch_wakes() {
        let inbox = CompletionInbox::<u32, String>::new();
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        assert!(!inbox.register(&Arc::clone(&wakes).into()));
        for n in 0..3 {
            inbox.handle(entry(n), 1).complete(Ok(7));
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(drained(&inbox).iter().map(|c| c.entry.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        inbox.handle(entry(3), 1).complete(Ok(7));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
        assert!(inbox.register(&Arc::clone(&wakes).into()), "a completion is there already");
    }

    #[test]
    fn c09_a_dropped_handle_completes_with_an_error_and_a_used_one_only_once() {
        let inbox = CompletionInbox::<u32, String>::new();
        drop(inbox.handle(entry(0), 2));
        inbox.handle(entry(1), 1).complete(Err("no".into()));
        let results: Vec<_> = drained(&inbox).into_iter().map(|c| (c.attempt, c.result)).collect();
        assert_eq!(results, [(2, Err(CallError::HandleDropped)), (1, Err(CallError::Error("no".into())))]);
    }

    #[test]
    fn c14_a_completion_after_the_end_is_dropped_quietly() {
        let inbox = CompletionInbox::<Arc<()>, String>::new();
        let handle = inbox.handle(entry(0), 1);
        drop(inbox);
        let value = Arc::new(());
        handle.complete(Ok(Arc::clone(&value)));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn waiting_ends_with_the_first_completion_from_another_thread() {
        let inbox = CompletionInbox::<u32, String>::new();
        let handle = inbox.handle(entry(0), 1);
        std::thread::scope(|scope| {
            scope.spawn(move || handle.complete(Ok(7)));
            futures::executor::block_on(inbox.wait());
        });
        assert_eq!(drained(&inbox).len(), 1);
    }

    #[test]
    fn completions_of_many_threads_all_arrive() {
        let inbox = CompletionInbox::<u32, String>::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let handles: Vec<_> = (0..100).map(|n| inbox.handle(entry(thread * 100 + n), 1)).collect();
                scope.spawn(move || handles.into_iter().for_each(|handle| handle.complete(Ok(1))));
            }
        });
        let mut seen: Vec<u64> = drained(&inbox).iter().map(|c| c.entry.sequence).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..400).collect::<Vec<_>>());
    }
}
