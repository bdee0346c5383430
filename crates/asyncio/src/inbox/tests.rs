//! Handles, deliveries, and who is woken by them.

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

type Delivered = (u64, u32, Result<u32, CallError<String>>);

fn delivered(inbox: &mut CompletionInbox<u32, String>) -> Vec<Delivered> {
    let mut completions = Vec::new();
    let count = inbox.deliver(|entry, attempt, result| completions.push((entry.sequence, attempt, result)));
    assert_eq!(count, completions.len());
    completions
}

#[test]
fn only_the_first_completion_of_a_batch_wakes() {
    let mut inbox = CompletionInbox::<u32, String>::new();
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    assert!(!inbox.register(&Arc::clone(&wakes).into()));
    for n in 0..3 {
        inbox.handle(entry(n), 1).complete(7);
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(delivered(&mut inbox).iter().map(|c| c.0).collect::<Vec<_>>(), [0, 1, 2]);
    inbox.handle(entry(3), 1).complete(7);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    assert!(inbox.register(&Arc::clone(&wakes).into()), "a completion is there already");
}

#[test]
fn c09_a_dropped_handle_completes_with_an_error_and_a_used_one_only_once() {
    let mut inbox = CompletionInbox::<u32, String>::new();
    drop(inbox.handle(entry(0), 2));
    inbox.handle(entry(1), 1).complete_exceptionally("no".into());
    let results: Vec<_> =
        delivered(&mut inbox).into_iter().map(|(_, attempt, result)| (attempt, result)).collect();
    assert_eq!(results, [(2, Err(CallError::HandleDropped)), (1, Err(CallError::Error("no".into())))]);
}

#[test]
fn c14_a_completion_after_the_end_is_dropped_quietly() {
    let mut inbox = CompletionInbox::<Arc<()>, String>::new();
    let handle = inbox.handle(entry(0), 1);
    drop(inbox);
    let value = Arc::new(());
    handle.complete(Arc::clone(&value));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn waiting_ends_with_the_first_completion_from_another_thread() {
    let mut inbox = CompletionInbox::<u32, String>::new();
    let handle = inbox.handle(entry(0), 1);
    std::thread::scope(|scope| {
        scope.spawn(move || handle.complete(7));
        futures::executor::block_on(inbox.wait());
    });
    assert_eq!(delivered(&mut inbox).len(), 1);
}

#[test]
fn completions_of_many_threads_all_arrive() {
    let mut inbox = CompletionInbox::<u32, String>::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let handles: Vec<_> = (0..100).map(|n| inbox.handle(entry(thread * 100 + n), 1)).collect();
            scope.spawn(move || handles.into_iter().for_each(|handle| handle.complete(1)));
        }
    });
    let mut seen: Vec<u64> = delivered(&mut inbox).iter().map(|c| c.0).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}
