//! The loop on a thread of its own.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

fn started(clock: &MockClock) -> (LoopThread<Recorder>, Handle<Ev>, Log) {
    let log = Log::default();
    let recorder = Recorder { log: log.clone(), ..Recorder::default() };
    let running = EventLoop::new(recorder, LoopOptions::mocked(clock)).start().unwrap();
    let handle = running.handle();
    (running, handle, log)
}

fn event(log: &Log, name: &'static str) -> Ev {
    Ev { name, state: Doing::Change, log: log.clone(), on_run: None, on_not_run: None }
}

/// Puts a gate and returns when its handler has been entered; it ends when something is sent.
fn gate(handle: &Handle<Ev>, log: &Log) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel::<()>();
    let gate = event(log, "gate").runs(move |_| {
        enter.send(())?;
        Ok(released.recv()?)
    });
    handle.put(gate).unwrap();
    entered.recv().unwrap();
    release
}

#[test]
fn b02_every_producers_order_is_kept_and_no_event_runs_twice() {
    let (running, handle, log) = started(&MockClock::new());
    let seen = Arc::new(Mutex::new(vec![Vec::new(); 4]));
    std::thread::scope(|scope| {
        for producer in 0..4_usize {
            let (handle, seen, log) = (&handle, &seen, &log);
            scope.spawn(move || {
                for n in 0..5_000_u32 {
                    let seen = Arc::clone(seen);
                    let e = event(log, "e").runs(move |_| {
                        seen.lock().unwrap()[producer].push(n);
                        Ok(())
                    });
                    handle.put(e).unwrap();
                }
            });
        }
    });
    handle.begin_drain();
    running.join().unwrap();
    assert!(seen.lock().unwrap().iter().all(|seen| seen.iter().copied().eq(0..5_000)));
    assert_eq!(handle.stats().done, 20_000);
}

#[test]
fn b07_one_thread_of_the_known_name_runs_one_event_at_a_time() {
    let (running, handle, log) = started(&MockClock::new());
    let inside = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let inside = Arc::clone(&inside);
                    let e = event(&log, "e").runs(move |_| {
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        assert_eq!(std::thread::current().name(), Some("controller-event-thread"));
                        inside.store(false, Ordering::SeqCst);
                        Ok(())
                    });
                    handle.post(e).unwrap();
                }
            });
        }
    });
    handle.begin_drain();
    running.join().unwrap();
    assert_eq!((handle.stats().done, handle.stats().failed), (4_000, 0));
}

#[test]
fn e01_a_close_answers_every_caller_while_the_handler_is_still_busy() {
    let (running, handle, log) = started(&MockClock::new());
    let release = gate(&handle, &log);
    let answers: Vec<_> = (0..4)
        .map(|_| {
            let (reply, answer) = Reply::pair();
            handle.put(event(&log, "asks").otherwise(move |why| reply.send(why))).unwrap();
            answer
        })
        .collect();
    let closing = std::thread::spawn(move || running.close().map(drop));
    for answer in answers {
        assert_eq!(answer.wait(), Ok(NotRun::Preempted));
    }
    assert!(!handle.has_ended());
    release.send(()).unwrap();
    closing.join().unwrap().unwrap();
    assert_eq!(log.lines().first().unwrap(), "run gate");
    assert_eq!(log.lines().last().unwrap(), "stop Closed");
}

#[test]
fn e06_the_end_shows_no_state_and_leaves_no_time() {
    let (running, handle, log) = started(&MockClock::new());
    let stop = Arc::new(AtomicBool::new(false));
    let sampling = {
        let (handle, stop) = (handle.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                assert!(matches!(handle.state(), Doing::Idle | Doing::Change), "{:?}", handle.state());
            }
        })
    };
    handle.put(event(&log, "x")).unwrap().wait_finished().unwrap();
    running.close().unwrap();
    stop.store(true, Ordering::SeqCst);
    sampling.join().unwrap();
    assert_eq!(figures::histogram(&handle, "event_queue_time_nanoseconds").count(), 1);
    log.is(&["run x", "stop Closed"]);
}

#[test]
fn e09_a_closed_loop_cannot_be_started() {
    // A started one is a `LoopThread`: there is nothing left that could be started again.
    let bench = Bench::new();
    bench.handle.close();
    assert!(matches!(bench.event_loop.start(), Err(StartError::Closed)));
}

#[test]
fn d07_a_waiter_on_a_preempted_barrier_is_told_and_one_barrier_runs() {
    let (_running, handle, log) = started(&MockClock::new());
    let release = gate(&handle, &log);
    let first = handle.clear_and_put(event(&log, "expire1"), ClearScope::Fifo).unwrap().ticket;
    let waiting = {
        let first = first.clone();
        std::thread::spawn(move || first.wait_started())
    };
    let second = handle.clear_and_put(event(&log, "expire2"), ClearScope::Fifo).unwrap().ticket;
    assert_eq!(waiting.join().unwrap(), Err(WaitError::NotRun(NotRun::Preempted)));
    release.send(()).unwrap();
    assert_eq!(second.wait_started(), Ok(()));
    second.wait_finished().unwrap();
    log.is(&["run gate", "not_run expire1 Preempted", "run expire2"]);
}

