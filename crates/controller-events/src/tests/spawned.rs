//! Work that runs elsewhere, and handlers that wait.

use super::*;
use std::future::{pending, ready};
use std::sync::mpsc;

fn plain(log: &Log, name: &'static str) -> Ev {
    Ev { name, state: Doing::Change, log: log.clone(), on_run: None, on_not_run: None }
}

/// A spawner that keeps the work for the test to poll.
fn kept() -> (Spawner, Arc<Mutex<Vec<Work>>>) {
    let works = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&works);
    (Arc::new(move |work| to.lock().unwrap().push(work)), works)
}

fn poll(work: &mut Work) {
    let _ = work.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
}

/// A bench whose handler `asks` has spawned `work`, with the ticket of what comes of it.
fn asking<F: Future<Output = u8> + Send + 'static>(work: F) -> (Bench, Arc<Mutex<Vec<Work>>>, Ticket) {
    let (spawner, works) = kept();
    let mut bench = Bench::with(move |options| options.spawner = spawner, |_| {});
    let (tell, told) = mpsc::channel();
    let log = bench.log.clone();
    let asks = bench.ev("asks").runs(move |cx| {
        let ticket = cx.spawn_then(work, move |_| plain(&log, "answer"));
        tell.send(ticket).unwrap();
        Ok(())
    });
    bench.handle.put(asks).unwrap();
    bench.run();
    (bench, works, told.recv().unwrap())
}

#[test]
fn s9_12_what_work_gives_comes_back_as_an_event_with_a_ticket() {
    let (mut bench, works, ticket) = asking(ready(7));
    assert_eq!(ticket.outcome(), None);
    poll(&mut works.lock().unwrap()[0]);
    bench.run();
    bench.log.is(&["run asks", "run answer"]);
    assert_eq!(ticket.outcome(), Some(Outcome::Done));
    bench.is_conserved();
}

#[test]
fn s9_12_work_that_is_dropped_unfinished_is_told() {
    let (bench, works, ticket) = asking(pending());
    works.lock().unwrap().clear();
    assert_eq!(ticket.outcome(), Some(Outcome::NotRun(NotRun::Cancelled)));
    bench.is_conserved();
}

#[test]
fn s9_12_work_that_outlives_its_loop_is_told() {
    let (mut bench, works, ticket) = asking(ready(7));
    bench.handle.begin_close();
    bench.run();
    poll(&mut works.lock().unwrap()[0]);
    assert_eq!(ticket.outcome(), Some(Outcome::NotRun(NotRun::ShuttingDown)));
    bench.log.is(&["run asks", "stop Closed", "not_run answer ShuttingDown"]);
    bench.is_conserved();
}

#[test]
fn work_without_a_runtime_gets_a_thread() {
    let mut bench = Bench::new();
    let (tell, told) = mpsc::channel();
    let log = bench.log.clone();
    let asks = bench.ev("asks").runs(move |cx| {
        tell.send(cx.spawn_then(ready(7), move |_| plain(&log, "answer"))).unwrap();
        Ok(())
    });
    bench.handle.put(asks).unwrap();
    bench.run();
    let ticket = told.recv().unwrap();
    while ticket.outcome().is_none() {
        bench.run();
        std::thread::yield_now();
    }
    bench.log.is(&["run asks", "run answer"]);
}

/// Waits in its handler for what the event brings.
struct Waits(Log);

