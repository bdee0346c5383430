//! Every order of the steps by which calls are woken, polled, put back and let go, tried by loom.
//!
//! `cargo test -p asyncio --features model --lib driven::model`

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Mutex, Notify};
use loom::thread;

use tokio::runtime::Handle;

use super::waiting::Poller;
use super::{DrivenCalls, drive};
use crate::entry::EntryId;
use crate::inbox::CompletionInbox;

/// Tries every order with at most so many switches away from a thread that could go on.
fn model(switches: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(body);
}

/// What a call waits for, and who is told when it is there.
#[derive(Default)]
struct Event {
    there: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Event {
    fn comes(&self) {
        self.there.store(true, Ordering::SeqCst);
        // As futures may be woken: by a waker of an earlier poll.
        let waker = self.waker.lock().unwrap().clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A call that ends when its event has come; it says so when it is dropped.
struct Call {
    event: Arc<Event>,
    dropped: Arc<AtomicUsize>,
}

impl Future for Call {
    type Output = Result<(), ()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        *self.event.waker.lock().unwrap() = Some(cx.waker().clone());
        if self.event.there.load(Ordering::SeqCst) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // The waker knows the cell that the call was in.
        self.event.waker.lock().unwrap().take();
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// A task that sleeps until it is woken. Loom fails a model in which it sleeps for ever.
#[derive(Default)]
struct Sleeper(Notify);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn entry(sequence: u64, slot: u32) -> EntryId {
    EntryId { sequence, slot }
}

/// A consumer with its calls, and the task that drives them on a thread of its own.
struct Scene {
    calls: DrivenCalls<Call>,
    inbox: CompletionInbox<(), ()>,
    consumer: Arc<Sleeper>,
    driver: thread::JoinHandle<()>,
    /// Threads that make events come.
    outside: Vec<thread::JoinHandle<()>>,
    runtime: Handle,
    dropped: Arc<AtomicUsize>,
    ended: Vec<u64>,
}

impl Scene {
    fn new(owner: Poller, runtime: &Handle) -> Self {
        let mut calls = DrivenCalls::new();
        // There is no runtime to spawn the driver.
        calls.owner = Some(owner);
        let inbox = CompletionInbox::new();
        let driving = drive(Arc::clone(&calls.waiting), inbox.sender());
        let driver = thread::spawn(move || {
            let mut driving = std::pin::pin!(driving);
            let sleeper = Arc::new(Sleeper::default());
            let waker = Waker::from(Arc::clone(&sleeper));
            while driving.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                sleeper.0.wait();
            }
        });
        let (consumer, dropped) = (Arc::default(), Arc::default());
        let (outside, runtime, ended) = (Vec::new(), runtime.clone(), Vec::new());
        Self { calls, inbox, consumer, driver, outside, runtime, dropped, ended }
    }

    fn start(&mut self, entry: EntryId, event: &Arc<Event>) {
        let call = Call { event: Arc::clone(event), dropped: Arc::clone(&self.dropped) };
        if self.calls.start(&self.runtime, &self.inbox, entry, 1, || call).is_ready() {
            self.ended.push(entry.sequence);
        }
    }

    /// Has these come one after the other, at any time from now on.
    fn will_come(&mut self, events: &[Arc<Event>]) {
        let events = events.to_vec();
        self.outside.push(thread::spawn(move || events.iter().for_each(|event| event.comes())));
    }

    /// Does what a stream does until so many calls have ended.
    fn consume(&mut self, calls: usize) {
        let waker = Waker::from(Arc::clone(&self.consumer));
        let Self { inbox, ended, .. } = self;
        while ended.len() < calls {
            let mut more = inbox.register(&waker);
            inbox.deliver(|entry, _, _| ended.push(entry.sequence()));
            let cx = &mut Context::from_waker(&waker);
            more |= self.calls.poll_woken(cx, 16, |entry, _, _| ended.push(entry.sequence()));
            if ended.len() < calls && !more {
                self.consumer.0.wait();
            }
        }
    }

    /// The end: every call that was made is gone, and so is everything else.
    fn close(self, made: usize) {
        let left = Arc::downgrade(&self.calls.waiting);
        drop(self.calls);
        self.outside.into_iter().chain([self.driver]).for_each(|thread| thread.join().unwrap());
        assert_eq!(self.dropped.load(Ordering::SeqCst), made, "each call is dropped once");
        assert!(left.upgrade().is_none(), "nothing keeps the calls");
    }
}

fn each_owner(switches: usize, body: impl Fn(&mut Scene) -> usize + Send + Sync + Copy + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for owner in [Poller::Consumer, Poller::Passer] {
        let handle = runtime.handle().clone();
        model(switches, move || {
            let mut scene = Scene::new(owner, &handle);
            let made = body(&mut scene);
            scene.close(made);
        });
    }
}

#[test]
fn a_call_ends_whenever_it_is_woken_and_whoever_polls_it() {
    each_owner(2, |scene| {
        let event = Arc::default();
        scene.will_come(&[Arc::clone(&event)]);
        scene.start(entry(7, 0), &event);
        scene.consume(1);
        assert_eq!(scene.ended, [7]);
        1
    });
}

#[test]
fn calls_that_are_woken_together_all_end() {
    each_owner(2, |scene| {
        let events = [Arc::default(), Arc::default()];
        scene.start(entry(1, 0), &events[0]);
        scene.start(entry(2, 1), &events[1]);
        scene.will_come(&events);
        scene.consume(2);
        scene.ended.sort_unstable();
        assert_eq!(scene.ended, [1, 2]);
        2
    });
}

#[test]
fn a_call_in_the_room_of_one_that_was_let_go_ends_by_its_own_event() {
    each_owner(2, |scene| {
        let [first, second] = [Arc::default(), Arc::default()];
        scene.start(entry(1, 0), &first);
        scene.will_come(&[first]);
        scene.calls.abandon(entry(1, 0), 1);
        scene.start(entry(2, 0), &second);
        second.comes();
        while !scene.ended.contains(&2) {
            // The first may have ended before it was let go.
            scene.consume(scene.ended.len() + 1);
        }
        2
    });
}

#[test]
fn calls_that_are_given_up_are_dropped_whoever_polls_them() {
    each_owner(2, |scene| {
        let event = Arc::default();
        scene.start(entry(1, 0), &event);
        scene.will_come(&[event]);
        1
    });
}