#[test]
fn e02_closing_again_is_harmless_from_any_thread() {
    let (running, handle, log) = started(&MockClock::new());
    assert_eq!(handle.close(), CloseOutcome::Ended);
    assert_eq!(handle.close(), CloseOutcome::Ended);
    let other = handle.clone();
    assert_eq!(std::thread::spawn(move || other.close()).join().unwrap(), CloseOutcome::Ended);
    running.join().unwrap();
    log.is(&["stop Closed"]);
}

#[test]
fn e04_a_handler_that_closes_its_own_thread_does_not_wait_for_itself() {
    let (running, handle, log) = started(&MockClock::new());
    let closes = event(&log, "closes").runs(|cx| {
        assert_eq!(cx.handle().close(), CloseOutcome::Begun);
        Ok(())
    });
    handle.put(closes).unwrap();
    running.join().unwrap();
    log.is(&["run closes", "stop Closed"]);
    assert_eq!(handle.stats().failed, 0);
}

#[test]
fn a_callback_of_a_close_that_closes_again_does_not_wait_for_itself() {
    let (running, handle, log) = started(&MockClock::new());
    let release = gate(&handle, &log);
    let again = handle.clone();
    let x = event(&log, "x").otherwise(move |_| {
        assert_eq!(again.close(), CloseOutcome::Begun);
        release.send(()).unwrap();
    });
    handle.put(x).unwrap();
    running.close().unwrap();
    assert_eq!(handle.stats().preempt_panics, 0);
}

#[test]
fn e07_the_processor_comes_back_after_its_last_call() {
    let (running, handle, log) = started(&MockClock::new());
    for name in ["1", "2", "3"] {
        handle.put(event(&log, name)).unwrap();
    }
    handle.begin_drain();
    let processor = running.join().unwrap();
    processor.log.is(&["run 1", "run 2", "run 3", "stop Drained"]);
}

#[test]
fn e10_a_dropped_loop_leaves_no_thread() {
    for _ in 0..50 {
        let (running, handle, log) = started(&MockClock::new());
        handle.put(event(&log, "x")).unwrap();
        // Joins: it returns only when the thread has.
        drop(running);
        assert!(handle.has_ended());
        assert_eq!(log.lines().last().unwrap(), "stop Closed");
    }
}

#[test]
fn l01_advancing_the_clock_is_enough_to_wake_a_parked_loop() {
    let clock = MockClock::new();
    let (_running, handle, log) = started(&clock);
    let far = handle.schedule(None, When::At(ms(60_000)), event(&log, "far")).unwrap();
    handle.put(event(&log, "p")).unwrap().wait_finished().unwrap();
    clock.advance(Duration::from_millis(60_000));
    assert_eq!(far.wait_finished(), Ok(Outcome::Done));
}

#[test]
fn h11_a_parked_loop_learns_of_an_earlier_timer() {
    let clock = MockClock::new();
    let (_running, handle, log) = started(&clock);
    handle.schedule(None, When::At(ms(3_600_000)), event(&log, "far")).unwrap();
    let near = handle.schedule(None, When::At(ms(1)), event(&log, "near")).unwrap();
    clock.advance(Duration::from_millis(1));
    assert_eq!(near.wait_finished(), Ok(Outcome::Done));
}

#[test]
fn a_thread_waits_in_real_time_for_a_timer_of_a_real_clock() {
    let log = Log::default();
    let recorder = Recorder { log: log.clone(), ..Recorder::default() };
    let clock = Arc::new(MonotonicClock::start());
    let running = EventLoop::new(recorder, LoopOptions::new(clock.clone())).start().unwrap();
    let at = clock.now() + Duration::from_millis(20);
    let timer = running.handle().schedule(None, When::At(at), event(&log, "timer")).unwrap();
    assert_eq!(timer.wait_finished(), Ok(Outcome::Done));
    assert!(clock.now() >= at);
}

#[test]
fn h12_the_total_counts_what_waits_what_is_scheduled_and_what_runs() {
    let (_running, handle, log) = started(&MockClock::new());
    let total = || handle.stats().total;
    let (release, released) = mpsc::channel::<()>();
    handle.put(event(&log, "f1").runs(move |_| Ok(released.recv()?))).unwrap().wait_started().unwrap();
    assert_eq!(total(), 1);
    let f2 = handle.put(event(&log, "f2")).unwrap();
    assert_eq!(total(), 2);
    release.send(()).unwrap();
    f2.wait_finished().unwrap();
    assert_eq!(total(), 0);
    handle.schedule(Some("later".into()), When::At(ms(3_600_000)), event(&log, "later")).unwrap();
    assert_eq!(total(), 1);
    handle.schedule(Some("soon".into()), When::At(ms(1)), event(&log, "soon")).unwrap();
    assert_eq!(total(), 2);
    assert!(handle.cancel(&"later".into()) && handle.cancel(&"soon".into()));
    assert_eq!(total(), 0);
}

#[tokio::test]
async fn a_task_ends_a_loop_on_a_thread_without_blocking() {
    let (running, handle, log) = started(&MockClock::new());
    let (release, released) = mpsc::channel::<()>();
    handle.put(event(&log, "gate").runs(move |_| Ok(released.recv()?))).unwrap().started().await.unwrap();
    handle.begin_close();
    assert!(!handle.has_ended());
    release.send(()).unwrap();
    handle.ended().await;
    running.join().unwrap();
    log.is(&["run gate", "stop Closed"]);
}