struct Wait(&'static str, tokio::sync::oneshot::Receiver<()>);

impl Event for Wait {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Election
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn not_run(self, _why: NotRun) {}
}

impl AsyncProcessor for Waits {
    type Event = Wait;

    async fn process(&mut self, event: Wait, _cx: &mut Cx<'_, Wait>) -> Result<(), Fault> {
        self.0.add(format!("begin {}", event.0));
        event.1.await?;
        assert!(event.0 != "panics", "on purpose");
        self.0.add(format!("end {}", event.0));
        Ok(())
    }

    fn on_stop(&mut self, why: StopReason) {
        self.0.add(format!("stop {why:?}"));
    }
}

fn asynchronous() -> (AsyncEventLoop<Waits>, Handle<Wait>, Log) {
    let log = Log::default();
    let event_loop = AsyncEventLoop::new(Waits(log.clone()), LoopOptions::mocked(&MockClock::new()));
    let handle = event_loop.handle();
    (event_loop, handle, log)
}

#[tokio::test]
async fn s9_12_a_waiting_handler_is_awaited_before_the_next_event_starts() {
    let (event_loop, handle, log) = asynchronous();
    let running = tokio::spawn(event_loop.run(|_| pending()));
    let (first, first_goes_on) = tokio::sync::oneshot::channel();
    let (second, second_goes_on) = tokio::sync::oneshot::channel();
    let a = handle.put(Wait("a", first_goes_on)).unwrap();
    let b = handle.put(Wait("b", second_goes_on)).unwrap();
    a.started().await.unwrap();
    second.send(()).unwrap();
    tokio::task::yield_now().await;
    log.is(&["begin a"]);
    assert_eq!((handle.state(), b.has_started()), (Doing::Election, false));
    first.send(()).unwrap();
    assert_eq!((a.finished().await, b.finished().await), (Outcome::Done, Outcome::Done));
    handle.begin_close();
    running.await.unwrap();
    log.is(&["begin a", "end a", "begin b", "end b", "stop Closed"]);
    assert!(handle.stats().is_conserved());
}

#[tokio::test]
async fn an_asynchronous_handler_that_fails_or_panics_has_an_outcome() {
    let (event_loop, handle, _log) = asynchronous();
    let running = tokio::spawn(event_loop.run(|_| pending()));
    let (go, goes_on) = tokio::sync::oneshot::channel();
    go.send(()).unwrap();
    let panics = handle.put(Wait("panics", goes_on)).unwrap();
    let fails = handle.put(Wait("fails", tokio::sync::oneshot::channel().1)).unwrap();
    assert_eq!((panics.finished().await, fails.finished().await), (Outcome::Failed, Outcome::Failed));
    assert_eq!((handle.stats().panicked, handle.stats().failed), (1, 2));
    handle.begin_drain();
    running.await.unwrap();
}

#[tokio::test]
async fn a_close_finishes_the_waiting_handler_and_a_dropped_loop_says_that_it_did_not() {
    let (event_loop, handle, _log) = asynchronous();
    let (go, goes_on) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(event_loop.run(|_| pending()));
    let a = handle.put(Wait("a", goes_on)).unwrap();
    a.started().await.unwrap();
    handle.begin_close();
    assert!(!handle.has_ended());
    go.send(()).unwrap();
    assert_eq!(a.finished().await, Outcome::Done);
    running.await.unwrap();

    let (event_loop, handle, _log) = asynchronous();
    let (_go, goes_on) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(event_loop.run(|_| pending()));
    let a = handle.put(Wait("a", goes_on)).unwrap();
    let b = handle.put(Wait("b", tokio::sync::oneshot::channel().1)).unwrap();
    a.started().await.unwrap();
    running.abort();
    assert_eq!(b.finished().await, Outcome::NotRun(NotRun::Preempted));
    assert_eq!(a.finished().await, Outcome::Failed);
}

#[test]
fn an_asynchronous_loop_runs_without_a_runtime_and_waits_for_its_timers() {
    let log = Log::default();
    let clock = Arc::new(MonotonicClock::start());
    let event_loop = AsyncEventLoop::new(Waits(log.clone()), LoopOptions::new(clock.clone()));
    let handle = event_loop.handle();
    let running = std::thread::spawn(move || event_loop.run_blocking());
    let (go, goes_on) = tokio::sync::oneshot::channel();
    go.send(()).unwrap();
    let at = clock.now() + Duration::from_millis(5);
    let ticket = handle.schedule(None, When::At(at), Wait("timer", goes_on)).unwrap();
    assert_eq!(ticket.wait_finished(), Ok(Outcome::Done));
    assert!(clock.now() >= at);
    handle.begin_drain();
    running.join().unwrap();
    log.is(&["begin timer", "end timer", "stop Drained"]);
}
